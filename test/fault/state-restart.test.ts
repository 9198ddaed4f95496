import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createState, type State } from '../../src/agent/state/state.ts';
import type { Durable } from '../../src/core/ports.ts';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { runs } from '../size.ts';
import { keptLog } from './state/bed.ts';
import { type FaultyFs, faultyFs, type Operation } from './state/faulty-fs.ts';
import { type NamedCounters, namedCounters } from './state/values.ts';

type Counts = Readonly<Record<string, number>>;

interface Agent {
  fs: FaultyFs;
  state: State;
  values: NamedCounters;
  /** The sum of all counters according to the section at the restart; it must belong to the restored counters. */
  restoredSum: number;
}

interface World {
  readonly directory: string;
  readonly fsync: boolean;
  agent: Agent;
  /** The counts of a commit that reported to be on disk. */
  promised: Counts;
}

type Step = (world: World) => Promise<void>;

const sumOf = (counts: Counts) => Object.values(counts).reduce((sum, n) => sum + n, 0);

async function startAgent(directory: string, fsync: boolean, plan: FaultyFs['plan']): Promise<Agent> {
  const fs = faultyFs();
  fs.plan = plan;
  const values = namedCounters();
  let restoredSum = 0;
  const sum: Durable = {
    name: 'sum',
    freeze: () => Buffer.from(String(sumOf(values.counted()))),
    restore: (section) => {
      restoredSum = Number(Buffer.from(section).toString());
    },
  };
  const deps = { values, durables: [sum], clock: manualClock(), log: keptLog().log, fs };
  const state = createState({ directory, fsync }, deps);
  await state.load();
  return { fs, state, values, restoredSum };
}

async function commit(world: World, callers: number): Promise<void> {
  const { state, values } = world.agent;
  const counted = values.counted();
  const all = await Promise.all(Array.from({ length: callers }, () => state.commit()));
  expect(values.shown()).toEqual(counted);
  if (all.at(-1)!.degraded === undefined) world.promised = counted;
}

async function restart(world: World, plan: FaultyFs['plan']): Promise<void> {
  const before = world.agent.values.counted();
  await world.agent.state.close();
  world.agent = await startAgent(world.directory, world.fsync, plan);
  const back = world.agent.values.counted();
  expect(world.agent.restoredSum).toBe(sumOf(back));
  for (const [name, n] of Object.entries(world.promised)) expect(back[name]).toBeGreaterThanOrEqual(n);
  for (const [name, n] of Object.entries(back)) expect(n).toBeLessThanOrEqual(before[name] ?? 0);
}

/** Refuses an operation, except for reading snapshots: it is agreed that unreadable snapshots are lost. */
const refusing =
  (refused: Operation): FaultyFs['plan'] =>
  (operation, path) =>
    operation === refused && (operation !== 'open' || path.endsWith('.new')) ? 'EIO' : undefined;

const add = (name: string, delta: number): Step =>
  async function add({ agent }) {
    agent.values.add(name, delta);
  };
const commitOf =
  (callers: number): Step =>
  (world) =>
    commit(world, callers);
const fail = (operation: Operation): Step =>
  async function fail({ agent }) {
    agent.fs.plan = refusing(operation);
  };
const heal: Step = async ({ agent }) => {
  agent.fs.plan = () => undefined;
};
const remove: Step = async (world) => {
  rmSync(world.directory, { recursive: true, force: true });
  world.promised = {};
};
const restartSame: Step = (world) => restart(world, world.agent.fs.plan);
/** Simulates a kill in the middle of a commit: only the first few of its operations on the file system happen. */
const crash =
  (operations: number): Step =>
  async (world) => {
    let left = operations;
    world.agent.values.add('a', 1);
    world.agent.fs.plan = () => (left-- > 0 ? undefined : 'EIO');
    await commit(world, 1);
    await restart(world, () => undefined);
  };

const operations = fc.constantFrom<Operation>(
  'mkdir',
  'open',
  'write',
  'close',
  'datasync',
  'sync',
  'rename',
  'rm',
  'stat',
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 1, max: 9 }))
      .map(([name, delta]) => add(name, delta)),
  },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 3 }).map(commitOf) },
  { weight: 2, arbitrary: operations.map(fail) },
  { weight: 2, arbitrary: fc.constant(heal) },
  { weight: 1, arbitrary: fc.constant(remove) },
  { weight: 2, arbitrary: fc.constant(restartSame) },
  { weight: 2, arbitrary: fc.nat(14).map(crash) },
);

async function play(fsync: boolean, all: readonly Step[]): Promise<void> {
  const parent = newFolder();
  const directory = join(parent, 'state');
  const agent = await startAgent(directory, fsync, () => undefined);
  const world: World = { directory, fsync, agent, promised: {} };
  try {
    for (const one of [...all, heal, commitOf(1), restartSame]) await one(world);
    expect(world.agent.values.counted()).toEqual(world.promised);
  } finally {
    await world.agent.state.close();
  }
}

test('whatever fails, a value once shown is never larger than what a restart brings back, unless degraded', async () => {
  const run = fc.asyncProperty(fc.boolean(), fc.array(step, { minLength: 5, maxLength: 40 }), play);
  await fc.assert(run, { numRuns: runs(250) });
});
