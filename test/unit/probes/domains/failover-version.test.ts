import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clusterOfVersion, failoversBetween } from '../../../../src/probes/domains/failovers.ts';

const groupOf = (failoverVersionIncrement: number, initials: readonly number[]) => ({
  failoverVersionIncrement,
  clusters: initials.map((initialFailoverVersion, index) => ({
    name: `dc${index + 1}`,
    enabled: true,
    initialFailoverVersion,
  })),
});

test.each([
  [0, 'dc1'],
  [2, 'dc2'],
  [10, 'dc1'],
  [12, 'dc2'],
  [20, 'dc1'],
  [1_000_000_002, 'dc2'],
  [1, undefined],
  [13, undefined],
  [-24, undefined],
  [-8, undefined],
])('version %i of the clusters 0 and 2, by tens', (version, name) => {
  expect(clusterOfVersion(version, groupOf(10, [0, 2]))?.name).toBe(name);
});

/**
 * The next version of a failover as the service computes it (github.com/cadence-workflow/cadence, common/cluster/metadata.go): in
 * the round of the current version, or in the next round if that version would be lower.
 */
function nextVersion(current: number, initial: number, increment: number): number {
  const version = Math.floor(current / increment) * increment + initial;
  return version < current ? version + increment : version;
}

test('whatever failovers there were, the version belongs to the cluster of the last', () => {
  const groups = fc.integer({ min: 1, max: 1000 }).chain((increment) =>
    fc.record({
      increment: fc.constant(increment),
      initials: fc.uniqueArray(fc.nat(increment - 1), { minLength: 1, maxLength: 5 }),
    }),
  );
  fc.assert(
    fc.property(
      groups,
      fc.array(fc.nat(), { minLength: 1, maxLength: 50 }),
      ({ increment, initials }, picks) => {
        const group = groupOf(increment, initials);
        let version = 0;
        for (const pick of picks) {
          const target = pick % initials.length;
          const next = nextVersion(version, initials[target]!, increment);
          expect(next).toBeGreaterThanOrEqual(version);
          version = next;
          expect(clusterOfVersion(version, group)?.name).toBe(`dc${target + 1}`);
        }
      },
    ),
  );
});

test('a version may belong to the new initial version that a cluster moves to', () => {
  const group = groupOf(10, [0, 2]);
  const moving = {
    ...group,
    clusters: group.clusters.map((cluster, index) => ({ ...cluster, newInitialFailoverVersion: 5 + index })),
  };
  expect([5, 16, 2, 3].map((version) => clusterOfVersion(version, moving)?.name)).toEqual([
    'dc1',
    'dc2',
    'dc2',
    undefined,
  ]);
});

test.each([
  [0, 2, 1],
  [2, 10, 1],
  [0, 10, 2],
  [2, 22, 4],
  [12, 12, 0],
  [12, 2, 0],
  [0, 13, 1], // not a version of the group
  [0, 1_000_000_000, 1], // another numbering
])('from version %i to %i of two clusters: %i failovers', (from, to, failovers) => {
  expect(failoversBetween(from, to, groupOf(10, [0, 2]))).toBe(failovers);
});

test('never more failovers than there were', () => {
  const picks = fc.array(fc.nat(), { maxLength: 50 });
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(99), { minLength: 1, maxLength: 5 }), picks, (initials, targets) => {
      const versions = [initials[0]!];
      for (const pick of targets)
        versions.push(nextVersion(versions.at(-1)!, initials[pick % initials.length]!, 100));
      const moves = versions.filter((version, index) => index > 0 && version !== versions[index - 1]).length;
      const counted = failoversBetween(versions[0]!, versions.at(-1)!, groupOf(100, initials));
      expect(counted).toBeLessThanOrEqual(moves);
      expect(counted > 0).toBe(moves > 0);
    }),
  );
});
