import { type ThresholdUnit, withUnit } from '../../monitoring/alert.ts';
import { type KindOfProblem, limitOf } from './kinds.ts';
import type { Tracks } from './tracks.ts';

const minute = 60_000;
/** Rates are taken over this, and over less after a start: an alert waits longer, a reader of the page should not. */
const rateMs = 2 * minute;
const longMs = 10 * minute;

/** What a condition is judged by. */
interface Judged {
  tracks: Tracks;
  /** Wall clock. */
  nowMs: number;
}

/** A limit on a value of the service: the condition of an alert, by the agent's own values. */
export interface Condition {
  kind: KindOfProblem;
  /** The track whose keys are judged. */
  of: string;
  /** Undefined: not known, or too little traffic to judge. */
  value(key: string, judged: Judged): number | undefined;
  limit: number;
  unit: ThresholdUnit;
  /** Behind the number, such as `persistence errors a minute`. */
  noun: string;
  /** Multiplies the number for readers, such as 60 for a rate per minute. */
  shownTimes?: number;
  /** How long it must hold before it is a problem. */
  forMs?: number;
  /** How long it has held already when it is first seen: the span of a least value. */
  heldMs?: number;
  /** Of an increase within a span, which began with its first step: that span. */
  countedMs?: number;
}

/** The persistence errors that a role may log per second; those that it counts have the limit of the alert. */
export const loggedAtMost = 0.2;
/** Calls per second below which a share means nothing. */
const leastTraffic = 0.2;

function share(part: number | undefined, whole: number | undefined): number | undefined {
  if (part === undefined || whole === undefined || whole < leastTraffic) return undefined;
  // Requests may be missing for series that the role's reporter lost; each failed call was a request.
  return part / Math.max(part, whole);
}

const rateOf =
  (name: string, spanMs = rateMs): Condition['value'] =>
  (key, { tracks }) =>
    tracks.rate(name, key, spanMs);

const shareOf =
  (part: string, whole: string): Condition['value'] =>
  (key, { tracks }) =>
    share(tracks.rate(part, key, rateMs) ?? 0, tracks.rate(whole, key, rateMs));

const roleOf = (key: string): string => (JSON.parse(key) as { role: string }).role;

/** The share of requests that fail. A callee that tells faults from answers is judged by its faults alone. */
const requestShare: Condition['value'] = (key, { tracks }) => {
  const { callee } = JSON.parse(key) as { callee: string };
  const own = JSON.stringify({ role: callee });
  const requests = tracks.rate('own requests', own, rateMs);
  if (requests !== undefined) return share(tracks.rate('own errors', own, rateMs) ?? 0, requests);
  return share(tracks.rate('request errors', key, rateMs) ?? 0, tracks.rate('request requests', key, rateMs));
};

/** Since when no task of a list was handed out; the list is known for longer than that. */
const idleMs = (name: string, key: string, { tracks }: Judged): number =>
  tracks.unchangedMs(name, key) ?? Number.POSITIVE_INFINITY;

const countsPolls = ({ tracks }: Judged) => tracks.keys('any polls').length > 0;

const unpolledMs = 2 * minute;

/** Tasks that wait in a list that no worker polls: a poll that finds nothing ends within a minute. */
const unpolled: Condition['value'] = (key, judged) => {
  const waiting = judged.tracks.least('backlog', key, unpolledMs);
  const pollers = judged.tracks.newest('pollers', key);
  if (pollers === undefined && !countsPolls(judged)) return undefined;
  const isPolled = pollers === undefined ? idleMs('polls', key, judged) < unpolledMs : pollers > 0;
  return isPolled ? 0 : waiting;
};

const stalled: Condition['value'] = (key, judged) => {
  if (idleMs('handed', key, judged) < longMs) return 0;
  return countsPolls(judged) ? judged.tracks.least('backlog', key, longMs) : undefined;
};

const timeoutShare: Condition['value'] = (key, { tracks }) => {
  const timeouts = tracks.rate('timeouts', key, 5 * minute);
  const closed = tracks.rate('closed', key, 5 * minute);
  if (timeouts === undefined || closed === undefined || timeouts < 0.01) return undefined;
  return timeouts / closed;
};

const silentMs = 60 * minute;

const silence: Condition['value'] = (key, { tracks }) => {
  const isUp = (tracks.newest('role up', key) ?? 0) > 0;
  return isUp ? (tracks.unchangedMs('log bytes', key) ?? 0) / 1e3 : 0;
};

const ageOf =
  (name: string): Condition['value'] =>
  (key, { tracks, nowMs }) => {
    const seconds = tracks.newest(name, key);
    return seconds === undefined || seconds === 0 ? undefined : nowMs / 1e3 - seconds;
  };

const archiveAge: Condition['value'] = (key, judged) =>
  (judged.tracks.rate('completed', '{}', longMs) ?? 0) > 0 ? ageOf('archived')(key, judged) : undefined;

const backupAhead: Condition['value'] = (key, judged) => -(ageOf('backup end')(key, judged) ?? 0);

const lossesOf: Condition['value'] = (key, { tracks }) => {
  const { component, reason } = JSON.parse(key) as { component: string; reason: string };
  const isRule = reason === 'forbidden_tag' || reason === 'forbidden_value';
  // A page that a role did not deliver is a problem of the role.
  return isRule || (component === 'scrape' && reason === 'failed')
    ? undefined
    : tracks.rate('dropped', key, 5 * minute);
};

const none = { limit: 0, unit: 'none' } as const;
const limited = (alert: Parameters<typeof limitOf>[0], unit: ThresholdUnit = 'none') => ({
  limit: limitOf(alert),
  unit,
});

/** Every condition on a value; the limits are those of the alerts. */
export const conditions: readonly Condition[] = [
  {
    kind: 'persistence_errors',
    of: 'persistence errors',
    value: rateOf('persistence errors'),
    ...limited('SvcPersistenceErrorRate'),
    shownTimes: 60,
    noun: 'persistence errors a minute are in its metrics',
  },
  {
    kind: 'persistence_errors',
    of: 'persistence logged',
    value: rateOf('persistence logged'),
    limit: loggedAtMost,
    unit: 'none',
    shownTimes: 60,
    noun: 'persistence errors a minute are in its log',
  },
  {
    kind: 'persistence_errors',
    of: 'persistence requests',
    value: shareOf('persistence errors', 'persistence requests'),
    ...limited('SvcPersistenceErrorRatio', 'share'),
    noun: 'of its persistence calls fail',
  },
  {
    kind: 'persistence_latency',
    of: 'persistence calls',
    value: shareOf('persistence slow', 'persistence calls'),
    // The 99th percentile is above a bound if more than 1 % of the calls are.
    limit: 0.01,
    unit: 'share',
    noun: `of the calls take longer than ${withUnit(limitOf('SvcPersistenceLatency'), 'seconds')}`,
  },
  {
    kind: 'frontend_latency',
    of: 'frontend calls',
    value: shareOf('frontend slow', 'frontend calls'),
    limit: 0.05,
    unit: 'share',
    noun: `of the calls take longer than ${withUnit(limitOf('SvcFrontendLatency'), 'seconds')}`,
  },
  {
    kind: 'request_errors',
    of: 'request requests',
    value: requestShare,
    ...limited('SvcRequestErrors', 'share'),
    noun: 'of the requests fail',
  },
  {
    kind: 'list_unpolled',
    of: 'backlog',
    value: unpolled,
    ...none,
    noun: 'tasks wait, and no worker polls',
    heldMs: unpolledMs,
  },
  {
    kind: 'list_stalled',
    of: 'backlog',
    value: stalled,
    ...limited('SvcTaskListStalled'),
    noun: 'tasks wait, and none was handed to a worker for 10 minutes',
    heldMs: longMs,
  },
  {
    kind: 'backlog_growth',
    of: 'backlog',
    value: (key, { tracks }) => tracks.slope('backlog', key, 5 * minute),
    ...limited('SvcTaskListBacklogGrowth'),
    noun: 'more tasks wait each second',
  },
  {
    kind: 'workflow_timeouts',
    of: 'timeouts',
    value: rateOf('timeouts'),
    ...limited('SvcWorkflowTimeouts'),
    shownTimes: 60,
    noun: 'workflows a minute time out',
  },
  {
    kind: 'workflow_timeouts',
    of: 'timeouts',
    value: timeoutShare,
    ...limited('SvcWorkflowTimeoutShare', 'share'),
    noun: 'of the closed workflows timed out',
    forMs: 5 * minute,
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
    of: 'gc',
    value: rateOf('gc', 5 * minute),
    ...limited('SvcGCPause'),
    noun: 'ms of pauses each second',
    forMs: 5 * minute,
  },
  {
    kind: 'fatal',
    of: 'fatal',
    value: (key, { tracks }) => tracks.increase('fatal', key, longMs),
    ...limited('SvcFatalLogEntry'),
    noun: 'fatal entries in ten minutes',
    countedMs: longMs,
  },
  {
    kind: 'crash_loop',
    of: 'restarts',
    value: (key, { tracks }) => tracks.increase('restarts', key, 15 * minute),
    ...limited('SvcCrashLooping'),
    noun: 'restarts in a quarter of an hour',
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
    noun: 'bytes were gone before they were read',
  },
  {
    kind: 'dropping',
    of: 'dropped',
    value: lossesOf,
    ...limited('SvcAgentDropping'),
    shownTimes: 60,
    noun: 'items a minute are dropped',
    forMs: 15 * minute,
  },
  {
    kind: 'replication_failures',
    of: 'replication failures',
    value: rateOf('replication failures'),
    ...limited('SvcReplicationTaskFailures'),
    shownTimes: 60,
    noun: 'replication tasks a minute fail',
  },
  {
    kind: 'wal_stalled',
    of: 'wal oldest',
    value: ageOf('wal oldest'),
    ...limited('SvcWalArchivingStalled', 'seconds'),
    noun: 'since the oldest segment that is not archived was closed',
  },
  {
    kind: 'archival_stalled',
    of: 'archived',
    value: archiveAge,
    ...limited('SvcArchivalStalled', 'seconds'),
    noun: 'since the newest object, although workflows complete',
  },
  {
    kind: 'backup_skew',
    of: 'backup end',
    value: backupAhead,
    ...limited('SvcBackupClockSkew', 'seconds'),
    noun: 'ahead of this clock',
  },
];

/** How much of the persistence errors in the log the role's own metrics show, by role; only of roles that log any. */
export function truthOf(tracks: Tracks): Record<string, number> {
  const truth: Record<string, number> = {};
  for (const key of tracks.keys('persistence logged')) {
    const logged = tracks.rate('persistence logged', key, 5 * minute);
    if (logged === undefined || logged === 0) continue;
    truth[roleOf(key)] = Math.min(1, (tracks.rate('persistence errors', key, 5 * minute) ?? 0) / logged);
  }
  return truth;
}

const settling = new Map<string, number>();
for (const { kind, forMs = 0, heldMs = 0 } of conditions)
  settling.set(kind, Math.max(settling.get(kind) ?? 0, forMs + Math.max(heldMs, rateMs) + minute));

/** How long after a start it takes until a kind can be judged, ms; 0 for kinds that are no condition on a value. */
export const settlingMs = (kind: string): number => settling.get(kind) ?? 0;
