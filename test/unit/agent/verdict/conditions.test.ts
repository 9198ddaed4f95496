import { expect, test } from 'vitest';
import type { Row } from '../../../../src/agent/verdict/collected.ts';
import { conditions } from '../../../../src/agent/verdict/conditions.ts';
import { createServiceReadings } from '../../../../src/agent/verdict/readings.ts';
import { createTracks } from '../../../../src/agent/verdict/tracks.ts';

/**
 * Each condition exactly at its limit and just above it, and the sample in which it is first a problem. The values are computed
 * by hand from the limits of the alerts; a sample is taken every 15 seconds.
 */

const stepMs = 15_000;
const startMs = Date.parse('2026-01-01T00:00:00.000Z');
type Families = Readonly<Record<string, readonly Row[]>>;

interface Case {
  kind: string;
  what: string;
  /** The series of a sample. */
  rows(step: number, level: number): Families;
  at: number;
  above: number;
  /** The first sample that shows the problem; samples are numbered from 0. */
  from: number;
  /** The reported start, in seconds after the first sample. */
  since?: number;
  /** The reported value just above the limit: rates are told by the minute, and a sample is a quarter of one. */
  value?: string;
}

const row = (
  service: string,
  value: number,
  labels: Record<string, string> = {},
  more: Partial<Row> = {},
): Row => ({ service, labels, value, ...more });
const orders = { domain: 'orders' };
const list = { ...orders, tasklist: 'pay' };
const canary = { domain: 'the_canary' };
const archive = { archive: 'history', scheme: 's3' };
/** A role that is down in one sample. */
const isUp = (step: number) => (step === 30 ? 0 : 1);
const nowS = (step: number) => (startMs + step * stepMs) / 1e3;
const calls = (step: number, slow: number, bound: number, labels = {}, all = 1000): Row[] => [
  row('history', step * all, labels, {
    buckets: [
      [bound / 2, 0],
      [bound, step * (all - slow)],
      [2 * bound, step * all],
    ],
  }),
];

const cases: readonly Case[] = [
  {
    kind: 'persistence_errors',
    what: 'more than a fifth of one a second in the log',
    rows: (step, level) => ({ svc_log_persistence_errors_total: [row('history', step * level)] }),
    ...{ at: 3, above: 3.1, from: 4, since: 15, value: '12 persistence errors a minute are in its log' },
  },
  {
    kind: 'persistence_errors',
    what: 'more than a twentieth of the calls',
    rows: (step, level) => ({
      svc_persistence_requests: [row('history', step * 1000)],
      svc_persistence_errors: [row('history', step * level)],
    }),
    ...{ at: 50, above: 51, from: 4 },
  },
  {
    kind: 'persistence_latency',
    what: 'more than a hundredth of the calls above a second',
    rows: (step, level) => ({ svc_persistence_latency: calls(step, level, 1, { operation: 'Get' }) }),
    ...{ at: 10, above: 11, from: 4 },
  },
  {
    kind: 'frontend_latency',
    what: 'more than a twentieth of the calls above half a second',
    rows: (step, level) => ({
      svc_frontend_client_latency: [
        ...calls(step, level, 0.5, { operation: 'StartWorkflowExecution' }),
        // Polls wait by design.
        ...calls(step, 1000, 0.5, { operation: 'PollForDecisionTask' }),
      ],
    }),
    ...{ at: 50, above: 51, from: 4 },
  },
  {
    kind: 'request_errors',
    what: 'more than a twentieth of the requests, as their caller counts them',
    rows: (step, level) => ({
      svc_history_client_requests: [row('frontend', step * 1000)],
      svc_history_client_errors: [row('frontend', step * level)],
    }),
    ...{ at: 50, above: 51, from: 4 },
  },
  {
    kind: 'request_errors',
    what: 'more than a twentieth of what a role served, less polls',
    rows: (step, level) => ({
      svc_history_client_requests: [row('frontend', step * 2000)],
      svc_served_requests: [row('history', step * 1000), row('history', step * 9000, { operation: 'PollX' })],
      svc_served_errors: [row('history', step * level), row('history', step * 4000, { operation: 'PollX' })],
    }),
    ...{ at: 50, above: 51, from: 4 },
  },
  {
    kind: 'request_errors',
    what: 'a role that half of the requests do not reach is judged by its callers',
    rows: (step, level) => ({
      svc_history_client_requests: [row('frontend', step * 1000)],
      svc_history_client_errors: [row('frontend', step * 400)],
      svc_served_requests: [row('history', step * (1000 - level))],
    }),
    ...{ at: 500, above: 501, from: 4 },
  },
  {
    kind: 'shard_movement',
    what: 'more than a tenth of one a second, for ten minutes',
    rows: (step, level) => ({ svc_history_shard_context_closed: [row('history', step * level)] }),
    ...{ at: 1.5, above: 1.6, from: 44, since: 15, value: '6.4 shards a minute are released' },
  },
  {
    kind: 'task_latency',
    what: 'more than a twentieth of the transfer tasks above five seconds, for five minutes',
    rows: (step, level) => ({
      svc_history_task_queue_latency: [
        ...calls(step, level, 5, { operation: 'TransferActiveTaskDecision' }),
        ...calls(step, 1000, 5, { operation: 'TransferStandbyTaskDecision' }),
      ],
    }),
    ...{ at: 50, above: 51, from: 24, since: 15 },
  },
  {
    kind: 'list_unpolled',
    what: 'a task and no poller for two minutes',
    rows: (_, level) => ({
      svc_matching_tasklist_backlog: [row('matching', level, list)],
      svc_matching_pollers: [row('matching', 0, list)],
    }),
    // Nine tenths of the span are enough, because samples are some seconds apart.
    ...{ at: 0, above: 1, from: 8, since: 0 },
  },
  {
    kind: 'list_stalled',
    what: 'more than ten tasks for ten minutes, and polls get none',
    rows: (step, level) => ({
      svc_matching_tasklist_backlog: [row('matching', level, list)],
      svc_matching_pollers: [row('matching', 2, list)],
      svc_matching_poll_success: [row('matching', 9, list)],
      svc_matching_poll_timeout: [row('matching', step, list)],
    }),
    ...{ at: 10, above: 11, from: 40, since: 0 },
  },
  {
    kind: 'backlog_growth',
    what: 'more than a hundred tasks a second',
    rows: (step, level) => ({
      svc_matching_tasklist_backlog: [row('matching', 1 + step * level, list)],
      svc_matching_pollers: [row('matching', 2, list)],
    }),
    ...{ at: 1500, above: 1515, from: 4 },
  },
  {
    kind: 'workflow_timeouts',
    what: 'more than five a second',
    rows: (step, level) => ({
      svc_workflow_timeout: [row('history', step * level, orders)],
      svc_workflow_completed: [row('history', step * 100_000, orders)],
    }),
    ...{ at: 75, above: 76, from: 4, value: '304 workflows a minute time out' },
  },
  {
    kind: 'workflow_timeouts',
    what: 'more than a twentieth of those that close, for five minutes',
    rows: (step, level) => ({
      svc_workflow_timeout: [row('history', step * level, orders)],
      svc_workflow_failed: [row('history', step * (50 - level), orders)],
      svc_workflow_completed: [row('history', step * 800, orders)],
      svc_workflow_canceled: [row('history', step * 100, orders)],
      svc_workflow_continued_as_new: [row('history', step * 50, orders)],
    }),
    ...{ at: 50, above: 51, from: 24, since: 15 },
  },
  {
    kind: 'workflow_timeouts',
    what: 'a larger share than that of a canary',
    rows: (step, level) => ({
      svc_workflow_timeout: [row('history', step * level, orders), row('history', step * 10, canary)],
      svc_workflow_completed: [
        row('history', step * (100 - level), orders),
        row('history', step * 90, canary),
      ],
    }),
    ...{ at: 10, above: 11, from: 24 },
  },
  {
    kind: 'workflow_timeouts',
    what: 'more than half, although a canary loses nearly all',
    rows: (step, level) => ({
      svc_workflow_timeout: [row('history', step * level, orders), row('history', step * 39, canary)],
      svc_workflow_completed: [row('history', step * (40 - level), orders), row('history', step, canary)],
    }),
    ...{ at: 20, above: 21, from: 24 },
  },
  {
    kind: 'workflow_failures',
    what: 'more than a fifth of those that close, for five minutes',
    rows: (step, level) => ({
      svc_workflow_failed: [row('history', step * level, orders), row('history', step * 90, canary)],
      svc_workflow_completed: [row('history', step * (100 - level), orders)],
    }),
    ...{ at: 20, above: 21, from: 24, since: 15 },
  },
  {
    kind: 'canary',
    what: 'a canary that has completed more than ten workflows, and none for a quarter of an hour',
    rows: (_, level) => ({ svc_workflow_completed: [row('history', level, canary)] }),
    ...{ at: 10, above: 11, from: 61, since: 15 },
  },
  {
    kind: 'canary',
    what: 'the same where history is scraped',
    rows: (_, level) => ({
      svc_workflow_completed: [row('history', level, canary)],
      svc_role_scrape_up: [row('history', 1), row('matching', 0)],
    }),
    ...{ at: 10, above: 11, from: 61, since: 15 },
  },
  {
    kind: 'canary',
    what: 'after history has started again, whether or not its counter is there',
    rows: (step, level) => {
      const completed = [level, ...Array(20).fill(undefined)][step] ?? (step > 40 ? 0 : undefined);
      return {
        svc_workflow_completed: completed === undefined ? [] : [row('history', completed, canary)],
        svc_role_scrape_up: [row('history', 1)],
      };
    },
    ...{ at: 10, above: 11, from: 61, since: 15 },
  },
  {
    kind: 'canary',
    what: 'what it completed before and after a start of history, together',
    rows: (step, level) => ({
      svc_workflow_completed: [row('history', step < 5 ? 6 : level - 6, canary)],
      svc_role_up: [row('history', 1)],
    }),
    ...{ at: 10, above: 11, from: 66 },
  },
  {
    kind: 'canary',
    what: 'a quarter of an hour after a health check that failed, where nothing is scraped',
    rows: (step, level) => ({
      svc_workflow_completed: [row('history', level, canary)],
      svc_role_up: [row('history', isUp(step))],
    }),
    ...{ at: 10, above: 11, from: 91 },
  },
  {
    kind: 'canary',
    what: 'a quarter of an hour after a scrape that failed',
    rows: (step, level) => ({
      svc_workflow_completed: step === 30 ? [] : [row('history', level, canary)],
      svc_role_scrape_up: [row('history', isUp(step))],
    }),
    ...{ at: 10, above: 11, from: 91 },
  },
  {
    kind: 'canary',
    what: 'a quarter of an hour after a scrape that failed, although each health check passed',
    rows: (step, level) => ({
      svc_workflow_completed: step === 30 ? [] : [row('history', level, canary)],
      svc_role_scrape_up: [row('history', isUp(step))],
      svc_role_up: [row('history', 1)],
    }),
    ...{ at: 10, above: 11, from: 91 },
  },
  {
    kind: 'heap',
    what: 'more than 8 GB for ten minutes',
    rows: (_, level) => ({ svc_memory_heap: [row('history', level)] }),
    ...{ at: 8e9, above: 8e9 + 1, from: 36 },
  },
  {
    kind: 'gc_pause',
    what: 'more than a tenth of the time, for five minutes',
    rows: (step, level) => ({
      svc_memory_gc_pause_ms: [row('history', step * level), row('history', 1e9 * step, { quantile: '0.5' })],
    }),
    ...{ at: 1500, above: 1515, from: 24, since: 15 },
  },
  {
    kind: 'gc_pause',
    what: 'a timer of that name counts seconds',
    rows: (step, level) => ({ svc_memory_gc_pause_ms: [row('history', step, {}, { sum: step * level })] }),
    ...{ at: 1.5, above: 1.515, from: 24 },
  },
  {
    kind: 'fatal',
    what: 'one entry',
    rows: (step, level) => ({
      svc_log_entries_total: [
        row('history', step < 2 ? 5 : 5 + level, { level: 'fatal' }),
        row('history', step * 100, { level: 'error' }),
      ],
    }),
    ...{ at: 0, above: 1, from: 2, since: 30 },
  },
  {
    kind: 'crash_loop',
    what: 'three restarts',
    rows: (step, level) => ({ svc_role_restarts_total: [row('history', step < 3 ? 7 : 7 + level)] }),
    ...{ at: 2, above: 3, from: 3, since: 45 },
  },
  {
    kind: 'log_silent',
    what: 'an hour without a byte while the role is up',
    rows: (_, level) => ({ svc_log_bytes_total: [row('history', 9)], svc_role_up: [row('history', level)] }),
    ...{ at: 0, above: 1, from: 241 },
  },
  {
    kind: 'log_lost',
    what: 'a byte',
    rows: (step, level) => ({
      svc_log_skipped_bytes_total: [
        row('history', step < 2 ? 0 : level, { reason: 'vanished' }),
        row('history', step * 1000, { reason: 'start_at_end' }),
      ],
    }),
    ...{ at: 0, above: 1, from: 2 },
  },
  {
    kind: 'dropping',
    what: 'anything, for a quarter of an hour',
    rows: (step, level) => ({
      svc_agent_dropped_total: [
        row('', step * level, { component: 'statsd', reason: 'buffer_full' }),
        row('', step, { component: 'statsd', reason: 'forbidden_tag' }),
        row('', step, { component: 'scrape', reason: 'failed' }),
      ],
    }),
    ...{ at: 0, above: 1, from: 64, since: 15, value: '4 items a minute are dropped' },
  },
  {
    kind: 'refused',
    what: 'a series above a limit',
    rows: (step, level) => ({
      svc_agent_series_refused_total: [
        row('', step < 2 ? 3 : 3 + level, { family: 'calls', reason: 'limit_total' }),
        row('', step, { family: 'calls', reason: 'kind_conflict' }),
      ],
    }),
    ...{ at: 0, above: 1, from: 2, since: 30 },
  },
  {
    kind: 'replication_failures',
    what: 'more than ten a second',
    rows: (step, level) => ({
      svc_replication_task_failures_total: [
        row('', step * level, { source_cluster: 'a', target_cluster: 'b' }),
      ],
    }),
    ...{ at: 150, above: 151, from: 4, value: '604 replication tasks a minute fail' },
  },
  {
    kind: 'wal_stalled',
    what: 'a segment of more than five minutes ago',
    rows: (step, level) => ({
      svc_store_wal_oldest_unarchived_timestamp_seconds: [
        row('', nowS(step) - level, { store: 'main', database: 'p' }),
      ],
    }),
    ...{ at: 300, above: 301, from: 0 },
  },
  {
    kind: 'archival_stalled',
    what: 'nothing for more than a day, although workflows complete',
    rows: (step, level) => ({
      svc_archival_newest_object_timestamp_seconds: [row('', nowS(step) - level, archive)],
      svc_workflow_completed: [row('history', step, orders)],
    }),
    ...{ at: 86_400, above: 86_401, from: 4 },
  },
  {
    kind: 'retention_unarchived',
    what: 'nothing for longer than the shortest retention of a domain that archives',
    rows: (step, level) => ({
      svc_archival_newest_object_timestamp_seconds: [row('', nowS(step) - level, archive)],
      svc_workflow_completed: [row('history', step, orders)],
      svc_domain_retention_seconds: [
        row('', 50_000, { domain: 'a' }),
        row('', 60_000, { domain: 'b' }),
        row('', 10_000, { domain: 'c' }),
        row('', 20_000, { domain: 'd' }),
      ],
      svc_domain_archival_enabled: [
        row('', 1, { domain: 'a', archive: 'history' }),
        row('', 1, { domain: 'b', archive: 'history' }),
        row('', 0, { domain: 'c', archive: 'history' }),
        row('', 1, { domain: 'd', archive: 'visibility' }),
      ],
    }),
    ...{ at: 50_000, above: 50_001, from: 4 },
  },
  {
    kind: 'backup_skew',
    what: 'an end of more than five minutes ahead',
    rows: (step, level) => ({
      svc_backup_last_success_timestamp_seconds: [row('', nowS(step) + level, { backup: 'n' })],
    }),
    ...{ at: 300, above: 301, from: 0 },
  },
];

/** Lets the agent sample these families, so long after its first sample. */
const sample = (readings: ReturnType<typeof createServiceReadings>, families: Families, afterMs: number) =>
  readings.sample((family) => families[family] ?? [], { nowMs: startMs + afterMs, monotonicMs: afterMs });

/** The kinds that are exceeded in each sample, and the last report. */
function played({ rows, kind }: Case, level: number, steps: number, apartMs = stepMs) {
  const readings = createServiceReadings();
  const shown: boolean[] = [];
  for (let step = 0; step <= steps; step++) {
    sample(readings, rows(step, level), step * apartMs);
    shown.push(readings.report().exceeded.some((one) => one.kind === kind && !one.onlyGoesOn));
  }
  const exceeded = readings.report().exceeded.filter(({ onlyGoesOn }) => !onlyGoesOn);
  return { first: shown.indexOf(true), exceeded };
}

test.each(cases.map((one) => [one.kind, one.what, one] as const))('%s: %s', (kind, _, one) => {
  expect(played(one, one.at, one.from + 8).exceeded.filter((found) => found.kind === kind)).toEqual([]);
  const { first, exceeded } = played(one, one.above, one.from);
  expect(first).toBe(one.from);
  // Nothing else is wrong.
  expect([...new Set(exceeded.map((found) => found.kind))]).toEqual([kind]);
  if (one.value !== undefined) expect(exceeded[0]?.value).toBe(one.value);
  if (one.since !== undefined) expect((Date.parse(exceeded[0]!.since) - startMs) / 1e3).toBe(one.since);
});

test.each(
  cases
    .filter(({ kind }) => ['list_unpolled', 'list_stalled', 'heap'].includes(kind))
    .map((one) => [one.kind, one.what, one] as const),
)('%s: %s, where each sample is a little late, as a timer has it', (_, __, one) => {
  expect(played(one, one.above, one.from + 1, stepMs + 30).first).toBe(one.from);
});

/** The report after a number of samples. */
function reported(steps: number, rowsAt: (step: number) => Families) {
  const readings = createServiceReadings();
  for (let step = 0; step <= steps; step++) sample(readings, rowsAt(step), step * stepMs);
  return readings.report();
}
const kindsAfter = (steps: number, rowsAt: (step: number) => Families) =>
  reported(steps, rowsAt)
    .exceeded.filter(({ onlyGoesOn }) => !onlyGoesOn)
    .map(({ kind }) => kind);

test('series of one role are added up', () => {
  // Each of the two is below ten a second.
  expect(
    kindsAfter(8, (step) => ({
      svc_persistence_requests: [row('history', step * 1e6)],
      svc_persistence_errors: [row('history', step * 80, { operation: 'Get' }), row('history', step * 80)],
    })),
  ).toEqual(['persistence_errors']);
});

test('workflows of no domain, or of all, are those of no domain', () => {
  const late = (labels: Record<string, string>) =>
    kindsAfter(30, (step) => ({ svc_workflow_timeout: [row('history', step * 200, labels)] }));
  expect(late(orders)).toEqual(['workflow_timeouts', 'workflow_timeouts']);
  expect(late({})).toEqual([]);
  expect(late({ domain: 'all' })).toEqual([]);
});

test('what a condition is about: a list with its domain, a queue, and no list without a name', () => {
  const waiting = (labels: Record<string, string>) =>
    reported(12, () => ({
      svc_matching_tasklist_backlog: [row('matching', 5, labels)],
      svc_matching_pollers: [row('matching', 0, labels)],
    })).exceeded.map(({ about }) => about);
  expect(waiting(list)).toEqual([list]);
  expect(waiting({ tasklist: 'pay' })).toEqual([{ domain: '', tasklist: 'pay' }]);
  expect(waiting(orders)).toEqual([]);
  const late = reported(30, (step) => ({
    svc_history_task_queue_latency: calls(step, 500, 5, { operation: 'TimerActiveTaskUserTimer' }),
  }));
  expect(late.exceeded.map(({ about }) => about)).toEqual([{ role: 'history', queue: 'timer' }]);
});

test('thousands of lists without tasks take no place from one with tasks', () => {
  const lists = Array.from({ length: 4_100 }, (_, i) => ({ ...orders, tasklist: `l${i}` }));
  expect(
    kindsAfter(12, () => ({
      svc_matching_tasklist_backlog: [
        ...lists.map((one) => row('matching', 0, one)),
        row('matching', 5, list),
      ],
      svc_matching_pollers: [
        row('matching', 1, { ...orders, tasklist: 'no backlog' }),
        row('matching', 0, list),
      ],
    })),
  ).toEqual(['list_unpolled']);
});

test('whether a list is polled is what its pollers say; without them, whether a poll ended within two minutes', () => {
  const first = (pollers: number | undefined, polls: (step: number) => number) =>
    Array.from({ length: 20 }, (_, steps) =>
      kindsAfter(steps, (step) => ({
        svc_matching_tasklist_backlog: [row('matching', 5, list)],
        ...(pollers !== undefined && { svc_matching_pollers: [row('matching', pollers, list)] }),
        svc_matching_poll_timeout: [row('matching', polls(step), list)],
      })).includes('list_unpolled'),
    ).indexOf(true);
  expect(first(0, (step) => step)).toBe(8);
  expect(first(1, () => 7)).toBe(-1);
  // The last poll ended in sample 4, and eight samples are two minutes.
  expect(first(undefined, (step) => Math.min(step, 4))).toBe(12);
});

test('three calls in a quarter of a minute are enough to judge a share', () => {
  expect(
    kindsAfter(8, (step) => ({
      svc_history_client_requests: [row('frontend', step * 3)],
      svc_history_client_errors: [row('frontend', step * 3)],
    })),
  ).toEqual(['request_errors']);
});

test('one ended workflow in a hundred seconds is enough to judge a share', () => {
  const timeouts = (each: number) =>
    kindsAfter(60, (step) => ({
      // Every five minutes contain four of these steps.
      svc_workflow_timeout: [row('history', Math.floor(step / 5) * each, orders)],
    }));
  expect(timeouts(0.75)).toEqual(['workflow_timeouts']);
  expect(timeouts(0.74)).toEqual([]);
});

test('callees that count nothing themselves, beside one that does: the frontend is judged by its callers', () => {
  const failing = (callee: string) =>
    kindsAfter(8, (step) => ({
      [`svc_${callee}_client_requests`]: [row('worker', step * 100)],
      [`svc_${callee}_client_errors`]: [row('worker', step * 80)],
      svc_served_requests: [row('matching', step * 100)],
    }));
  expect(failing('history')).toEqual([]);
  expect(failing('frontend')).toEqual(['request_errors']);
});

test('a time of 0 is none', () => {
  expect(
    kindsAfter(0, () => ({
      svc_store_wal_oldest_unarchived_timestamp_seconds: [row('', 0, { store: 'main', database: 'p' })],
    })),
  ).toEqual([]);
});

test('objects older than the retention are no problem while nothing completes, or no domain archives', () => {
  const past = (step: number, completes: boolean, archives: boolean): Families => ({
    svc_archival_newest_object_timestamp_seconds: [row('', nowS(step) - 60_000, archive)],
    svc_workflow_completed: [row('history', completes ? step : 7, orders)],
    svc_domain_retention_seconds: [row('', 50_000, orders)],
    svc_domain_archival_enabled: archives ? [row('', 1, { ...orders, archive: 'history' })] : [],
  });
  expect(kindsAfter(20, (step) => past(step, false, true))).toEqual([]);
  expect(kindsAfter(20, (step) => past(step, true, false))).toEqual([]);
  const { exceeded } = reported(20, (step) => past(step, true, step === 20));
  expect(exceeded).toMatchObject([{ kind: 'retention_unarchived' }]);
  // Nothing was judged before.
  expect(exceeded[0]?.usual).toBeUndefined();
});

test('an archive that is late goes on to be, since the same time, although workflows complete no more', () => {
  const late = (steps: number) =>
    reported(steps, (step) => ({
      svc_archival_newest_object_timestamp_seconds: [row('', nowS(step) - 90_000, archive)],
      svc_workflow_completed: [row('history', Math.min(step, 10), orders)],
    })).exceeded.map(({ kind, since, onlyGoesOn }) => [
      kind,
      (Date.parse(since) - startMs) / 1e3,
      onlyGoesOn,
    ]);
  // The first minute tells that workflows complete; ten minutes after the last one, nobody knows it any more.
  expect(late(10)).toEqual([['archival_stalled', 60, undefined]]);
  expect(late(60)).toEqual([['archival_stalled', 60, true]]);
});

test.each([
  ['statsd', 'buffer_full', true],
  ['scrape', 'too_large', true],
  ['hosted', 'failed', true],
  ['scrape', 'failed', false],
  ['statsd', 'forbidden_tag', false],
  ['statsd', 'forbidden_value', false],
])('drops of %s because of %s', (component, reason, isLoss) => {
  const kinds = kindsAfter(70, (step) => ({
    svc_agent_dropped_total: [row('', step * 15, { component, reason })],
  }));
  expect(kinds).toEqual(isLoss ? ['dropping'] : []);
});

test('the truth is told of roles that log errors, once a minute of them is known', () => {
  const logged = (perStep: number, samples = 30) =>
    reported(samples, (step) => ({
      svc_log_persistence_errors_total: [row('history', 3 + step * perStep)],
    })).telemetryTruth;
  expect(logged(0)).toEqual({});
  expect(logged(1)).toEqual({ history: 0 });
  const lately = (first: number) =>
    reported(30, (step) => ({
      svc_log_persistence_errors_total: step >= first ? [row('history', step)] : [],
    })).telemetryTruth;
  expect([lately(24), lately(27)]).toEqual([{ history: 0 }, {}]);
});

test('the truth of a role that sends its counts is told once the agent has run for longer than the window', () => {
  const truthAfter = (samples: number) =>
    reported(samples, (step) => ({
      svc_log_persistence_errors_total: [row('history', step === 0 ? 0 : 900 + step)],
    })).telemetryTruth;
  // Samples are 15 s apart, and the window is five minutes.
  expect([truthAfter(23), truthAfter(24), truthAfter(200)]).toEqual([{}, { history: 0 }, { history: 0 }]);
});

test('the log of an outage before the start tells no truth of a page that counts from before', () => {
  // The page has counted the 900 errors of the outage; their entries are read after its first sample.
  const truthAfter = (samples: number, logged: (step: number) => number, up: (step: number) => number) =>
    reported(samples, (step) => ({
      svc_role_scrape_up: [row('history', up(step))],
      svc_persistence_errors: [row('history', 900)],
      svc_log_persistence_errors_total: [row('history', logged(step))],
    })).telemetryTruth;
  const backlog = (step: number) => (step === 0 ? 0 : 900);
  for (let samples = 1; samples < 60; samples++)
    expect(
      truthAfter(samples, backlog, () => 1),
      `${samples}`,
    ).toEqual({});
  // Errors that the page really does not count are told of, once the page was read for the window.
  const lasting = (step: number) => 900 + step;
  expect(truthAfter(40, lasting, () => 1)).toEqual({ history: 0 });
  expect(truthAfter(40, lasting, (step) => (step === 35 ? 0 : 1))).toEqual({});
});

test('a role crashes no more once it has run for longer than any pause between restarts', () => {
  const crashing = cases.find(({ kind }) => kind === 'crash_loop')!;
  // The last restart is in sample 3.
  expect(played(crashing, 3, 26).exceeded).toHaveLength(1);
  expect(played(crashing, 3, 27).exceeded).toEqual([]);
});

test('a canary that has completed nothing for a day is none any more, until it completes something', () => {
  const readings = createServiceReadings();
  const isSilent = (minutes: number, completed: number | undefined) => {
    const rows = completed === undefined ? [] : [row('history', completed, { domain: 'canary' })];
    sample(readings, { svc_workflow_completed: rows }, minutes * 60_000);
    return readings.report().exceeded.some(({ kind }) => kind === 'canary');
  };
  expect(isSilent(0, 50)).toBe(false);
  expect(isSilent(24 * 60, 50)).toBe(true);
  expect(isSilent(24 * 60 + 1, 50)).toBe(false);
  expect(isSilent(24 * 60 + 2, undefined)).toBe(false);
  expect(isSilent(24 * 60 + 3, 51)).toBe(false);
  expect(isSilent(24 * 60 + 30, 51)).toBe(true);
});

test('an archive without a time, or for which no domain archives, is behind no retention', () => {
  const { value } = conditions.find(({ kind }) => kind === 'retention_unarchived')!;
  const key = JSON.stringify({ archive: 'a', scheme: 'file' });
  const behind = (newestS: number | undefined, retentionS: number | undefined) => {
    const tracks = createTracks();
    tracks.begin(0);
    if (newestS !== undefined) tracks.set('archived', key, newestS);
    if (retentionS !== undefined) {
      tracks.set('archiving', JSON.stringify({ ...orders, archive: 'a' }), 1);
      tracks.set('retention', JSON.stringify(orders), retentionS);
    }
    return value(key, { tracks, nowMs: 9_000_000, spanMs: 60_000 });
  };
  expect([behind(5_000, 1_000), behind(5_000, undefined), behind(undefined, 1_000)]).toEqual([
    ...[3_000, undefined, undefined],
  ]);
});

test('a share of timeouts that is not known is not the canary’s', () => {
  const { value } = conditions.find(({ kind }) => kind === 'workflow_timeouts')!;
  const tracks = createTracks();
  for (let step = 0; step < 9; step++) {
    tracks.begin(step * stepMs);
    tracks.set('canary timeouts', '{}', step * 9);
    tracks.set('canary closed', '{}', step * 10);
  }
  expect(value(JSON.stringify(orders), { tracks, nowMs: 0, spanMs: 120_000 })).toBeUndefined();
});

test('every condition has a case', () => {
  const covered = new Set(cases.map(({ kind }) => kind));
  expect(conditions.filter(({ kind }) => !covered.has(kind))).toEqual([]);
});

test('little traffic and lists without tasks are not judged', () => {
  const { exceeded } = reported(40, (step) => ({
    svc_history_client_requests: [row('frontend', step * 2.9)],
    svc_history_client_errors: [row('frontend', step * 2)],
    svc_persistence_requests: [row('history', step * 2.9)],
    svc_persistence_errors: [row('history', step * 2)],
    svc_workflow_failed: [row('history', step * 0.14, orders)],
    svc_matching_tasklist_backlog: [row('matching', 0, list)],
    svc_matching_pollers: [row('matching', 0, list)],
  }));
  expect(exceeded).toEqual([]);
});
