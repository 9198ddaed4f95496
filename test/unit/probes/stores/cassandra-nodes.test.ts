import { describe, expect, test } from 'vitest';
import { type WatchedNodes, watchNodes } from '../../../../src/probes/stores/cassandra-checks.ts';
import { manualClock } from '../../../clock.ts';

const dayMs = 86_400_000;
const row = (address: string, heartbeat: number, status = 'NORMAL,1') => ({
  address,
  generation: 1,
  heartbeat,
  status_with_port: status,
});
const seen = (rows: readonly object[], peers = 2): WatchedNodes => ({
  peers,
  gossip: { rows: rows as never },
  snapshots: { rows: [] },
});

/** Polls that are 30 seconds apart; for each, the state of the check `nodes` and its text. */
function polls(...all: WatchedNodes[]) {
  const clock = manualClock();
  const watch = watchNodes(clock);
  return all.map((watched) => {
    const [nodes] = watch(watched);
    clock.advance(30_000);
    return [nodes!.holds, nodes!.found];
  });
}

describe('nodes', () => {
  test('one whose heartbeat stands still is down, one whose goes on is up', () => {
    const [first, second, third] = polls(
      seen([row('a', 1), row('b', 5), row('c', 9)]),
      seen([row('a', 31), row('b', 35), row('c', 39)]),
      seen([row('a', 61), row('b', 35), row('c', 69)]),
    );
    expect(first).toEqual(['unknown', 'nodes: 3, not all have been seen twice']);
    expect(second).toEqual([true, 'nodes: 3, all up']);
    expect(third).toEqual([false, 'down: 1 of 3 nodes, b']);
  });

  test('a node that was down from the first poll on', () => {
    expect(polls(seen([row('a', 1), row('b', 0)], 1), seen([row('a', 31), row('b', 0)], 1))[1]).toEqual([
      false,
      'down: 1 of 2 nodes, b',
    ]);
  });

  test('one that stops in good order is down at once, and up when it moves again', () => {
    const [first, , third] = polls(
      seen([row('a', 1), row('b', 5, 'shutdown,true')], 1),
      seen([row('a', 31), row('b', 1)], 1),
      seen([row('a', 61), row('b', 31)], 1),
    );
    expect(first![0]).toBe(false);
    expect(third![0]).toBe(true);
  });

  test.each(['LEFT,1,2', 'removed,1', 'REMOVING,1'])(
    'a node that is gone for good is no node: %s',
    (status) => {
      const gone = row('b', 5, status);
      expect(polls(seen([row('a', 1), gone], 0), seen([row('a', 31), gone], 0))[1]![0]).toBe(true);
    },
  );

  test('polls in quick succession do not make a node silent', () => {
    const clock = manualClock();
    const watch = watchNodes(clock);
    const holds = [0, 1, 2, 3, 4].map(() => {
      clock.advance(4999);
      return watch(seen([row('a', 1), row('b', 1)], 1))[0]!.holds;
    });
    expect(holds).toEqual(['unknown', 'unknown', 'unknown', 'unknown', 'unknown']);
    clock.advance(4999);
    expect(watch(seen([row('a', 1), row('b', 1)], 1))[0]!.holds).toBe(false);
  });

  test('a peer of which gossip knows nothing is not called up', () => {
    expect(polls(seen([row('a', 1)], 1), seen([row('a', 31)], 1))[1]![0]).toBe('unknown');
  });

  test('without the table nothing is known of other nodes', () => {
    const gossip = { unknown: 'unconfigured table gossip_info' };
    const [several, alone] = polls({ ...seen([]), gossip }, { ...seen([], 0), gossip });
    expect(several).toEqual(['unknown', 'other nodes: 2; unconfigured table gossip_info']);
    expect(alone).toEqual([true, 'the cluster has one node']);
  });

  test('hostile values end up in one line', () => {
    const bad = row('x\n\u202e'.repeat(1000), 1);
    expect(String(polls(seen([bad], 1), seen([bad], 1))[1]![1]).length).toBeLessThan(120);
    expect(polls(seen([{}], 1), seen([{ address: null, status_with_port: 7 }], 1))).toHaveLength(2);
  });
});

describe('snapshots', () => {
  const clock = manualClock();
  const of = (...rows: object[]) =>
    watchNodes(clock)({ ...seen([], 0), snapshots: { rows: rows as never } })[1];
  const old = { name: 'before-upgrade', created_at: new Date(clock.nowMs() - 8 * dayMs), ephemeral: false };

  test('one older than seven days is not cleared', () => {
    expect(of({ ...old, table_name: 'a' }, { ...old, table_name: 'b' })).toEqual({
      check: 'snapshots',
      holds: false,
      found: 'older than 7 days: 1, before-upgrade',
    });
  });

  test.each<[string, object]>([
    ['a younger one', { ...old, created_at: new Date(clock.nowMs() - 6 * dayMs) }],
    ['one that expires', { ...old, expires_at: new Date() }],
    ['one of a repair', { ...old, ephemeral: true }],
    ['one without a time', { name: 'x' }],
  ])('%s counts for nothing', (_, snapshot) => {
    expect(of(snapshot)!.holds).toBe(true);
  });

  test('without the table they are unknown', () => {
    const snapshots = { unknown: 'unconfigured table snapshots' };
    expect(watchNodes(clock)({ ...seen([], 0), snapshots })[1]!.holds).toBe('unknown');
  });
});
