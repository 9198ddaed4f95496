import { withUnit } from '../../monitoring/alert.ts';
import {
  type Condition,
  type Counter,
  type Judged,
  limited,
  longMs,
  minute,
  none,
  onRateOf,
  rateMs,
  share,
  shareOf,
} from './condition.ts';
import { limitOf } from './kinds.ts';
import type { Tracks } from './tracks.ts';
import { workConditions } from './work-conditions.ts';

/** How many persistence errors per second a role may log. The errors in its metrics have the limit of the alert. */
const loggedAtMost = 0.2;
const roleOf = (key: string): string => (JSON.parse(key) as { role: string }).role;

/** A callee that serves less than this share of the requests that others send it does not see the failures. */
const leastServed = 0.5;

/**
 * The share of requests that fail. If a callee distinguishes its faults from answers, only its own count of faults is used. The
 * callers of such a product count answers as failures, so that nothing is known without the callee's count.
 */
const requestShare: Condition['value'] = (key, judged) => {
  const { tracks, spanMs } = judged;
  const { callee } = JSON.parse(key) as { callee: string };
  const own = JSON.stringify({ role: callee });
  const isServed = tracks.rate('served requests', own, spanMs) !== undefined;
  if (!isServed && callee !== 'frontend' && tracks.keys('served requests').length > 0) return undefined;
  const [errors, of] = failedRequests(key, judged);
  const all = errors === 'served errors' ? 'served quick' : 'request requests';
  return share(tracks.rate(errors, of, spanMs) ?? 0, tracks.rate(all, of, spanMs));
};

/** The counter of the failed requests: the callee's counter if the callee sees the failures, or else the caller's counter. */
function failedRequests(key: string, { tracks, spanMs }: Judged): Counter {
  const own = JSON.stringify({ role: (JSON.parse(key) as { callee: string }).callee });
  const served = tracks.rate('served requests', own, spanMs);
  const asked = tracks.rate('asked', own, spanMs) ?? 0;
  return served !== undefined && served >= leastServed * asked
    ? ['served errors', own]
    : ['request errors', key];
}

/**
 * A role that runs for longer than this after a restart is not in a crash loop: Kubernetes waits at most five minutes between
 * restarts.
 */
const longestRestartMs = 6 * minute;

const silentMs = 60 * minute;

const silence: Condition['value'] = (key, { tracks }) => {
  const isUp = (tracks.newest('role up', key) ?? 0) > 0;
  return isUp ? (tracks.unchangedMs('log bytes', key) ?? 0) / 1e3 : 0;
};

const ageOf =
  (name: string): Condition['value'] =>
  (key, { tracks, nowMs }) => {
    const seconds = tracks.newest(name, key) ?? 0;
    return seconds === 0 ? undefined : nowMs / 1e3 - seconds;
  };

const archiveAge = ageOf('archived');

/** The archive must have something to receive: while no workflow completes, an old archive may be complete. */
const ifWorkflowsComplete: Condition['begins'] = {
  if: ({ tracks }) => (tracks.rate('completed', '{}', longMs) ?? 0) > 0,
  clause: 'although workflows complete',
};

/** How much older the newest object of an archive is than the shortest retention of a domain that archives, s. */
const pastRetention: Condition['value'] = (key, judged) => {
  const { tracks } = judged;
  const { archive } = JSON.parse(key) as { archive: string };
  const retentions = tracks.keys('archiving').flatMap((of) => {
    const { domain, archive: its } = JSON.parse(of) as { domain: string; archive: string };
    const isOn = its === archive && tracks.newest('archiving', of) === 1;
    const seconds = isOn ? tracks.newest('retention', JSON.stringify({ domain })) : undefined;
    return seconds === undefined ? [] : [seconds];
  });
  const age = archiveAge(key, judged);
  return age === undefined || retentions.length === 0 ? undefined : age - Math.min(...retentions);
};

const backupAhead: Condition['value'] = (key, judged) => -(ageOf('backup end')(key, judged) ?? 0);

const lossesOf: Condition['value'] = (key, { tracks, spanMs }) => {
  const { component, reason } = JSON.parse(key) as { component: string; reason: string };
  const isRule = reason === 'forbidden_tag' || reason === 'forbidden_value';
  // If a role did not deliver its page, that is a problem of the role.
  return isRule || (component === 'scrape' && reason === 'failed')
    ? undefined
    : tracks.rate('dropped', key, spanMs);
};

/** Every condition on a value. The limits are the limits of the alerts. */
export const conditions: readonly Condition[] = [
  {
    kind: 'persistence_errors',
    ...onRateOf('persistence errors'),
    ...limited('SvcPersistenceErrorRate'),
    shownTimes: 60,
    noun: 'persistence errors a minute are in its metrics',
  },
  {
    kind: 'persistence_errors',
    ...onRateOf('persistence logged'),
    limit: loggedAtMost,
    unit: 'none',
    shownTimes: 60,
    noun: 'persistence errors a minute are in its log',
  },
  {
    kind: 'persistence_errors',
    of: 'persistence requests',
    value: shareOf('persistence errors', 'persistence requests'),
    counts: 'persistence errors',
    ...limited('SvcPersistenceErrorRatio', 'share'),
    noun: 'of its persistence calls fail',
  },
  {
    kind: 'persistence_latency',
    of: 'persistence calls',
    value: shareOf('persistence slow', 'persistence calls'),
    counts: 'persistence slow',
    // The 99th percentile is above a bound if more than 1 % of the calls are above it.
    limit: 0.01,
    unit: 'share',
    noun: `of the calls take longer than ${withUnit(limitOf('SvcPersistenceLatency'), 'seconds')}`,
  },
  {
    kind: 'frontend_latency',
    of: 'frontend calls',
    value: shareOf('frontend slow', 'frontend calls'),
    counts: 'frontend slow',
    limit: 0.05,
    unit: 'share',
    noun: `of the calls take longer than ${withUnit(limitOf('SvcFrontendLatency'), 'seconds')}`,
  },
  {
    kind: 'request_errors',
    of: 'request requests',
    value: requestShare,
    counts: failedRequests,
    ...limited('SvcRequestErrors', 'share'),
    noun: 'of the requests fail',
  },
  ...workConditions,
  {
    kind: 'shard_movement',
    ...onRateOf('shards closed'),
    spanMs: 5 * minute,
    ...limited('SvcShardMovement'),
    shownTimes: 60,
    noun: 'shards a minute are released',
    forMs: 10 * minute,
  },
  {
    kind: 'heap',
    of: 'heap',
    value: (key, { tracks }) => tracks.least('heap', key, longMs),
    ...limited('SvcHeapMemory', 'bytes'),
    noun: 'of heap for ten minutes',
    heldMs: longMs,
  },
  {
    kind: 'gc_pause',
    ...onRateOf('gc'),
    spanMs: 5 * minute,
    ...limited('SvcGCPause'),
    noun: 'ms of pauses each second',
    forMs: 5 * minute,
  },
  {
    kind: 'fatal',
    of: 'fatal',
    value: (key, { tracks }) => tracks.increase('fatal', key, longMs),
    ...limited('SvcFatalLogEntry'),
    noun: 'fatal entry|entries in ten minutes',
    countedMs: longMs,
  },
  {
    kind: 'crash_loop',
    of: 'restarts',
    value: (key, { tracks }) => tracks.increase('restarts', key, 15 * minute),
    ...limited('SvcCrashLooping'),
    noun: 'restarts in a quarter of an hour',
    pauseMs: longestRestartMs,
    countedMs: 15 * minute,
  },
  {
    kind: 'log_silent',
    of: 'log bytes',
    value: silence,
    limit: silentMs / 1e3,
    unit: 'seconds',
    noun: 'without a byte, although the role is up',
    heldMs: silentMs,
  },
  {
    kind: 'log_lost',
    of: 'log lost',
    value: (key, { tracks }) => tracks.increase('log lost', key, longMs),
    ...limited('SvcLogBytesLost', 'none'),
    noun: 'byte|bytes was|were gone before being read',
    countedMs: longMs,
  },
  {
    kind: 'dropping',
    of: 'dropped',
    value: lossesOf,
    counts: 'dropped',
    spanMs: 5 * minute,
    ...limited('SvcAgentDropping'),
    shownTimes: 60,
    noun: 'item|items a minute is|are dropped',
    forMs: 15 * minute,
  },
  {
    kind: 'replication_failures',
    ...onRateOf('replication failures'),
    ...limited('SvcReplicationTaskFailures'),
    shownTimes: 60,
    noun: 'replication tasks a minute fail',
  },
  {
    kind: 'wal_stalled',
    of: 'wal oldest',
    value: ageOf('wal oldest'),
    ...limited('SvcWalArchivingStalled', 'seconds'),
    noun: 'since the oldest unarchived segment was closed',
  },
  {
    kind: 'archival_stalled',
    of: 'archived',
    value: archiveAge,
    ...limited('SvcArchivalStalled', 'seconds'),
    noun: 'since the newest object',
    begins: ifWorkflowsComplete,
  },
  {
    kind: 'retention_unarchived',
    of: 'archived',
    value: pastRetention,
    limit: 0,
    unit: 'seconds',
    noun: 'past the shortest retention',
    begins: ifWorkflowsComplete,
  },
  {
    kind: 'refused',
    of: 'refused',
    value: (key, { tracks }) => tracks.increase('refused', key, longMs),
    ...none,
    noun: 'series was|were refused in ten minutes',
    countedMs: longMs,
  },
  {
    kind: 'backup_skew',
    of: 'backup end',
    value: backupAhead,
    ...limited('SvcBackupClockSkew', 'seconds'),
    noun: 'ahead of the agent’s clock',
  },
];

const truthMs = 5 * minute;

/**
 * Whether a role's metrics were read all the time, so that their count compares with the log. After a start, the agent reads
 * entries that are older than the first page; a minute more lets them leave the window. A role without a page sends its counts.
 */
function wereMetricsRead(tracks: Tracks, key: string): boolean {
  const spanMs = truthMs + minute;
  const hasPage = tracks.newest('read', key) !== undefined;
  return hasPage ? (tracks.least('read', key, spanMs) ?? 0) > 0 : tracks.sampledMs() >= spanMs;
}

/**
 * The share of the logged persistence errors that the role's own metrics count, by role; only for roles that log such errors and
 * whose metrics were read all the time.
 */
export function truthOf(tracks: Tracks): Record<string, number> {
  const truth: Record<string, number> = {};
  for (const key of tracks.keys('persistence logged')) {
    const logged = tracks.rate('persistence logged', key, truthMs) ?? 0;
    if (logged === 0 || !wereMetricsRead(tracks, key)) continue;
    truth[roleOf(key)] = Math.min(1, (tracks.rate('persistence errors', key, truthMs) ?? 0) / logged);
  }
  return truth;
}

const settling = new Map<string, number>();
const lookBacks = new Map<string, number>();
const pauses = new Map<string, number>();
const most = (of: Map<string, number>, kind: string, ms: number) =>
  of.set(kind, Math.max(of.get(kind) ?? 0, ms));
for (const { kind, heldMs = 0, countedMs = 0, spanMs = rateMs, pauseMs = countedMs } of conditions) {
  most(settling, kind, Math.max(heldMs, rateMs) + minute);
  most(lookBacks, kind, Math.max(spanMs, countedMs));
  most(pauses, kind, pauseMs);
}

/**
 * The window of a kind, ms: a problem is still seen for this long after its events ended. 0 for kinds without a condition on a
 * value.
 */
export const lookBackMs = (kind: string): number => lookBacks.get(kind) ?? 0;

/** How long a problem of a kind can last without a counted event, ms. 0 for kinds that are not counted within a span. */
export const longestPauseMs = (kind: string): number => pauses.get(kind) ?? 0;

/**
 * How long after a start it takes until a kind shows whether it lasts, ms: a span of values that must all be above a limit, or
 * enough of a rate. 0 for kinds without a condition on a value.
 */
export const settlingMs = (kind: string): number => settling.get(kind) ?? 0;
