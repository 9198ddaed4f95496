import { expect, test } from 'vitest';
import { type CostFacts, costsOf } from '../../../src/agent/recovery/cost.ts';

const nowMs = Date.parse('2026-11-23T12:00:00Z');

/** A database with a base of 200 MB, of which 100 MB were rehearsed an hour ago, and a domain on two clusters. */
const facts = (over: Partial<CostFacts> = {}): CostFacts => ({
  nowMs,
  probes: [
    {
      name: 'recovery/main/persistence',
      msg: 'at most 2m would be lost',
      details: {
        chain: {
          recoveryPoint: '2026-11-23T11:58:00Z',
          links: [
            { backup: 'base', type: 'full' },
            { backup: 'wal', type: 'log' },
          ],
        },
      },
    },
    { name: 'backup/base', msg: '', details: { newest: { bytes: 200_000_000 } } },
    {
      name: 'rehearsal/main/persistence',
      msg: '',
      details: {
        last: {
          ...{ result: 'ok', startMs: nowMs - 3_600_000, endMs: nowMs - 3_500_000, backupBytes: 100_000_000 },
          phasesMs: { create: 5000, copy: 60_000, log: 30_000, check: 1000, remove: 9000 },
        },
      },
    },
  ],
  domains: [{ domain: 'orders', activeCluster: 'dc1' }],
  clusters: ['dc1', 'dc2', 'dc3'],
  replication: [
    { source: 'dc3', target: 'dc2', lagSeconds: 900 },
    { source: 'dc1', target: 'dc2', lagSeconds: 1.5 },
  ],
  workflowRate: 7,
  drillMs: () => undefined,
  ...over,
});
const of = (procedure: string, over?: Partial<CostFacts>) =>
  costsOf(facts(over)).filter((cost) => cost.procedure === procedure);

test('a restore: what was rehearsed, for the size that the backup has now, and the workflows of the recovery point', () => {
  expect(of('database-corruption')).toEqual([
    {
      procedure: 'database-corruption',
      subject: 'main/persistence',
      // Copy and check count twice; the start of the server and the log count once.
      timeSeconds: 157,
      basis: 'the restore alone, as rehearsed 1h ago, for a backup of 2.00 times the size',
      lossSeconds: 120,
      lossWorkflows: 840,
      unknown: [],
    },
  ]);
});

const [recovery, backup, rehearsal] = facts().probes;
const linked = (...links: object[]) => ({
  ...recovery!,
  details: { chain: { ...(recovery!.details.chain as object), links } },
});
const rehearsed = (backupBytes?: number) => ({
  ...rehearsal!,
  details: { last: { ...(rehearsal!.details.last as object), backupBytes } },
});
const log = { backup: 'wal', type: 'log' };
test.each<[string, CostFacts['probes'], number, string]>([
  [
    'whose chain ends with its base',
    [linked(log, { backup: 'base', type: 'full' }), backup!, rehearsal!],
    157,
    '2.00',
  ],
  ['that cannot be recovered now', [{ ...recovery!, details: {} }, backup!, rehearsal!], 96, ''],
  ['whose chain has no base', [linked(log), backup!, rehearsal!], 96, ''],
  ['whose backup nobody checks', [recovery!, rehearsal!], 96, ''],
  ['whose backup was not found', [recovery!, { ...backup!, details: {} }, rehearsal!], 96, ''],
  ['that was rehearsed before sizes were recorded', [recovery!, backup!, rehearsed()], 96, ''],
])('a restore of a database %s', (_, probes, timeSeconds, share) => {
  const size = share && `, for a backup of ${share} times the size`;
  const basis = `the restore alone, as rehearsed 1h ago${size}`;
  expect(of('database-corruption', { probes })).toMatchObject([{ timeSeconds, basis }]);
});

test('a drill of the procedure itself says more than a rehearsal', () => {
  const drillMs: CostFacts['drillMs'] = (procedure, subject) =>
    procedure === 'cluster-loss' && subject === 'main/persistence' ? 600_000 : undefined;
  expect(of('cluster-loss', { drillMs })).toMatchObject([
    { timeSeconds: 600, basis: 'the last drill of this procedure' },
  ]);
  expect(of('database-corruption', { drillMs })).toMatchObject([{ timeSeconds: 157 }]);
});

test('what is not known is said, with what would make it known', () => {
  const probes = [{ name: 'recovery/main/persistence', msg: 'there is no full backup', details: {} }];
  const [cost] = of('cluster-loss', { probes, workflowRate: 'the agent does not answer' });
  expect(cost).toEqual({
    procedure: 'cluster-loss',
    subject: 'main/persistence',
    unknown: [
      'the time: the restore has never been rehearsed; set recovery.rehearsal, or run a drill',
      'the recovery point: there is no full backup',
    ],
  });
  expect(of('cluster-loss', { workflowRate: 'no role sends it' })).toMatchObject([
    { lossSeconds: 120, unknown: ['the number of workflows: no role sends it'] },
  ]);
});

test('a rehearsal that failed measures nothing', () => {
  const { probes } = facts();
  const failed = {
    name: 'rehearsal/main/persistence',
    msg: 'the backup cannot be restored: half',
    details: {},
  };
  expect(of('cluster-loss', { probes: [...probes.slice(0, 2), failed] })).toMatchObject([
    { unknown: ['the time: the restore has never been rehearsed; the backup cannot be restored: half'] },
  ]);
});

test('a failover: the lag of the domain to each other cluster', () => {
  expect(of('datacenter-failure')).toEqual([
    {
      procedure: 'datacenter-failure',
      subject: 'orders to dc2',
      lossSeconds: 1.5,
      lossWorkflows: 11,
      unknown: ['the time: run a drill of datacenter-failure for orders'],
    },
    {
      procedure: 'datacenter-failure',
      subject: 'orders to dc3',
      unknown: [
        'the time: run a drill of datacenter-failure for orders',
        'the data: the replication lag from dc1 to dc3; scrape the history role of dc3',
      ],
    },
  ]);
  const drillMs = () => 30_000;
  expect(of('datacenter-failure', { drillMs })).toMatchObject([
    { timeSeconds: 30, basis: 'the last drill of this procedure', unknown: [] },
    { timeSeconds: 30, unknown: [expect.stringMatching(/^the data: /)] },
  ]);
  expect(of('failback', { domains: [{ domain: 'orders' }] })).toMatchObject([
    { subject: 'orders', unknown: [expect.stringContaining('not known where orders is active')] },
  ]);
});
