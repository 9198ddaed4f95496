import { expect, test } from 'vitest';
import { parseDescription } from '../../../../src/probes/domains/description.ts';

/** The description of a domain with this field. */
const described = (field: object) =>
  parseDescription(JSON.stringify({ name: 'orders', activeCluster: 'dc1', ...field }))!;

const atMs = Date.UTC(2026, 2, 2, 10, 15, 30);
const dayMs = 86_400_000;

test.each([
  ['2026-03-02T10:15:30Z', atMs],
  ['2026-03-02T12:15:30+02:00', atMs],
  ['2026-03-02T10:15:30.123456789Z', atMs + 123],
  [atMs / 1000, atMs],
  [atMs, atMs],
  [atMs * 1000, atMs],
  [`${atMs}000000`, atMs],
  ['2026-03-02', undefined],
  ['1999-03-02T10:15:30Z', undefined],
  [7, undefined],
  ['soon', undefined],
  [null, undefined],
])('moment %s', (value, moment) =>
  expect(described({ failoverHistory: [{ eventTime: value }] }).failoverHistory![0]!.atMs).toBe(moment),
);

test.each([
  [7, 7 * dayMs],
  ['7', 7 * dayMs],
  ['7 days', 7 * dayMs],
  ['1 day', dayMs],
  ['72h0m0s', 3 * dayMs],
  ['604800s', 7 * dayMs],
  [0, 0],
  [-1, undefined],
  ['', undefined],
  ['for ever', undefined],
  [{ days: 7 }, undefined],
])('retention %s', (value, ms) => expect(described({ retentionDays: value }).retentionMs).toBe(ms));

test.each([
  ['ENABLED', true],
  ['enabled', true],
  ['ARCHIVAL_STATUS_ENABLED', true],
  ['DISABLED', false],
  ['ARCHIVAL_STATUS_DISABLED', false],
  ['paused', false],
  [1, true],
  [0, false],
  [2, undefined],
  ['', undefined],
  [undefined, undefined],
])('archival status %s', (value, on) =>
  expect(described({ historyArchivalStatus: value }).archival.history).toBe(on),
);

test.each([
  ['[dc1 dc2]', ['dc1', 'dc2']],
  ['dc1, dc2', ['dc1', 'dc2']],
  [
    ['dc1', 'dc2'],
    ['dc1', 'dc2'],
  ],
  [
    [{ clusterName: 'dc1' }, { cluster_name: 'dc2' }, { name: 'dc3' }],
    ['dc1', 'dc2', 'dc3'],
  ],
  ['N/A, Not a global domain', undefined],
  ['[]', undefined],
  [[], undefined],
  [[null, 7], undefined],
  [7, undefined],
])('names %j', (value, names) => expect(described({ clusters: value }).clusters).toEqual(names));

test.each(['<nil>', '<no value>', ' '])(
  '%j in place of a cluster: nothing describes the domain',
  (cluster) => {
    expect(parseDescription(JSON.stringify({ name: 'orders', activeCluster: cluster }))).toBeUndefined();
    expect(parseDescription(`Name: orders\nActiveClusterName: ${cluster}\n`)).toBeUndefined();
  },
);

test('numbers and states that are written as text', () => {
  const integerOf = (value: unknown) => described({ failoverVersion: value }).failoverVersion;
  const booleanOf = (value: unknown) => described({ isGlobal: value }).global;
  expect(['12', 12, ' 12 ', -24, '-24'].map(integerOf)).toEqual([12, 12, 12, -24, -24]);
  expect(['1.5', 1.5, '', '9'.repeat(30), null, true].map(integerOf)).toEqual(Array(6).fill(undefined));
  expect([true, 'TRUE', 'false', 'yes', 1].map(booleanOf)).toEqual([true, true, false, undefined, undefined]);
});
