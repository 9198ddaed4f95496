import { expect, test } from 'vitest';
import { planDomains } from '../../../../src/probes/domains/plan.ts';
import { clusterGroup, probesOptions } from '../../../cluster-group.ts';

const describeBy = { command: ['cli', '{domain}'], intervalMs: 60_000, timeoutMs: 10_000 };
const planned = (watch: string[], group = clusterGroup({}, {})) =>
  planDomains(probesOptions({ domains: { watch, describe: describeBy }, clusterGroupMetadata: group }));

test('one row for each watched domain, however often it is named', () => {
  const rows = planned(['orders', 'payments', 'orders']);
  expect(rows.map(({ name }) => name)).toEqual(['domain/orders', 'domain/payments']);
  expect(rows[0]).toMatchObject({
    kind: 'domain',
    target: 'cli',
    service: '',
    schedule: { intervalMs: 60_000, timeoutMs: 10_000 },
    shows: { counters: [{ name: 'svc_domain_failovers_total', labels: { domain: 'orders' } }] },
  });
});

test('no row without a command, or without a domain', () => {
  expect(planDomains(probesOptions({}))).toEqual([]);
  expect(planDomains(probesOptions({ domains: { watch: ['orders'] } }))).toEqual([]);
  expect(planned([])).toEqual([]);
});

test('the key is of all that a probe depends on', () => {
  const keys = [planned(['a']), planned(['b']), planned(['a'], clusterGroup({}))].map(([row]) => row!.key);
  expect(new Set(keys).size).toBe(3);
  expect(planned(['a'])[0]!.key).toBe(keys[0]);
});
