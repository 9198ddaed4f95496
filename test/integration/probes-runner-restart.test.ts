import { beforeEach, describe, expect, test } from 'vitest';
import { createState } from '../../src/agent/state/state.ts';
import type { RawTags } from '../../src/core/model.ts';
import { createDurableStore } from '../../src/core/registry/durable-store.ts';
import type { Finding } from '../../src/probes/probe.ts';
import { newFolder } from '../folder.ts';
import {
  probeDeps,
  type RunnerBed,
  renewIntakes,
  runnerBed,
  type Scripted,
  scripted,
} from '../unit/probes/runner/bed.ts';

/** The failovers in each domain's history, oldest first. */
let histories: Record<string, string[]>;
beforeEach(() => {
  histories = { orders: ['v1'], payments: ['w1'] };
});

/** A probe that counts entries of the history that it has not seen; the entries at its first check are not new. */
function domain(name: string): Scripted {
  const counter = { name: 'svc_domain_failovers_total', labels: { domain: name } } as const;
  const answers = async (_: AbortSignal, recalled: unknown): Promise<Finding> => {
    const history = [...histories[name]!];
    const seen = recalled as string[] | undefined;
    const value = seen ? history.filter((entry) => !seen.includes(entry)).length : 0;
    return { msg: 'ok', increases: [{ ...counter, value }], remember: history };
  };
  return scripted(`domain/${name}`, { answers, row: { kind: 'domain', shows: { counters: [counter] } } });
}

interface Life {
  bed: RunnerBed;
  /** Runs each probe once. */
  runCheck(...probes: Scripted[]): Promise<void>;
  commit(): Promise<void>;
  /** The failovers as a reader sees them. */
  shown(): Record<string, unknown>;
  /** Kills the agent: what is not committed is lost. */
  kill(): Promise<void>;
}

/** One run of the agent with real state files, its parts assembled as in the agent. */
async function live(directory: string, ...configured: Scripted[]): Promise<Life> {
  const { clock, log } = probeDeps();
  const durable = createDurableStore();
  const state = createState({ directory, fsync: false }, { values: durable, clock, log });
  await state.load();
  const bed = runnerBed({ durable });
  state.section('probes').assign(bed.runner.durable);
  bed.configure(...configured);
  return {
    bed,
    async runCheck(...probes) {
      await bed.pass(1000);
      for (const { row } of probes) await bed.runner.checkNow(row.name);
    },
    commit: async () => void (await state.commit()),
    shown: () =>
      Object.fromEntries(Object.entries(bed.shown()).filter(([key]) => key.startsWith('svc_domain'))),
    async kill() {
      await bed.runner.stop();
      await state.close();
    },
  };
}

/** One run of the agent in which the domain orders fails over once. */
async function liveWithFailover(directory: string) {
  const orders = domain('orders');
  const first = await live(directory, orders);
  await first.runCheck(orders);
  histories.orders!.push('v2');
  await first.runCheck(orders);
  return { orders, first };
}

const total = (name: string, value: number, tag = '') => ({
  [`svc_domain_failovers_total{${tag}domain="${name}"}`]: value,
});

describe('failovers across restarts', () => {
  test('are counted once, wherever the agent was killed', async () => {
    const directory = newFolder();
    const { orders, first } = await liveWithFailover(directory);
    await first.commit();
    expect(first.shown()).toEqual(total('orders', 1));
    histories.orders!.push('v3');
    await first.runCheck(orders);
    expect(first.shown()).toEqual(total('orders', 1));
    await first.kill();

    histories.orders!.push('v4');
    const second = await live(directory, orders);
    await second.commit();
    expect(second.shown()).toEqual(total('orders', 1));
    await second.runCheck(orders);
    await second.runCheck(orders);
    await second.commit();
    expect(second.shown()).toEqual(total('orders', 3));
    await second.commit();
    await second.kill();

    const third = await live(directory, orders);
    await third.runCheck(orders);
    await third.commit();
    expect(third.shown()).toEqual(total('orders', 3));
    await third.kill();
  });

  test('totals outlive a stop that commits after it', async () => {
    const directory = newFolder();
    const { orders, first } = await liveWithFailover(directory);
    await first.bed.runner.stop();
    await first.commit();
    await first.kill();
    const second = await live(directory, orders);
    await second.commit();
    expect(second.shown()).toEqual(total('orders', 1));
    await second.kill();
  });

  test('a life without domains shows none of them and keeps all', async () => {
    const directory = newFolder();
    const { orders, first } = await liveWithFailover(directory);
    await first.commit();
    await first.kill();
    const second = await live(directory, scripted('health/a'));
    await second.commit();
    expect(second.shown()).toEqual({});
    await second.kill();
    histories.orders!.push('v3');
    const third = await live(directory, orders);
    await third.runCheck(orders);
    await third.commit();
    expect(third.shown()).toEqual(total('orders', 2));
    await third.kill();
  });

  test('a domain that is watched no more is not shown; what it remembered is kept', async () => {
    const directory = newFolder();
    const [orders, payments] = [domain('orders'), domain('payments')];
    const first = await live(directory, orders, payments);
    await first.runCheck(orders, payments);
    histories.orders!.push('v2');
    histories.payments!.push('w2');
    await first.runCheck(orders, payments);
    await first.commit();
    expect(first.shown()).toEqual({ ...total('orders', 1), ...total('payments', 1) });
    await first.kill();
    const second = await live(directory, payments);
    await second.commit();
    expect(second.shown()).toEqual(total('payments', 1));
    // The probe is back: its total begins again, and what was counted before is not counted again.
    second.bed.configure(orders, payments);
    await second.runCheck(orders);
    await second.commit();
    expect(second.shown()).toEqual({ ...total('orders', 0), ...total('payments', 1) });
    await second.kill();
  });
});

describe('failovers across reloads', () => {
  test.each<[string, RawTags, string]>([
    ['the same intakes’ successors', {}, ''],
    ['other global tags: the total goes on under them', { cluster: 'dc1' }, 'cluster="dc1",'],
  ])('%s', async (_, globalTags, tag) => {
    const orders = domain('orders');
    const life = await live(newFolder(), orders);
    await life.runCheck(orders);
    histories.orders!.push('v2');
    await life.runCheck(orders);
    await life.commit();
    renewIntakes(life.bed, globalTags);
    life.bed.configure(orders);
    histories.orders!.push('v3');
    await life.runCheck(orders);
    await life.commit();
    expect(life.shown()).toEqual(total('orders', 2, tag));
    expect(life.bed.dropped('refused_series')).toBe(0);
    await life.kill();
  });

  test('a domain that is watched no more is shown no more', async () => {
    const [orders, payments] = [domain('orders'), domain('payments')];
    const life = await live(newFolder(), orders, payments);
    await life.commit();
    expect(life.shown()).toEqual({ ...total('orders', 0), ...total('payments', 0) });
    life.bed.configure(payments);
    await life.commit();
    expect(life.shown()).toEqual(total('payments', 0));
    await life.kill();
  });
});
