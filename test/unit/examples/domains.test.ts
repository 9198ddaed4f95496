import { describe, expect, it } from 'vitest';
import { domainJson, domainText } from '../../../examples/cli/print.ts';
import { createDomains, nextVersion } from '../../../examples/service/clusters/domains.ts';
import { createRandom } from '../../../examples/service/random.ts';
import { parseDescription } from '../../../src/probes/domains/description.ts';
import { manualClock } from '../../clock.ts';

const begin = () => {
  const clock = manualClock(Date.UTC(2026, 0, 1));
  const archives = { history: 'file:///a/history/', visibility: 'file:///a/visibility/' };
  return { clock, domains: createDomains({ clock, random: createRandom(1), archives }) };
};

// Computed by hand: dc1 has 1, 11, 21, …, dc2 has 2, 12, 22, …
it.each([
  [1, 'dc2', 2],
  [2, 'dc1', 11],
  [11, 'dc2', 12],
  [12, 'dc2', 22],
  [0, 'dc1', 1],
] as const)('after version %i, that of %s is %i', (version, to, next) => {
  expect(nextVersion(version, to)).toBe(next);
});

describe('a domain', () => {
  it('is active in the service’s own cluster at first, without a failover', () => {
    const { domains } = begin();
    expect(domains.describe('orders')).toMatchObject({
      domainInfo: { name: 'orders', data: {} },
      replicationConfiguration: { activeClusterName: 'dc1' },
      failoverVersion: 1,
    });
    expect(domains.describe('mail')).toBeUndefined();
  });

  it('goes over to the other cluster and back, and keeps the last five failovers', () => {
    const { clock, domains } = begin();
    for (let minute = 1; minute <= 7; minute += 1) {
      clock.advance(60_000);
      domains.failOver('orders');
    }
    const { replicationConfiguration, failoverVersion, domainInfo } = domains.describe('orders')!;
    expect([replicationConfiguration.activeClusterName, failoverVersion]).toEqual(['dc2', 32]);
    const failovers = JSON.parse(domainInfo.data.FailoverHistory!);
    expect(failovers).toHaveLength(5);
    expect(failovers[0]).toMatchObject({
      eventTime: '2026-01-01T00:07:00.000Z',
      fromCluster: 'dc1',
      toCluster: 'dc2',
    });
    expect(domains.describe('payments')).toMatchObject({ failoverVersion: 1, domainInfo: { data: {} } });
  });
});

describe.each([
  { form: 'text', print: domainText, version: undefined },
  { form: 'JSON', print: domainJson, version: 2 },
])('printed as $form', ({ print, version }) => {
  it('is what the agent reads', () => {
    const { clock, domains } = begin();
    domains.failOver('orders');
    expect(parseDescription(print(domains.describe('orders')!))).toMatchObject({
      name: 'orders',
      activeCluster: 'dc2',
      clusters: ['dc1', 'dc2'],
      global: true,
      failoverVersion: version,
      retentionMs: 3 * 24 * 3_600_000,
      archival: { history: true, visibility: true },
      failoverHistory: [{ atMs: clock.nowMs(), to: 'dc2' }],
    });
  });
});
