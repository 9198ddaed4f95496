import { expect, test } from 'vitest';
import {
  agreementCheck,
  durableWritesCheck,
  nodeCounts,
  replicationChecks,
  settingChecks,
  settingsOf,
} from '../../../../src/probes/stores/cassandra-checks.ts';

const simple = 'org.apache.cassandra.locator.SimpleStrategy';
const byDatacenter = 'org.apache.cassandra.locator.NetworkTopologyStrategy';

test.each([
  [{ class: simple, replication_factor: '1' }, false, 'replication_factor = 1 (SimpleStrategy)'],
  [{ class: simple, replication_factor: '2' }, false, 'replication_factor = 2 (SimpleStrategy)'],
  [{ class: simple, replication_factor: '3' }, true, 'replication_factor = 3 (SimpleStrategy)'],
  [{ class: 'SimpleStrategy', replication_factor: '5' }, true, 'replication_factor = 5 (SimpleStrategy)'],
  [{ class: simple, replication_factor: '3/1' }, true, 'replication_factor = 3 (SimpleStrategy)'],
  [{ class: simple }, false, 'replication_factor = 0 (SimpleStrategy)'],
  [{ class: simple, replication_factor: 'x' }, false, 'replication_factor = NaN (SimpleStrategy)'],
  [{ class: byDatacenter, dc1: '3' }, true, 'replication_factor = 3 in dc1 (NetworkTopologyStrategy)'],
  [
    { class: byDatacenter, dc1: '3', dc2: '2' },
    false,
    'replication_factor = 3 in dc1, 2 in dc2 (NetworkTopologyStrategy)',
  ],
  [
    { class: byDatacenter, dc1: '3', gone: '0' },
    true,
    'replication_factor = 3 in dc1 (NetworkTopologyStrategy)',
  ],
  [{ class: byDatacenter }, false, 'replication_factor = 0 (NetworkTopologyStrategy)'],
  [{ class: 'org.apache.cassandra.locator.LocalStrategy' }, 'unknown', 'replication = LocalStrategy'],
  [null, 'unknown', 'replication = none'],
])('replication %j: %s', (replication, holds, found) => {
  const [factor] = replicationChecks(
    { replication },
    new Map([
      ['dc1', 5],
      ['dc2', 3],
    ]),
  );
  expect(factor).toEqual({ check: 'replication_factor', holds, found });
});

test.each([
  [{ class: simple, replication_factor: '3' }, 2, 'replication_factor = 3 on 2 nodes (SimpleStrategy)'],
  [{ class: byDatacenter, dc1: '3' }, 1, 'replication_factor = 3 in dc1 on 1 node (NetworkTopologyStrategy)'],
  [
    { class: byDatacenter, dc1: '3', dc9: '3' },
    3,
    'replication_factor = 3 in dc1, 3 in dc9 on 0 nodes (NetworkTopologyStrategy)',
  ],
])('more copies than nodes: %j on %s', (replication, count, found) => {
  const [factor] = replicationChecks({ replication }, new Map([['dc1', count]]));
  expect(factor).toEqual({ check: 'replication_factor', holds: false, found });
});

test('SimpleStrategy is a finding of its own', () => {
  const nodes = new Map([['dc1', 3]]);
  const strategyOf = (replication: object) => replicationChecks({ replication }, nodes)[1];
  expect(strategyOf({ class: simple, replication_factor: '3' })).toMatchObject({
    check: 'replication_strategy',
    holds: false,
  });
  expect(strategyOf({ class: byDatacenter, dc1: '3' })).toMatchObject({ holds: true });
});

test('nodes are counted by datacenter, this one included', () => {
  const peers = [{ data_center: 'a' }, { data_center: 'b' }, { data_center: null }];
  expect(nodeCounts({ data_center: 'a' }, peers)).toEqual(
    new Map([
      ['a', 2],
      ['b', 1],
    ]),
  );
});

test.each([
  [true, true, 'durable_writes = true'],
  [false, false, 'durable_writes = false'],
  [null, 'unknown', 'durable_writes is hidden'],
])('durable_writes %s: %s', (durable_writes, holds, found) => {
  expect(durableWritesCheck({ durable_writes })).toEqual({ check: 'durable_writes', holds, found });
});

test.each([
  ['alone', 'a', [], true, 'schema versions: 1, on nodes: 1'],
  ['three agree', 'a', ['a', 'a'], true, 'schema versions: 1, on nodes: 3'],
  ['one differs', 'a', ['a', 'b'], false, 'schema versions: 2, on nodes: 3; nodes that are down count too'],
  ['one has told none yet', 'a', ['a', null], true, 'schema versions: 1, on nodes: 2'],
  ['nobody has told any', null, [null], 'unknown', 'schema versions: 0, on nodes: 0'],
])('agreement: %s', (_, local, peers, holds, found) => {
  const rows = peers.map((schema_version) => ({ schema_version }));
  const result = agreementCheck({ schema_version: local }, rows);
  expect(result).toEqual({ check: 'schema_agreement', holds, found });
});

const setting = (name: string, value: string) => ({ name, value });

test('settings pass, fail, are missing, or cannot be read', () => {
  expect(
    settingChecks(settingsOf([setting('incremental_backups', 'true'), setting('auto_snapshot', 'false')])),
  ).toEqual([
    { check: 'incremental_backups', holds: true, found: 'incremental_backups = true' },
    { check: 'auto_snapshot', holds: false, found: 'auto_snapshot = false' },
  ]);
  expect(settingChecks(settingsOf([]))).toEqual([
    {
      check: 'incremental_backups',
      holds: 'unknown',
      found: 'system_views.settings has no incremental_backups',
    },
    { check: 'auto_snapshot', holds: 'unknown', found: 'system_views.settings has no auto_snapshot' },
  ]);
  expect(settingChecks({ unknown: 'too few rights' })).toEqual([
    { check: 'incremental_backups', holds: 'unknown', found: 'too few rights' },
    { check: 'auto_snapshot', holds: 'unknown', found: 'too few rights' },
  ]);
});
