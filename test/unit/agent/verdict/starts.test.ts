import { expect, test } from 'vitest';
import type { StatusFacts } from '../../../../src/agent/report.ts';
import type { Explained } from '../../../../src/agent/verdict/causes.ts';
import { startsInOrder } from '../../../../src/agent/verdict/starts.ts';

/** The store's check runs every 30 s. Only what is asked for is there. */
const facts = { probes: [{ name: 'store/main', intervalMs: 30_000 }] } as unknown as StatusFacts;

const cause = (sinceMs: number, more: object = {}): Explained => ({
  found: {
    kind: 'store_down',
    subject: 'main',
    about: { probe: 'store/main' },
    sinceMs,
    evidence: [],
    ...more,
  },
});
const effect = (subject: string, sinceMs: number, more: object = {}): Explained => ({
  found: { kind: 'role_down', subject, about: { role: subject }, sinceMs, evidence: [], ...more },
  causedBy: 'store_down/main',
});
const other = (
  sinceMs: number,
  { kind, store }: { kind: 'store_down' | 'read_only'; store: string },
): Explained => ({
  found: { kind, subject: `${store}/visibility`, about: { store }, sinceMs, evidence: [] },
});
const crashes = cause(100_600, {
  ...{ kind: 'crash_loop', subject: 'history', about: { role: 'history' }, lastMs: 160_000 },
});
const failing = (role: string, sinceMs: number): Explained => ({
  ...effect(role, sinceMs, { kind: 'role_failing', backMs: 150_000 }),
  causedBy: 'crash_loop/history',
});
const unread = { unread: { sinceMs: 0, sources: [], wasCause: false } };

test.each<[what: string, all: Explained[], recorded: string[], starts: number[]]>([
  ['the cause is found first', [cause(100_000), effect('history', 100_400)], [], [100_000, 100_400]],
  ['the effect is found first', [cause(100_600), effect('history', 100_100)], [], [100_100, 100_100]],
  [
    'the first of several effects decides, whatever their order',
    [cause(100_600), effect('history', 100_300), effect('worker', 100_100), effect('matching', 100_400)],
    [],
    [100_100, 100_300, 100_100, 100_400],
  ],
  [
    'the check of the cause may have failed that early',
    [cause(100_000), effect('history', 70_000)],
    [],
    [70_000, 70_000],
  ],
  [
    'the check of the cause passed after that: the effect is older',
    [cause(100_000), effect('history', 69_999)],
    [],
    [100_000, 69_999],
  ],
  [
    'a cause that no check shows: a little earlier at most',
    [cause(100_000, { about: {} }), effect('history', 85_000), effect('worker', 84_999)],
    [],
    [85_000, 85_000, 85_000],
  ],
  [
    'a cause that failed for another reason before',
    [
      cause(100_000, { reason: 'refused', reasonsMs: { credentials: 0, refused: 99_900 } }),
      effect('history', 99_800),
    ],
    [],
    [100_000, 100_000],
  ],
  [
    'the other database of the store began with the effect, too: it is the cause if it recovers last',
    [
      cause(100_600, { about: { probe: 'store/main', store: 'main' } }),
      effect('history', 100_100),
      other(100_800, { kind: 'store_down', store: 'main' }),
      other(100_800, { kind: 'store_down', store: 'second' }),
      other(100_800, { kind: 'read_only', store: 'main' }),
    ],
    [],
    [100_100, 100_100, 100_100, 100_800, 100_800],
  ],
  [
    'another cluster is another cause, although neither has a store',
    [
      cause(100_600, { kind: 'cluster_down', subject: 'b', about: { clusters: ['b'] } }),
      { ...effect('history', 100_100), causedBy: 'cluster_down/b' },
      cause(100_800, { kind: 'cluster_down', subject: 'c', about: { clusters: ['c'] } }),
    ],
    [],
    [100_100, 100_100, 100_800],
  ],
  [
    'an effect counts since it fails for the reason that it has',
    [
      cause(100_600),
      effect('history', 80_000, { reason: 'persistence', reasonsMs: { persistence: 100_200 } }),
    ],
    ['role_down/history'],
    [100_200, 80_000],
  ],
  [
    'a check that fails again and again because its role crashes: it failed first',
    [crashes, failing('history', 100_100)],
    ['role_failing/history'],
    [100_100, 100_100],
  ],
  [
    'a check that failed long before the first crash',
    [crashes, failing('history', 85_599)],
    ['role_failing/history'],
    [100_600, 85_599],
  ],
  [
    'the check of another role failed before, and fails again',
    [crashes, failing('matching', 100_100)],
    ['role_failing/matching'],
    [100_600, 100_100],
  ],
  [
    'the check of a role that fails again because the role hangs',
    [{ found: { ...crashes.found, lastMs: undefined } }, failing('history', 100_100)],
    ['role_failing/history'],
    [100_600, 100_100],
  ],
  [
    'timeouts and a canary that failed before, neither of which is of a role',
    [
      cause(100_600, { kind: 'workflow_timeouts', subject: 'orders', about: {}, lastMs: 160_000 }),
      {
        ...effect('orders', 100_100, { kind: 'canary', about: {}, backMs: 150_000 }),
        causedBy: 'workflow_timeouts/orders',
      },
    ],
    ['canary/orders'],
    [100_600, 100_100],
  ],
  [
    'an effect that cannot be read says nothing',
    [cause(100_600), effect('history', 100_100, unread)],
    ['role_down/history'],
    [100_600, 100_100],
  ],
  [
    'a recorded cause stays, and a new effect begins with it',
    [cause(100_600), effect('history', 100_100)],
    ['store_down/main'],
    [100_600, 100_600],
  ],
  [
    'a recorded cause stays, and an effect is moved by the time between two pages at most',
    [cause(100_600), effect('history', 85_600)],
    ['store_down/main'],
    [100_600, 100_600],
  ],
  [
    'a recorded cause stays, and an effect that is much older stays, too',
    [cause(100_600), effect('history', 85_599)],
    ['store_down/main'],
    [100_600, 85_599],
  ],
  [
    'both are recorded',
    [cause(100_600), effect('history', 100_100)],
    ['store_down/main', 'role_down/history'],
    [100_600, 100_100],
  ],
])('%s', (_, all, recorded, starts) => {
  const isNew = (line: string) => !recorded.includes(line);
  expect(startsInOrder(all, isNew, facts).map(({ found }) => found.sinceMs)).toEqual(starts);
});
