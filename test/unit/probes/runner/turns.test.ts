import { expect, test } from 'vitest';
import { createRunSlots, type RunSlot } from '../../../../src/probes/runner/schedule.ts';

function bed(concurrency: number) {
  const turns = createRunSlots({ concurrency });
  const started: string[] = [];
  const turnOf = new Map<string, RunSlot>();
  return {
    started,
    ask: (name: string, more: { lane?: string; isUrgent?: boolean } = {}) =>
      turns.request({
        ...more,
        start(turn) {
          started.push(name);
          turnOf.set(name, turn);
        },
      }),
    release: (name: string) => turnOf.get(name)!.release(),
    releaseLane: (name: string) => turnOf.get(name)!.releaseLane(),
  };
}

test('so many at once, in the order in which they asked', () => {
  const { started, ask, release } = bed(2);
  for (const name of ['a', 'b', 'c', 'd', 'e']) ask(name);
  expect(started).toEqual(['a', 'b']);
  release('b');
  release('b');
  expect(started).toEqual(['a', 'b', 'c']);
  release('a');
  release('c');
  expect(started).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('one of each lane; who waits for a lane stands in nobody’s way', () => {
  const { started, ask, release, releaseLane } = bed(3);
  ask('a1', { lane: 'a' });
  ask('a2', { lane: 'a' });
  ask('b1', { lane: 'b' });
  ask('free');
  expect(started).toEqual(['a1', 'b1', 'free']);
  release('a1');
  expect(started).toHaveLength(3);
  releaseLane('a1');
  releaseLane('a1');
  expect(started).toEqual(['a1', 'b1', 'free', 'a2']);
});

test('a lane is held though its place is free', () => {
  const { started, ask, release, releaseLane } = bed(1);
  ask('a1', { lane: 'a' });
  ask('a2', { lane: 'a' });
  ask('b');
  release('a1');
  expect(started).toEqual(['a1', 'b']);
  releaseLane('a1');
  expect(started).toEqual(['a1', 'b']);
  release('b');
  expect(started).toEqual(['a1', 'b', 'a2']);
});

test('an urgent one takes no place', () => {
  const { started, ask, release } = bed(2);
  ask('a');
  ask('now', { isUrgent: true });
  ask('b');
  ask('c');
  ask('too', { isUrgent: true });
  expect(started).toEqual(['a', 'now', 'b', 'too']);
  release('now');
  release('too');
  expect(started).toHaveLength(4);
});

test('an urgent one keeps to its lane, and is the next in it', () => {
  const { started, ask, releaseLane } = bed(3);
  ask('a1', { lane: 'a' });
  ask('a2', { lane: 'a' });
  ask('a-now', { lane: 'a', isUrgent: true });
  expect(started).toEqual(['a1']);
  releaseLane('a1');
  expect(started).toEqual(['a1', 'a-now']);
  releaseLane('a-now');
  expect(started).toEqual(['a1', 'a-now', 'a2']);
});

test('who withdraws is not started', () => {
  const { started, ask, release } = bed(1);
  ask('a');
  const withdraw = ask('b');
  ask('c');
  withdraw();
  release('a');
  expect(started).toEqual(['a', 'c']);
});

test('nobody starves: those who ask again and again go behind those who wait', () => {
  const { started, ask, release } = bed(1);
  const names = ['a', 'b', 'c', 'd'];
  for (const name of names) ask(name);
  for (let i = 0; i < 40; i++) {
    const name = started.at(-1)!;
    ask(name);
    release(name);
  }
  for (const name of names) expect(started.filter((one) => one === name).length).toBeGreaterThanOrEqual(10);
});
