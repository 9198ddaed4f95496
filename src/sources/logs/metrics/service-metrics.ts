import { agentMetric } from '../../../core/agent-metrics.ts';
import type { Counter, Intake } from '../../../core/model.ts';
import { lineDropReasons, logLevels, skipReasons } from '../../../core/reasons.ts';
import type { Steps } from '../../../core/slices.ts';
import { type Fields, plainText, type Slots, textOf } from '../lines/fields.ts';
import type { FileState, LineMetrics } from '../lines/line-classifier.ts';
import type { LogRule, LogsOptions } from '../options.ts';
import { createNewestEntry, exposeNewestEntry, newestFamily, readEntryTime } from './entry-time.ts';
import { errorFields, type LastErrors } from './last-errors.ts';
import { type LogRuleDeps, type LogRuleMetric, openLogRuleMetric, ruleFields } from './log-rule.ts';
import { createLogSeries, type LogIntake } from './log-series.ts';
import { createPersistenceErrors, persistenceFamily, persistenceFields } from './persistence-errors.ts';

/** The metrics of one service's log lines, from all its files. */
export interface ServiceLogMetrics extends Omit<LineMetrics, 'entry'> {
  readonly service: string;
  entry(fields: Fields, lineBytes: number, file: FileState): void;
  /** Releases idle series of log rules. `nowMs` is monotonic. */
  sweep(nowMs: number): void;
}

/** Receives what a service's log tells about its processes, at the time when the line is counted. */
export interface ProcessEvents {
  /** Called for the first entry of the service that this process reads. */
  logged(service: string): void;
  /** Called for a line that a process of the service writes once when it starts. */
  started(service: string, line: string): void;
}

/** The options of a service that its metrics depend on. */
export type LogMetricsOptions = Pick<LogsOptions, 'levelKey' | 'rules'>;

interface ServiceMetricsDeps extends LogRuleDeps {
  processEvents?: ProcessEvents;
  lastErrors?: LastErrors;
}

const entriesFamily = agentMetric('svc_log_entries_total');
const bytesFamily = agentMetric('svc_log_bytes_total');
const droppedFamily = agentMetric('svc_log_lines_dropped_total');
const skippedFamily = agentMetric('svc_log_skipped_bytes_total');
const families = [entriesFamily, persistenceFamily, bytesFamily, droppedFamily, skippedFamily, newestFamily];

/**
 * A warning that the role's own reporter dropped series (inconsistent labels, a port in use). The role's metrics
 * cannot show this fault, because it makes them incomplete.
 */
const reporterErrors: LogRule = {
  name: 'svc_role_reporter_errors_total',
  type: 'counter',
  help: 'Warnings of the role that its own metrics reporter dropped series or could not report.',
  match: { msg: 'error in prometheus reporter' },
};

/** The fields of an entry that a service's metrics read. */
export function metricFields({ levelKey, rules }: LogMetricsOptions): readonly string[] {
  return [levelKey, 'ts', ...errorFields, ...persistenceFields, ...rules.flatMap(ruleFields)];
}

/** Restores a service's series from before a restart, except the series of its rules, in one step for each series. */
export function* restoreServiceLogs(intake: LogIntake): Steps<void> {
  if (!intake.restoring) return;
  const { type, name, help } = reporterErrors;
  for (const family of [...families, { kind: type, name, help, tags: [] }])
    yield* intake.restoring(family.kind, family.name, family);
}

/** Restores the service's series, in one step for each series. */
export function* openServiceLogMetrics(
  service: string,
  options: LogMetricsOptions,
  deps: ServiceMetricsDeps,
): Steps<ServiceLogMetrics> {
  const { intake, slots, drops, processEvents } = deps;
  const errors = deps.lastErrors?.of(slots, options.levelKey);
  yield* restoreServiceLogs(intake);
  const entries = createEntryCounts(intake, slots, options.levelKey);
  const persistenceErrors = createPersistenceErrors(intake, slots);
  const newestEntry = createNewestEntry(slots.of('ts'), deps);
  const rules: LogRuleMetric[] = [];
  for (const rule of [reporterErrors, ...options.rules]) rules.push(yield* openLogRuleMetric(rule, deps));
  const bytes = intake.counter(bytesFamily.name, {}, { help: bytesFamily.help });
  const dropped = countersByReason(intake, droppedFamily, lineDropReasons);
  const skipped = countersByReason(intake, skippedFamily, skipReasons);
  const startupLine = createStartupLines(slots);
  let hasLogged = processEvents === undefined;
  let pendingBytes = 0;
  const addBytes = (lineBytes: number) => {
    pendingBytes += lineBytes;
  };
  const notifyLife = (fields: Fields) => {
    const line = startupLine(fields);
    if (line !== undefined) processEvents?.started(service, line);
    if (hasLogged) return;
    hasLogged = true;
    processEvents?.logged(service);
  };
  return {
    service,
    entry(fields, lineBytes, file) {
      pendingBytes += lineBytes;
      // A start-up line never has level error or fatal.
      if (entries.count(fields)) {
        persistenceErrors.count(fields, file);
        errors?.note(service, fields);
      } else notifyLife(fields);
      readEntryTime(newestEntry, fields);
      for (let i = 0; i < rules.length; i++) rules[i]!.count(fields);
    },
    continuation: addBytes,
    blank: addBytes,
    dropped(reason, lineBytes) {
      pendingBytes += lineBytes;
      dropped[reason].add(1);
      drops.count('logs', reason);
    },
    skipped: (reason, count) => skipped[reason].add(count),
    flush() {
      if (pendingBytes > 0) bytes.add(pendingBytes);
      pendingBytes = 0;
      errors?.flush();
      exposeNewestEntry(newestEntry);
    },
    sweep(nowMs) {
      for (const rule of rules) rule.sweep(nowMs);
    },
  };
}

/** One counter per reason of a closed list, all at 0 from the start. */
function countersByReason<R extends string>(
  intake: Intake,
  { name, help }: { name: string; help: string },
  reasons: readonly R[],
): Record<R, Counter> {
  const counters = reasons.map((reason) => [reason, intake.counter(name, { reason }, { help })]);
  return Object.fromEntries(counters);
}

interface EntryCounts {
  /** Counts the entry and returns whether its level is error or fatal. */
  count(fields: Fields): boolean;
}

interface EntrySeries {
  handle: Counter;
  isSevere: boolean;
}

const severe: readonly string[] = ['error', 'fatal'];
const levels: readonly string[] = logLevels;

/** The level as a label: one of the spec's five levels, else `other`; undefined if it is missing. */
function levelLabel(text: string | undefined): string | undefined {
  if (!text) return undefined;
  return levels.includes(text) ? text : 'other';
}

/**
 * Counts entries by level and logger. `error` and `fatal` without a logger exist at 0 from the start, so that `rate()` sees the
 * first entry.
 */
function createEntryCounts(intake: LogIntake, slots: Slots, levelKey: string): EntryCounts {
  const level = slots.of(levelKey);
  const logger = slots.of('logger');
  const { name, help } = entriesFamily;
  for (const text of severe) intake.counter(name, { level: text }, { help });

  const open = (fields: Fields): EntrySeries => {
    const tags: Record<string, string> = {};
    const levelText = levelLabel(textOf(fields, level));
    if (levelText) tags.level = levelText;
    const loggerText = textOf(fields, logger);
    if (loggerText) tags.logger = loggerText;
    return {
      handle: intake.counter(name, tags, { help }),
      isSevere: levelText !== undefined && severe.includes(levelText),
    };
  };
  const series = createLogSeries<EntrySeries>({
    slots: [level, logger],
    intake,
    open,
    withHandle: ({ isSevere }, handle) => ({ handle: handle as unknown as Counter, isSevere }),
    variantOf: ({ isSevere }) => isSevere,
  });
  return {
    count(fields) {
      const { handle, isSevere } = series.find(fields);
      handle.add(1);
      return isSevere;
    },
  };
}

/** The whole messages that a process writes once at its start. `Starting service` also begins other messages. */
const startup =
  /^(?:service started|Starting service(?: (?:\w+[-_])?(?:frontend|history|matching|worker))?|(?:frontend|history|matching|worker) started)$/;
const minStartupBytes = 'worker started'.length;
const maxStartupBytes = 48;
/** The first four bytes of the start-up messages. They rule out nearly every other line. */
const startupPrefixes = new Set(
  ['service', 'Starting', 'frontend', 'history', 'matching', 'worker'].map((text) =>
    Buffer.from(text).readInt32LE(0),
  ),
);

/** Returns an entry's message if it is a start-up message. */
function createStartupLines(slots: Slots): (fields: Fields) => string | undefined {
  const msg = slots.of('msg');
  return (fields) => {
    if (fields.kind[msg] !== plainText) return undefined;
    const from = fields.from[msg]!;
    const length = fields.to[msg]! - from;
    if (length < minStartupBytes || length > maxStartupBytes) return undefined;
    if (!startupPrefixes.has(fields.view.getInt32(from, true))) return undefined;
    const text = textOf(fields, msg) as string;
    return startup.test(text) ? text : undefined;
  };
}
