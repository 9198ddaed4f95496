import * as z from 'zod';
import { AgentError } from '../../core/errors.ts';
import { isForbiddenTag } from '../../core/registry/labels.ts';
import { ascending, interval, parsedAs } from '../../core/text-formats.ts';
import { anyDepth, type Glob, parseGlob } from './discovery/patterns.ts';
import type { LogRule, LogsOptions } from './options.ts';

/** A fault inside a rule; `message` is `what is wrong; what is allowed`. */
interface RuleFault {
  path: readonly (string | number)[];
  message: string;
}

const metricName = /^[A-Za-z_]\w*$/;

/** Faults within a rule. Parts of a wrong type are ignored: the schema reports them. */
function ruleFaults(rule: Partial<LogRule>): RuleFault[] {
  const faults: RuleFault[] = [];
  const say = (path: RuleFault['path'], message: string) => faults.push({ path, message });
  if (typeof rule.name === 'string' && rule.name !== '' && !metricName.test(rule.name)) {
    say(['name'], 'not a metric name; use letters, digits and _, no digit first');
  }
  if ((rule.type === 'gauge' || rule.type === 'histogram') && rule.value === undefined) {
    say(['value'], `missing; name the field that holds the ${rule.type}’s number`);
  }
  if (rule.buckets !== undefined) {
    if (rule.type === 'counter' || rule.type === 'gauge') {
      say(['buckets'], `a ${rule.type} has no buckets; use type: histogram, or leave them out`);
    } else if (Array.isArray(rule.buckets)) {
      const at = ascending.brokenAt(rule.buckets);
      if (at >= 0) say(['buckets', at], ascending.fault);
    }
  }
  return faults;
}

/** Labels that have another meaning already. */
const reservedLabels: ReadonlySet<string> = new Set([
  'le',
  'quantile',
  'svc_service',
  'overflow',
  'job',
  'instance',
]);

/** Why a rule must not have this label; undefined if it may have the label. */
function labelFault(label: string, field: string): string | undefined {
  if (!metricName.test(label) || label.startsWith('__')) {
    return 'not a label name; use letters, digits and _, no digit and no __ first';
  }
  if (reservedLabels.has(label)) return 'a reserved label; use another name';
  const cardinality = 'which the cardinality rules forbid as a label; use workflow_type, domain or operation';
  if (isForbiddenTag(label)) return `${label} is an id or a time, ${cardinality}`;
  if (isForbiddenTag(field)) return `its field is an id or a time, ${cardinality}`;
  return undefined;
}

const scalar = z.union([z.string(), z.number(), z.boolean()]);
const field = z.string().min(1);

/** The schema of a rule's `match`: every field must have its value, or one of its values. */
const match = z.record(field, z.union([scalar, z.array(scalar).min(1)]));

const bounds = z.array(z.number()).min(1).max(200);

const rule = z
  .strictObject({
    name: z.string().min(1).describe('Name of the metric.'),
    type: z.enum(['counter', 'gauge', 'histogram']).describe('Type of the metric.'),
    help: z.string().optional().describe('Help text of the metric.'),
    match: match.optional().describe('Top-level fields and the values they must have.'),
    value: field.optional().describe('Field that holds the number; a counter without it counts entries.'),
    labels: z.record(z.string(), field).optional().describe('Maps a label name to the field with its value.'),
    expire: z
      .string(interval.fault)
      .transform(parsedAs(interval))
      .optional()
      .describe('Removes a series that no entry has updated for this long. Default: never.'),
    buckets: bounds.optional().describe('Histogram: upper bounds, ascending.'),
  })
  .superRefine(
    (value, context) => {
      for (const { path, message } of ruleFaults(value as LogRule)) {
        context.addIssue({ code: 'custom', path: [...path], message });
      }
      for (const [label, source] of Object.entries(textEntries(value))) {
        const message = labelFault(label, source);
        if (message) context.addIssue({ code: 'custom', path: ['labels', label], message });
      }
    },
    { when: ({ value }) => typeof value === 'object' && value !== null },
  )
  .transform(({ expire, ...rest }): LogRule => (expire === undefined ? rest : { ...rest, expireMs: expire }));

function textEntries({ labels }: { labels?: unknown }): Record<string, string> {
  const entries = typeof labels === 'object' && labels !== null ? Object.entries(labels) : [];
  return Object.fromEntries(entries.filter(([, source]) => typeof source === 'string'));
}

/** The value of PATH_MAX on Linux. */
const longestPath = 4096;

/** Whether no directory is named before `**`: every scan would list the whole host, with /proc, /sys and /dev. */
function isOverWholeHost({ steps }: Glob): boolean {
  const named = steps.findIndex((step) => typeof step === 'string');
  const open = steps.indexOf(anyDepth);
  return open >= 0 && (named < 0 || named > open);
}

/** The fault of a pattern. The code that `run` uses compiles it, so that `check` refuses what `run` cannot use. */
function patternFault(pattern: string, isExcluded: boolean): string | undefined {
  if (pattern.length > longestPath) return `longer than a path can be; use at most ${longestPath} characters`;
  try {
    const isRefused = parseGlob(pattern).some(isOverWholeHost) && !isExcluded;
    return isRefused
      ? 'the whole file system; name the directory of the logs before **, such as /var/log/**/*.log'
      : undefined;
  } catch (thrown) {
    return thrown instanceof AgentError ? thrown.fault.what : String(thrown);
  }
}

const pathPattern = ({ isExcluded }: { isExcluded: boolean }) =>
  z
    .string()
    .min(1)
    .superRefine((pattern, { addIssue }) => {
      const message = patternFault(pattern, isExcluded);
      if (message !== undefined) addIssue({ code: 'custom', message });
    });

/** The schema of `services.<service>.logs` (docs/how-to/collect.md, Logs). */
export const logsBlock = () =>
  z
    .strictObject({
      paths: z
        .array(pathPattern({ isExcluded: false }))
        .min(1)
        .refine((paths) => !paths.includes('-') || paths.length === 1, {
          when: ({ value }) => Array.isArray(value),
          error: 'standard input beside files; use - alone',
        })
        .describe('Glob patterns of files; - alone is standard input.'),
      exclude: z
        .array(pathPattern({ isExcluded: true }))
        .default([])
        .describe('Glob patterns of files to leave out.'),
      encoding: z.enum(['auto', 'json', 'console']).default('auto').describe('Encoding of the entries.'),
      container: z
        .enum(['auto', 'none', 'cri', 'docker'])
        .default('auto')
        .describe('Format in which a container runtime wraps each line.'),
      levelKey: field.default('level').describe('Field that holds the level.'),
      roleField: field
        .default('service')
        .describe('Field that holds the role, for a file that several roles write to.'),
      startAt: z
        .enum(['end', 'beginning'])
        .default('end')
        .describe('Where to start in a file that is found for the first time.'),
      rules: z.array(rule).default([]).describe('Your own metrics from fields of the entries.'),
    })
    .describe('Log files to read and what to count in them.') satisfies z.ZodType<LogsOptions>;
