import { expect, test } from 'vitest';
import type { DomainDescription } from '../../../../src/probes/domains/description.ts';
import { failoverReadiness } from '../../../../src/probes/domains/failovers.ts';
import type { Finding } from '../../../../src/probes/probe.ts';

const group = {
  failoverVersionIncrement: 10,
  primaryClusterName: 'dc1',
  currentClusterName: 'dc1',
  clusters: ['dc1', 'dc2', 'dc3'].map((name, initialFailoverVersion) => ({
    name,
    enabled: true,
    initialFailoverVersion,
  })),
};
const domain = (activeCluster: string, more: Partial<DomainDescription> = {}): DomainDescription => ({
  activeCluster,
  clusters: ['dc1', 'dc2'],
  global: true,
  archival: {},
  ...more,
});
const well: Finding = { msg: 'ok' };
const lag = (source_cluster: string, target_cluster: string, value: number): Finding => ({
  msg: '',
  gauges: [{ name: 'svc_replication_lag_seconds', labels: { source_cluster, target_cluster }, value }],
});

interface Case {
  own?: DomainDescription;
  view?: DomainDescription;
  peer?: Finding;
  replication?: Finding;
  underWay?: number;
}
const ready = ({ own = domain('dc1'), underWay, ...rest }: Case) => {
  const { view, peer, replication } = {
    view: domain('dc1'),
    peer: well,
    replication: lag('dc1', 'dc2', 3),
    ...rest,
  };
  const findings: Record<string, Finding | undefined> = {
    'cluster/dc2': peer,
    'replication/dc1': replication,
  };
  return failoverReadiness({
    own,
    views: new Map(view ? [['dc2', view]] : []),
    group,
    underWay,
    latest: (name) => findings[name],
  });
};

test.each<[string, Case, boolean | undefined]>([
  ['everything is well', {}, true],
  ['the peer does not answer', { peer: { reason: 'refused', msg: 'refused' } }, false],
  ['the lag is above 300 s', { replication: lag('dc1', 'dc2', 301) }, false],
  ['the lag is 300 s', { replication: lag('dc1', 'dc2', 300) }, true],
  ['the views differ', { view: domain('dc2') }, false],
  [
    'a failover has not reached this cluster yet',
    {
      own: domain('dc2', { failoverVersion: 1 }),
      view: domain('dc1', { failoverVersion: 10 }),
      underWay: 10,
    },
    undefined,
  ],
  [
    'a failover has not reached the standby yet',
    {
      own: domain('dc1', { failoverVersion: 10 }),
      view: domain('dc2', { failoverVersion: 1 }),
      underWay: 10,
    },
    undefined,
  ],
  ['the domain has one cluster', { own: domain('dc1', { clusters: ['dc1'] }) }, false],
  ['the peer was not checked yet', { peer: undefined }, undefined],
  ['the lag is not known', { replication: well }, undefined],
  ['the lag of the other direction is known only', { replication: lag('dc2', 'dc1', 0) }, undefined],
  ['the other clusters are not asked', { view: undefined }, undefined],
  ['a known fault beside something unknown', { peer: undefined, replication: lag('dc1', 'dc2', 999) }, false],
  [
    'this cluster is the standby',
    { own: domain('dc2'), view: domain('dc2'), peer: undefined, replication: lag('dc2', 'dc1', 1) },
    true,
  ],
  [
    'a third cluster is not ready, the second is',
    { own: domain('dc1', { clusters: ['dc1', 'dc2', 'dc3'] }) },
    true,
  ],
])('ready to fail over: %s', (_, given, expected) => {
  expect(ready(given)?.ready).toBe(expected);
  expect(ready(given)?.why).not.toBe('');
});

test('a local domain never fails over', () => {
  expect(ready({ own: domain('dc1', { global: false }) })).toBeUndefined();
});
