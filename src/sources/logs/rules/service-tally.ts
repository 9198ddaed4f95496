import { agentMetric } from '../../../core/agent-metrics.ts';
import type { Counter, Intake } from '../../../core/model.ts';
import { lineDropReasons, skipReasons } from '../../../core/reasons.ts';
import type { Fields } from '../lines/fields.ts';
import type { LineTally } from '../lines/tally.ts';
import type { LogsOptions } from '../options.ts';
import { createEntries, entriesFamily } from './entries.ts';
import { createNewest, newestFamily, showNewest, takeTime } from './newest.ts';
import { createPersistenceErrors, persistenceFamily, persistenceFields } from './persistence.ts';
import { reporterErrors } from './reporter-errors.ts';
import { createRuleCount, type RuleDeps, ruleFields } from './rule.ts';
import { createStartLines, type LifeEvents } from './starts.ts';

/** Counts the lines of one service, from however many files. */
export interface ServiceTally extends LineTally {
  readonly service: string;
  sweep(nowMs: number): void;
}

/** What of a service's options its tally depends on. */
export type TallyOptions = Pick<LogsOptions, 'levelKey' | 'rules'>;

const bytesFamily = agentMetric('svc_log_bytes_total');
const droppedFamily = agentMetric('svc_log_lines_dropped_total');
const skippedFamily = agentMetric('svc_log_skipped_bytes_total');
const families = [entriesFamily, persistenceFamily, bytesFamily, droppedFamily, skippedFamily, newestFamily];

/** The fields of an entry that a service's metrics are made of. */
export function tallyFields({ levelKey, rules }: TallyOptions): readonly string[] {
  return [levelKey, 'logger', 'ts', ...persistenceFields, ...rules.flatMap(ruleFields)];
}

/** A family with one label whose values are a closed list: all of them from the start. */
function byReason<R extends string>(
  intake: Intake,
  { name, help }: { name: string; help: string },
  reasons: readonly R[],
): Record<R, Counter> {
  const counters = reasons.map((reason) => [reason, intake.counter(name, { reason }, { help })]);
  return Object.fromEntries(counters);
}

export interface TallyDeps extends RuleDeps {
  life?: LifeEvents;
}

export function createServiceTally(service: string, options: TallyOptions, deps: TallyDeps): ServiceTally {
  const { intake, slots, drops, life } = deps;
  for (const { kind, name, help, tags } of families) intake.declare?.(kind, name, { help, tags });
  const entries = createEntries(intake, slots, options.levelKey);
  const persistenceErrors = createPersistenceErrors(intake, slots);
  const newest = createNewest(intake, slots.of('ts'));
  const rules = [reporterErrors, ...options.rules].map((rule) => createRuleCount(rule, deps));
  const bytes = intake.counter(bytesFamily.name, {}, { help: bytesFamily.help });
  const dropped = byReason(intake, droppedFamily, lineDropReasons);
  const skipped = byReason(intake, skippedFamily, skipReasons);
  const startLine = createStartLines(slots);
  let isHeard = life === undefined;
  let gatheredBytes = 0;
  const gather = (lineBytes: number) => {
    gatheredBytes += lineBytes;
  };
  /** A start is no error, so entries of these levels are not asked. */
  const noteLife = (fields: Fields) => {
    const line = startLine(fields);
    if (line !== undefined) life?.started(service, line);
    if (isHeard) return;
    isHeard = true;
    life?.logged(service);
  };
  return {
    service,
    entry(fields, lineBytes) {
      gatheredBytes += lineBytes;
      if (entries.count(fields)) persistenceErrors.count(fields);
      else noteLife(fields);
      takeTime(newest, fields);
      for (let i = 0; i < rules.length; i++) rules[i]!.count(fields);
    },
    continuation: gather,
    blank: gather,
    dropped(reason, lineBytes) {
      gatheredBytes += lineBytes;
      dropped[reason].add(1);
      drops.count('logs', reason);
    },
    skipped: (reason, count) => skipped[reason].add(count),
    settle() {
      if (gatheredBytes > 0) bytes.add(gatheredBytes);
      gatheredBytes = 0;
      showNewest(newest);
    },
    sweep(nowMs) {
      for (const rule of rules) rule.sweep(nowMs);
    },
  };
}
