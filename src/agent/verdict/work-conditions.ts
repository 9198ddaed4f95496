import { withUnit } from '../../monitoring/alert.ts';
import { largestCanaryShare } from '../../monitoring/alerts/workflows.ts';
import { isCanary } from './collected.ts';
import { type Condition, type Judged, limited, longMs, minute, onRateOf, shareOf } from './condition.ts';
import { limitOf } from './kinds.ts';

/** For how long no task of a list was handed out, ms; the list has been known for longer than that. */
const idleMs = (name: string, key: string, { tracks }: Judged): number =>
  tracks.unchangedMs(name, key) ?? Number.POSITIVE_INFINITY;

const countsPolls = ({ tracks }: Judged) => tracks.keys('any polls').length > 0;

const unpolledMs = 2 * minute;

/** The number of tasks that wait in a list that no worker polls. A poll that finds nothing ends within a minute. */
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

/** The share of a domain's closed runs with this outcome; undefined if fewer than one run in a hundred seconds had it. */
function closedShare(track: string, key: string, { tracks, spanMs }: Judged, closedTrack = 'closed') {
  const ended = tracks.rate(track, key, spanMs) ?? 0;
  // Runs with this outcome are among the closed runs.
  return ended < 0.01 ? undefined : ended / tracks.rate(closedTrack, key, spanMs)!;
}

const isOfCanary = (key: string): boolean => isCanary((JSON.parse(key) as { domain: string }).domain);

/**
 * The share of timeouts. If the canary has as large a share, the success of the canary counts instead, unless the share is larger
 * than any share that a canary intends.
 */
const timeoutShare: Condition['value'] = (key, judged) => {
  const own = isOfCanary(key) ? undefined : closedShare('timeouts', key, judged);
  const ofCanary = closedShare('canary timeouts', '{}', judged, 'canary closed') ?? 0;
  return (own ?? Number.POSITIVE_INFINITY) <= Math.min(ofCanary, largestCanaryShare) ? 0 : own;
};

const failureShare: Condition['value'] = (key, judged) =>
  isOfCanary(key) ? undefined : closedShare('failures', key, judged);

const canarySilentMs = 15 * minute;
const history = JSON.stringify({ role: 'history' });

/**
 * Whether history was read all the time, so that completed workflows were seen: each scrape succeeded, or, without scrapes, each
 * health check passed.
 */
const wasRead = ({ tracks }: Judged): boolean => {
  const track = tracks.newest('read', history) === undefined ? 'role up' : 'read';
  return (
    tracks.newest(track, history) === undefined || (tracks.least(track, history, canarySilentMs) ?? 0) > 0
  );
};

/** For how long a canary that has completed enough workflows completed none, s, even if history began to count again since. */
const canarySilence: Condition['value'] = (key, judged) =>
  judged.tracks.newest('canary completed', key)! > limitOf('SvcCanaryFailing') && wasRead(judged)
    ? judged.tracks.unchangedMs('canary completed', key)! / 1e3
    : undefined;

const lateTasks: Condition['value'] = shareOf('task late', 'task calls');

/** Conditions on task lists, tasks and workflows. */
export const workConditions: readonly Condition[] = [
  {
    kind: 'task_latency',
    of: 'task calls',
    value: lateTasks,
    counts: 'task late',
    spanMs: 5 * minute,
    // The 95th percentile is above a bound if more than 5 % of the tasks are above it.
    limit: 0.05,
    unit: 'share',
    noun: `of the tasks wait longer than ${withUnit(limitOf('SvcHistoryTaskLatency'), 'seconds')}`,
    forMs: 5 * minute,
  },
  {
    kind: 'list_unpolled',
    of: 'backlog',
    value: unpolled,
    ...limited('SvcTaskListUnpolled'),
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
    value: (key, { tracks, spanMs }) => tracks.slope('backlog', key, spanMs),
    spanMs: 5 * minute,
    ...limited('SvcTaskListBacklogGrowth'),
    noun: 'more tasks wait each second',
  },
  {
    kind: 'workflow_timeouts',
    ...onRateOf('timeouts'),
    ...limited('SvcWorkflowTimeouts'),
    shownTimes: 60,
    noun: 'workflows a minute time out',
  },
  {
    kind: 'workflow_timeouts',
    of: 'timeouts',
    value: timeoutShare,
    counts: 'timeouts',
    spanMs: 5 * minute,
    ...limited('SvcWorkflowTimeoutShare', 'share'),
    noun: 'of the closed workflows timed out',
    forMs: 5 * minute,
  },
  {
    kind: 'workflow_failures',
    of: 'failures',
    value: failureShare,
    counts: 'failures',
    spanMs: 5 * minute,
    ...limited('SvcWorkflowFailures', 'share'),
    noun: 'of the closed workflows failed',
    forMs: 5 * minute,
  },
  {
    kind: 'canary',
    of: 'canary completed',
    value: canarySilence,
    limit: canarySilentMs / 1e3,
    unit: 'seconds',
    noun: 'without a completed workflow',
    heldMs: canarySilentMs,
  },
];
