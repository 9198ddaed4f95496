import { expect, test } from 'vitest';
import { planClusters } from '../../../../src/probes/clusters/plan.ts';
import { clusterGroup, probeOnce, probesOptions, samplesOf } from '../../../cluster-group.ts';

const planned = (group: ReturnType<typeof clusterGroup>) =>
  planClusters(probesOptions({ clusterGroupMetadata: group }));

test('one row for the own cluster, one for each enabled peer with an address', () => {
  const rows = planned(
    clusterGroup(
      { rpcAddress: '10.0.0.1:7833' },
      { rpcAddress: '10.0.0.2:7833', rpcTransport: 'grpc' },
      { rpcAddress: '10.0.0.3:7833', enabled: false },
      {},
      { rpcAddress: '[::1]:7833' },
    ),
  );
  expect(rows.map(({ name, target }) => [name, target])).toEqual([
    ['cluster/dc1', 'clusterGroupMetadata'],
    ['cluster/dc2', '10.0.0.2:7833'],
    ['cluster/dc5', '[::1]:7833'],
  ]);
  expect(rows[0]!.shows).toEqual({});
  expect(rows[1]).toMatchObject({
    kind: 'cluster',
    service: '',
    shows: {
      up: { name: 'svc_cluster_up', labels: { remote_cluster: 'dc2' } },
      duration: { name: 'svc_cluster_probe_duration_seconds', labels: { remote_cluster: 'dc2' } },
    },
  });
});

test('the enabled clusters are counted once, without peers too', async () => {
  const alone = await probeOnce(planned(clusterGroup({}))[0]!);
  const group = 'svc_cluster_group_info{primary_cluster="dc1"} 1';
  expect(samplesOf(alone)).toEqual([group, 'svc_clusters 1']);
  const three = planned(clusterGroup({}, {}, { enabled: false }, { rpcAddress: '10.0.0.4:1' }));
  const found = await probeOnce(three[0]!);
  expect(samplesOf(found)).toEqual([group, 'svc_clusters 3']);
  expect(found.msg).toBe('this cluster; enabled in the group: dc1, dc2, dc4');
  expect(found.details).toEqual({ current: 'dc1', primary: 'dc1', enabled: ['dc1', 'dc2', 'dc4'] });
});

test('without a group there is nothing to check', () => {
  expect(planClusters(probesOptions({}))).toEqual([]);
});

test('a peer is another one when its address, its name or its transport is', () => {
  const keyOf = (peer: object) => planned(clusterGroup({}, { rpcAddress: '10.0.0.2:1', ...peer }))[1]!.key;
  const keys = [{}, { rpcAddress: '10.0.0.2:2' }, { rpcName: 'x' }, { rpcTransport: 'grpc' }].map(keyOf);
  expect(new Set(keys).size).toBe(4);
  expect(keyOf({ initialFailoverVersion: 7 })).toBe(keys[0]);
});
