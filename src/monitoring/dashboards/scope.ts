import { findMetric, roles } from '../../core/catalog.ts';
import { typeOf } from '../lint/types.ts';
import type { Selector } from '../promql/ast.ts';
import { parse } from '../promql/parse.ts';
import { selectorsOf } from '../promql/walk.ts';
import { parseable } from './fill.ts';
import type { Choice } from './model.ts';

export const clusterChoice: Choice = {
  name: 'cluster',
  label: 'cluster',
  title: 'Cluster',
  metric: 'svc_agent_build_info',
};

/** Whether a choice of the label narrows the series of that name down. */
function isNarrowed(name: string, label: string): boolean {
  if (label === 'cluster') return true;
  const type = typeOf(name);
  if (!type?.labels.includes(label)) return false;
  // Which agent says it does not matter where all say the same.
  if (label === 'instance') return !type.isReplicated;
  // Of one role only: a role chosen on the dashboard before must not empty this one.
  return label !== 'svc_service' || sentBySeveral(name);
}

/** Whether a selector is to be narrowed down by the label: a choice may be, and it names no role itself. */
export function isOpenTo({ name, matchers }: Selector, label: string): boolean {
  const isFixed = label === 'svc_service' && matchers.some((of) => of.label === label && of.op === '=');
  return isNarrowed(name, label) && !isFixed;
}

function sentBySeveral(name: string): boolean {
  const metric = findMetric(name) ?? findMetric(name.replace(/_(?:bucket|sum|count)$/, ''));
  return (metric?.roles ?? roles).length > 1;
}

/** An expression with the matchers of the choices put into each selector that has the label. */
export function scoped(expr: string, choices: readonly Choice[]): string {
  const selectors = selectorsOf(parse(parseable(expr)));
  return [...selectors]
    .sort((a, b) => b.start - a.start)
    .reduce((text, selector) => narrowed(text, selector, choices), expr);
}

function narrowed(text: string, selector: Selector, choices: readonly Choice[]): string {
  const added = choices
    .filter(({ label }) => isOpenTo(selector, label))
    .map(({ name, label }) => `${label}=~"$${name}"`)
    .join(', ');
  if (!added) return text;
  const at = selector.start + selector.name.length;
  if (text[at] !== '{') return `${text.slice(0, at)}{${added}}${text.slice(at)}`;
  return `${text.slice(0, at + 1)}${added}, ${text.slice(at + 1)}`;
}
