import { agentMetrics } from '../../core/agent-metrics.ts';
import { catalog } from '../../core/catalog.ts';
import type { Matcher } from '../promql/ast.ts';
import { parse } from '../promql/parse.ts';
import { selectorsOf } from '../promql/walk.ts';
import type { RuleOptions } from './options.ts';

interface Edit {
  start: number;
  end: number;
  text: string;
}

const own = new Set([...catalog, ...agentMetrics].map(({ name }) => name));
const suffix = /_(?:bucket|sum|count)$/;

/** Whether a reporter shows this name, so that it carries the reporter's prefix. */
function isReported(name: string): boolean {
  return own.has(name) || own.has(name.replace(suffix, '')) || name.startsWith('svc_agent_');
}

/** An expression in the names of the options: metrics with their prefix, jobs as they are called there. */
export function rewrite(text: string, { prefix, jobs }: Pick<RuleOptions, 'prefix' | 'jobs'>): string {
  const edits: Edit[] = [];
  for (const { name, start, matchers } of selectorsOf(parse(text))) {
    if (prefix && isReported(name)) edits.push({ start, end: start, text: `${prefix}_` });
    for (const matcher of matchers) {
      if (matcher.label === 'job') edits.push({ ...matcher, text: JSON.stringify(jobValue(matcher, jobs)) });
    }
  }
  return edits
    .sort((a, b) => b.start - a.start)
    .reduce((result, { start, end, text: by }) => result.slice(0, start) + by + result.slice(end), text);
}

function jobValue({ op, value }: Matcher, jobs: RuleOptions['jobs']): string {
  const named: Readonly<Record<string, string | undefined>> = jobs;
  if (op === '=' || op === '!=') return named[value] ?? value;
  return value
    .split('|')
    .map((job) => named[job]?.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') ?? job)
    .join('|');
}
