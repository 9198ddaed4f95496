import { describe, expect, it } from 'vitest';
import type { Conditions } from '../../../examples/service/incidents.ts';
import { createRoleProcess, type RoleProcess } from '../../../examples/service/process.ts';
import { createRandom } from '../../../examples/service/random.ts';
import { catalog, type Role, roles } from '../../../src/core/catalog.ts';

const startMs = Date.UTC(2026, 0, 1);
const begin = (role: Role, seed = 7, second = 0) =>
  createRoleProcess({ role, ratePerSecond: 20, startMs: startMs + second * 1000 }, createRandom(seed));

/** Runs the process from second `from` to second `to` in steps of a quarter second. */
function live(process: RoleProcess, from: number, to: number, conditions: Conditions = {}) {
  const logged = [];
  for (let second = from + 0.25; second <= to; second += 0.25) {
    logged.push(...process.advance(startMs + second * 1000, conditions));
  }
  return logged;
}

function total(process: RoleProcess, name: string, tag = '') {
  const family = process.families().find(({ metric }) => metric.name === name);
  const series = [...(family?.series ?? [])].filter(
    ({ tags }) => tag === '' || Object.values(tags).includes(tag),
  );
  return series.reduce((sum, { numbers }) => sum + (numbers[0] ?? Number.NaN), 0);
}

const snapshot = (process: RoleProcess) =>
  new Map(
    process
      .families()
      .flatMap(({ metric, series }) =>
        [...series].map(({ tags, numbers }) => [
          `${metric.name}${JSON.stringify(tags)}`,
          { kind: metric.kind, numbers: [...numbers] },
        ]),
      ) as [string, { kind: string; numbers: number[] }][],
  );

describe.each(roles)('the metrics of %s', (role) => {
  it('are those of the catalog for the role, all of them, with the catalog’s tags, and history’s lag', () => {
    const process = begin(role);
    live(process, 0, 60);
    const lag = { name: 'svc_replication_latency', tags: ['source_cluster', 'target_cluster'] };
    const ofCatalog = catalog.filter((metric) => metric.roles.includes(role));
    const wanted = role === 'history' ? [...ofCatalog, lag] : ofCatalog;
    const sent = process.families().filter(({ series }) => [...series].length > 0);
    expect(sent.map(({ metric }) => metric.name)).toEqual(wanted.map((metric) => metric.name));
    for (const [index, { series }] of sent.entries()) {
      for (const { tags } of series)
        expect(Object.keys(tags)).toEqual(['svc_service', ...wanted[index]!.tags]);
    }
  });

  it('never fall unless they are gauges, and histograms are cumulative', () => {
    const process = begin(role);
    let before = snapshot(process);
    for (let second = 0; second < 20; second += 1) {
      live(process, second, second + 1, second > 10 ? { failingRole: role } : {});
      const now = snapshot(process);
      for (const [key, { kind, numbers }] of now) {
        if (kind === 'gauge') continue;
        numbers.forEach((value, part) => {
          expect(value, key).toBeGreaterThanOrEqual(before.get(key)?.numbers[part] ?? 0);
        });
        if (kind !== 'histogram') continue;
        const buckets = numbers.slice(0, -1);
        expect(buckets, key).toEqual([...buckets].sort((a, b) => a - b));
      }
      before = now;
    }
  });

  it('begin anew in the next process, with one restart counted', () => {
    const first = begin(role);
    live(first, 0, 60);
    const second = begin(role, 7, 60);
    live(second, 60, 61);
    expect(total(second, 'svc_restarts')).toBe(1);
    expect(total(second, 'svc_persistence_requests')).toBeLessThan(total(first, 'svc_persistence_requests'));
  });

  it('have believable memory: what is in use and idle makes up the heap', () => {
    const process = begin(role);
    live(process, 0, 120);
    const heap = total(process, 'svc_memory_heap');
    expect(total(process, 'svc_memory_heapinuse') + total(process, 'svc_memory_heapidle')).toBe(heap);
    expect(heap).toBeGreaterThan(32 * 2 ** 20);
    expect(heap).toBeLessThan(8e9);
    expect(total(process, 'svc_memory_num_gc')).toBeGreaterThan(0);
  });
});

describe.each(roles)('the log of %s', (role) => {
  it('has the entries of the specification at a steady rate, in order', () => {
    const process = begin(role);
    const logged = live(process, 0, 30);
    const startUp = logged.slice(0, 3);
    expect(startUp.map((entry) => entry.msg)).toContain('service started');
    const everyday = logged.slice(3).filter((entry) => !('error' in entry));
    expect(everyday).toHaveLength(30 * 20);
    for (const entry of everyday) {
      expect(entry).toEqual({
        ts: expect.stringMatching(/^2026-01-01T00:00:\d\d\.\d{3}Z$/),
        level: expect.stringMatching(/^(info|warn|error)$/),
        msg: expect.any(String),
        logger: expect.any(String),
        service: `svc-${role}`,
        'wf-domain-name': expect.stringMatching(/^(orders|payments)$/),
        'wf-id': expect.stringMatching(/^(order|mail|payment)-\d+$/),
        'wf-run-id': expect.stringMatching(
          /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
        ),
        'shard-id': expect.any(Number),
      });
    }
    const times = everyday.map((entry) => entry.ts);
    expect(times).toEqual([...times].sort());
  });

  it('reports each persistence error that is counted, and no other', () => {
    const process = begin(role);
    const logged = live(process, 0, 60, { failingRole: role });
    const reported = logged.filter(
      ({ msg }) =>
        msg === 'Persistent store operation failure' || msg === 'Operation failed with internal error.',
    );
    expect(reported.length).toBeGreaterThan(100);
    expect(reported).toHaveLength(total(process, 'svc_persistence_errors'));
    const updates = reported.filter((entry) => entry['store-operation'] === 'update-wf-execution');
    expect(updates).toHaveLength(
      total(process, 'svc_persistence_errors', 'PersistenceUpdateWorkflowExecution'),
    );
  });
});

describe('incidents', () => {
  it('make persistence calls of one role fail and not those of another', () => {
    const [history, worker] = [begin('history'), begin('worker')];
    live(history, 0, 60, { failingRole: 'history' });
    live(worker, 0, 60, { failingRole: 'history' });
    const share = (process: RoleProcess) =>
      total(process, 'svc_persistence_errors') / total(process, 'svc_persistence_requests');
    expect(share(history)).toBeGreaterThan(0.1);
    expect(share(worker)).toBeLessThan(0.005);
  });

  it('make every persistence call of every role fail while the store refuses', () => {
    const process = begin('worker');
    live(process, 0, 30, { refusingStore: 'main' });
    expect(total(process, 'svc_persistence_requests')).toBeGreaterThan(100);
    expect(total(process, 'svc_persistence_errors')).toBe(total(process, 'svc_persistence_requests'));
  });

  it('let one task list’s backlog grow, and drain afterwards', () => {
    const process = begin('matching');
    const backlog = (name = '') => total(process, 'svc_matching_tasklist_backlog', name);
    live(process, 0, 30);
    const usual = backlog();
    live(process, 30, 70, { starvedTaskList: 'order-processing' });
    expect(backlog('order-processing')).toBeGreaterThan(1000);
    expect(backlog('payment-capture')).toBeLessThan(100);
    expect(total(process, 'svc_matching_tasks_added') - total(process, 'svc_matching_tasks_dispatched')).toBe(
      backlog(),
    );
    live(process, 70, 200);
    expect(backlog()).toBeLessThan(usual + 100);
  });

  it('make tasks of the starved list wait', () => {
    const waits = (conditions: Conditions) => {
      const process = begin('history');
      live(process, 0, 30, conditions);
      const family = process
        .families()
        .find(({ metric }) => metric.name === 'svc_activity_task_schedule_to_start_latency');
      const numbers = [...(family?.series ?? [])].find(({ tags }) => tags.tasklist === 'order-mail')?.numbers;
      return (numbers?.at(-1) ?? 0) / (numbers?.at(-2) ?? 1);
    };
    expect(waits({ starvedTaskList: 'order-mail' })).toBeGreaterThan(1);
    expect(waits({})).toBeLessThan(0.1);
  });
});

describe('workflows', () => {
  it('end in as many ways as there are, never more than were started', () => {
    const process = begin('history');
    live(process, 0, 300);
    const count = (outcome: string) => total(process, `svc_workflow_${outcome}`);
    const ends = ['completed', 'failed', 'timeout', 'canceled', 'continued_as_new'].map(count);
    const ended = ends.reduce((a, b) => a + b);
    expect(Math.min(...ends)).toBeGreaterThan(0);
    expect(ended).toBeLessThanOrEqual(count('started'));
    expect(ended).toBeGreaterThan(count('started') / 2);
  });
});

it('the same seed gives the same run, another one another', () => {
  const run = (seed: number) => JSON.stringify(live(begin('frontend', seed), 0, 5));
  expect(run(1)).toBe(run(1));
  expect(run(1)).not.toBe(run(2));
});
