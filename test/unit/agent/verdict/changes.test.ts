import { expect, test } from 'vitest';
import type { StatusFacts } from '../../../../src/agent/report.ts';
import { createChangeFinder } from '../../../../src/agent/verdict/changes.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const facts = (changedAt?: string): StatusFacts =>
  ({
    now: '2026-01-01T00:10:00.000Z',
    probes: [],
    versions: {},
    restarts: {},
    domains: [],
    certificates: [],
    config: {
      files: [],
      lastReloadSuccessful: true,
      dynamic: { file: '/etc/svc/dynamic.yaml', ...(changedAt && { changedAt }) },
    },
  }) as unknown as StatusFacts;

test('a change of the service’s dynamic configuration is dated by its file, once, also after it was away', () => {
  const find = createChangeFinder();
  expect(find(facts('2026-01-01T00:00:00.000Z'))).toEqual([]);
  expect(find(facts('2026-01-01T00:00:00.000Z'))).toEqual([]);
  expect(find(facts())).toEqual([]);
  const change = {
    at: '2026-01-01T00:09:00.000Z',
    kind: 'configuration',
    what: 'the service’s dynamic configuration changed: /etc/svc/dynamic.yaml',
  };
  expect(find(facts('2026-01-01T00:09:00.000Z'))).toEqual([change]);
  expect(find(facts('2026-01-01T00:09:00.000Z'))).toEqual([]);
});

/** The changes from one report to the next, as `KIND AT: WHAT`. */
const changesFrom = (...reports: Partial<StatusFacts>[]) => {
  const find = createChangeFinder();
  const now = '2026-01-01T00:10:00.000Z';
  return reports
    .flatMap((report) => find(statusFactsOf({ now, ...report })))
    .map(({ kind, at, what }) => `${kind} ${at === now ? 'now' : at}: ${what}`);
};
const store = (schema: unknown, more = {}) => ({
  probes: [probeStatusOf('store/main/p', { details: { schema }, ...more })],
});

test('a schema changes where a store is well and says its version', () => {
  const changed = ['schema now: the schema of main/p changed from 0.7 to 0.8'];
  expect(changesFrom(store('0.7'), store('0.8'))).toEqual(changed);
  expect(changesFrom(store('0.7'), store('0.7'))).toEqual([]);
  const refused = { reason: 'refused', msg: '' };
  expect(changesFrom(store('0.7'), store('0.8', refused))).toEqual([]);
  expect(changesFrom(store('0.7'), store('0.8', refused), store('0.8'))).toEqual(changed);
  expect(changesFrom(store('0.7'), store(8), store(undefined))).toEqual([]);
  const unchecked = { probes: [{ ...probeStatusOf('store/main/p'), last: undefined }] };
  expect(changesFrom(store('0.7'), unchecked, store('0.8'))).toEqual(changed);
  const domain = (schema: string) => ({ probes: [probeStatusOf('domain/x', { details: { schema } })] });
  expect(changesFrom(domain('1'), domain('2'))).toEqual([]);
});

test('restarts and failovers are totals that grow', () => {
  const restarts = (history: number) => ({ restarts: { history } });
  expect(changesFrom(restarts(1), restarts(2))).toEqual(['restart now: role history restarted']);
  expect(changesFrom(restarts(2), restarts(1), restarts(1))).toEqual([]);
  const domain = (failovers: number, more = {}) => ({ domains: [{ domain: 'd', failovers, ...more }] });
  expect(changesFrom(domain(1), domain(2))).toEqual(['failover now: domain d failed over']);
  const at = '2026-01-01T00:08:00.000Z';
  const both = {
    domains: [{ domain: 'e', failovers: 0 }, ...domain(2, { activeCluster: 'b', lastFailover: at }).domains],
  };
  expect(changesFrom(domain(1), both)).toEqual([`failover ${at}: domain d failed over to b`]);
  expect(changesFrom(domain(2), domain(1))).toEqual([]);
});

test('a configuration is new when it was loaded at another time', () => {
  const config = (changedAt?: string) => ({
    config: { files: [], lastReloadSuccessful: true, ...(changedAt && { changedAt }) },
  });
  const at = '2026-01-01T00:08:00.000Z';
  const changed = [`configuration ${at}: the agent loaded a new configuration`];
  expect(changesFrom(config(), config(at), config(at))).toEqual(changed);
  expect(changesFrom(config('2026-01-01T00:01:00.000Z'), config(at))).toEqual(changed);
  expect(changesFrom(config(at), config())).toEqual([]);
});

test('versions and certificates change, and come back as what they were', () => {
  const version = (history: string) => ({ versions: { history } });
  expect(changesFrom(version('1'), {}, version('2'), version('2'))).toEqual([
    'version now: the version of history changed from 1 to 2',
  ]);
  expect(changesFrom(version('1'), {}, version('1'))).toEqual([]);
  const certificate = (notAfter: string) => ({ certificates: [{ probe: 'store/main', notAfter }] });
  expect(changesFrom(certificate('a'), {}, certificate('b'))).toEqual([
    'certificate now: store/main has a new certificate, valid until b',
  ]);
});
