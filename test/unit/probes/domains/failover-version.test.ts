import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clusterOfVersion } from '../../../../src/probes/clusters/cluster-group.ts';

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
 * The next version of a failover as the service makes it (github.com/cadence-workflow/cadence,
 * common/cluster/metadata.go): the round of the current one, one more if that would fall behind.
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
