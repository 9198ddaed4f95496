import { isForbiddenTag } from '../../core/labels.ts';
import { ascending } from '../../core/text-formats.ts';
import type { LogRule } from './options.ts';

/** A fault inside a rule; `message` is `what is wrong; what is allowed`. */
export interface RuleFault {
  path: readonly (string | number)[];
  message: string;
}

const metricName = /^[A-Za-z_]\w*$/;

/** What one rule says wrong about itself. Takes half-checked rules: parts of a wrong type are passed over. */
export function ruleFaults(rule: Partial<LogRule>): RuleFault[] {
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

/** Labels that mean something else already. */
const reservedLabels: ReadonlySet<string> = new Set([
  'le',
  'quantile',
  'svc_service',
  'overflow',
  'job',
  'instance',
]);

/** Why a label of a rule cannot be, or undefined. */
export function labelFault(label: string, field: string): string | undefined {
  if (!metricName.test(label) || label.startsWith('__')) {
    return 'not a label name; use letters, digits and _, no digit and no __ first';
  }
  if (reservedLabels.has(label)) return 'a label that has its own meaning; use another name';
  const cardinality = 'which the cardinality rules forbid as a label; use workflow_type, domain or operation';
  if (isForbiddenTag(label)) return `${label} is an id or a time, ${cardinality}`;
  if (isForbiddenTag(field)) return `its field is an id or a time, ${cardinality}`;
  return undefined;
}
