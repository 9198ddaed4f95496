import { describe, expect, test } from 'vitest';
import type { ClusterGroupOptions } from '../../../../src/probes/clusters/block.ts';
import type { ReplicationOptions } from '../../../../src/probes/domains/block.ts';
import { planReplication } from '../../../../src/probes/replication/plan.ts';
import { manualClock } from '../../../clock.ts';
import { clusterGroup, probeDeps, probesOptions, samplesOf } from '../../../cluster-group.ts';

type Page = Record<string, [labels: Record<string, string>, value: number][]>;

const three = clusterGroup({}, {}, {});
const two = clusterGroup({}, {});
const startMs = Date.UTC(2026, 2, 2);
const startSeconds = startMs / 1000;

interface Life {
  group?: ClusterGroupOptions;
  replication?: Omit<ReplicationOptions, 'intervalMs'>;
  recalled?: unknown;
}

/** A run of the agent that reads one page after the other, 15 s apart. */
async function checks(pages: Page[], { group = two, replication, recalled }: Life = {}) {
  const domains = { watch: [], replication: replication && { intervalMs: 15_000, ...replication } };
  const [row] = planReplication(probesOptions({ clusterGroupMetadata: group, domains }));
  const clock = manualClock(startMs);
  let page: Page = {};
  const valuesOf = (family: string) => (page[family] ?? []).map(([labels, value]) => ({ labels, value }));
  const probe = await row!.open(probeDeps({ clock, readings: { values: valuesOf } }));
  const findings = [];
  let kept = recalled;
  for (const next of pages) {
    page = next;
    const finding = await probe.check(AbortSignal.timeout(30_000), kept);
    kept = JSON.parse(JSON.stringify(finding.remember));
    findings.push(finding);
    clock.advance(15_000);
  }
  return findings;
}

const lagOf = async (page: Page, life?: Life) =>
  (await checks([page], life))
    .flatMap(samplesOf)
    .filter((line) => line.startsWith('svc_replication_lag_seconds'));

describe('the lag', () => {
  test('is the largest of a pair’s shards, in seconds, for each pair', async () => {
    const shard = (target: string, instance: string, value: number): [Record<string, string>, number] => [
      { svc_service: 'history', active_cluster: 'dc1', target_cluster: target, exported_instance: instance },
      value,
    ];
    const shards = (perSecond: number) => [
      shard('dc2', '1', 12.5 * perSecond),
      shard('dc2', '2', 340 * perSecond),
      shard('dc3', '1', 0),
      shard('dc2', '3', 0),
    ];
    const expected = [
      'svc_replication_lag_seconds{source_cluster="dc1",target_cluster="dc2"} 340',
      'svc_replication_lag_seconds{source_cluster="dc1",target_cluster="dc3"} 0',
    ];
    // The metric is given as a vocabulary translates it, and as the service itself sends it.
    expect(await lagOf({ svc_replication_latency: shards(1) }, { group: three })).toEqual(expected);
    expect(await lagOf({ replication_latency: shards(1e9) }, { group: three })).toEqual(expected);
    const lag = { metric: 'replication_latency', unit: 'nanoseconds' } as const;
    const translated = { svc_replication_latency: shards(1) };
    expect(await lagOf(translated, { group: three, replication: { lag } })).toEqual(expected);
  });

  test.each([
    ['seconds', 90],
    ['milliseconds', 90_000],
    ['microseconds', 90_000_000],
    ['nanoseconds', 90_000_000_000],
  ] as const)('is found under any name, in %s', async (unit, value) => {
    const lag = { metric: 'behind', unit, sourceLabel: 'from', targetLabel: 'to' };
    expect(await lagOf({ behind: [[{ from: 'dc2', to: 'dc1' }, value]] }, { replication: { lag } })).toEqual([
      'svc_replication_lag_seconds{source_cluster="dc2",target_cluster="dc1"} 90',
    ]);
  });

  test('of another metric than the one that is told is not taken', async () => {
    const lag = { metric: 'behind', unit: 'seconds' } as const;
    expect(await lagOf({ svc_replication_latency: [[{}, 1]] }, { replication: { lag } })).toEqual([]);
  });

  test('that is not known is absent, never 0', async () => {
    const [nothing] = await checks([{}]);
    expect(nothing).not.toHaveProperty('reason');
    expect(nothing).toMatchObject({
      msg: 'the lag is not known: no scraped metric shows it',
      gauges: [],
    });
    const odd: Page = {
      replication_latency: [
        [{}, Number.NaN],
        [{}, -1],
        [{}, Number.POSITIVE_INFINITY],
      ],
    };
    expect((await checks([odd]))[0]).toMatchObject({ gauges: [] });
  });

  test('that names no pair of the group is not guessed', async () => {
    const page: Page = {
      svc_replication_latency: [
        [{ target_cluster: 'dc9' }, 5],
        [{}, 7],
      ],
    };
    const [found] = await checks([page], { group: three });
    expect(found).toMatchObject({
      gauges: [],
      details: { lag: { series: 0, unmatched: 2 } },
    });
    expect(found!.msg).toContain('2 series of svc_replication_latency name no two clusters');
  });

  test('is said in words', async () => {
    const page: Page = {
      svc_replication_latency: [
        [{ target_cluster: 'dc2' }, 61.2345],
        [{ target_cluster: 'dc3' }, 0],
      ],
    };
    const [found] = await checks([page], { group: three });
    expect(found).toMatchObject({ msg: 'dc2 is 61.2 s behind dc1, dc3 has all of dc1' });
    expect(found!.reason).toBeUndefined();
  });
});

describe('when a task was last applied', () => {
  const applied = (value: number, target_cluster = 'dc2'): Page => ({
    svc_history_replication_tasks_applied: [[{ svc_service: 'history', target_cluster }, value]],
  });
  const times = (findings: Awaited<ReturnType<typeof checks>>) =>
    findings.map(({ gauges = [] }) => gauges.map(({ value }) => value - startSeconds));

  test('is the check that found the total risen; before that it is not known', async () => {
    const findings = await checks([applied(5), applied(5), applied(6), applied(6), applied(9)]);
    expect(times(findings)).toEqual([[], [], [30], [30], [60]]);
    expect(samplesOf(findings[4]!)).toEqual([
      `svc_replication_last_applied_timestamp_seconds{source_cluster="dc2",target_cluster="dc1"} ${startSeconds + 60}`,
    ]);
  });

  test('a role that restarts, or was gone for a while, has not applied anything by that', async () => {
    expect(times(await checks([applied(5), applied(2), applied(3)]))).toEqual([[], [], [30]]);
    expect(times(await checks([applied(5), {}, applied(9), applied(10)]))).toEqual([[], [], [], [45]]);
  });

  test('is remembered in the next life of the agent, and only of clusters that are still there', async () => {
    const [, last] = await checks([applied(5), applied(6)]);
    expect(times(await checks([applied(9)], { recalled: last!.remember }))).toEqual([[15]]);
    expect(
      times(await checks([applied(9)], { recalled: last!.remember, group: clusterGroup({}, { name: 'x' }) })),
    ).toEqual([[]]);
    expect(times(await checks([applied(9)], { recalled: [['dc2'], 7, null] }))).toEqual([[]]);
  });

  test('is told apart by source', async () => {
    const pages = [1, 2].map((value) => ({
      svc_history_replication_tasks_applied: [
        ...applied(value).svc_history_replication_tasks_applied!,
        ...applied(4, 'dc3').svc_history_replication_tasks_applied!,
      ],
    }));
    const findings = await checks(pages, { group: three });
    expect(times(findings)).toEqual([[], [15]]);
  });
});

describe('failures', () => {
  const failed = (...values: [operation: string, value: number][]): Page => ({
    replication_tasks_failed: values.map(([operation, value]) => [{ operation }, value]),
  });
  const increases = async (pages: Page[]) =>
    (await checks(pages)).map((finding) => finding.increases?.map(({ value }) => value));

  test('are those since the check before, of all series of a pair', async () => {
    const pages = [
      failed(['a', 100], ['b', 7]),
      failed(['a', 103], ['b', 8]),
      failed(['a', 103], ['b', 8], ['c', 50]),
      failed(['a', 2], ['b', 8], ['c', 51]),
    ];
    expect(await increases(pages)).toEqual([[0], [4], [0], [3]]);
    expect(samplesOf((await checks(pages.slice(0, 2)))[1]!)).toEqual([
      'svc_replication_task_failures_total{source_cluster="dc2",target_cluster="dc1"} 4',
    ]);
  });

  test('of series that cannot be told apart count together, and not at all while one comes or goes', async () => {
    const one = failed(['a', 100]);
    const both = failed(['a', 100], ['a', 7]);
    const risen = failed(['a', 102], ['a', 8]);
    const anew = failed(['a', 1], ['a', 8]);
    expect(await increases([one, both, risen, anew, one])).toEqual([[0], [0], [3], [0], [0]]);
  });

  test('are absent where no counter is', async () => {
    expect(await increases([{}])).toEqual([[]]);
  });
});

describe('the plan', () => {
  test('is one row for a group of more than one enabled cluster', () => {
    const plan = (group?: ClusterGroupOptions) =>
      planReplication(probesOptions({ clusterGroupMetadata: group }));
    expect(plan()).toEqual([]);
    expect(plan(clusterGroup({}, { enabled: false }))).toEqual([]);
    expect(plan(two)).toMatchObject([
      {
        name: 'replication/dc1',
        kind: 'replication',
        schedule: { intervalMs: 15_000, timeoutMs: 15_000 },
        shows: {},
      },
    ]);
  });
});
