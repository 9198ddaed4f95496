import { expect, test } from 'vitest';
import { answerOf, no, unknown, yes } from '../../../src/agent/recovery/check.ts';
import type { Checks } from '../../../src/agent/recovery/checks.ts';
import type { Sample } from '../../../src/probes/probe.ts';
import { asking, gauges, named, rows } from '../../recovery-checks.ts';

const domain = 'domain/orders';
const activeIn = (active_cluster: string) => gauges('svc_domain_active_cluster', 1, { active_cluster });
const [inDc1, inDc2, inDc3] = [
  { [domain]: activeIn('dc1') },
  { [domain]: activeIn('dc2') },
  { [domain]: activeIn('dc3') },
];
const healthy = { 'health/history': {}, 'health/matching': {} };
const setDescribe = unknown(expect.stringContaining('domains.describe') as never);
const cutOff = { [domain]: { msg: 'cut off' } };
const clusters = (...names: string[]) => ({ [domain]: { details: { clusters: names } } });
const down = ({ activeClusterDown }: Checks) => activeClusterDown();
const seenDown = ({ standbySeesItDown }: Checks) => standbySeesItDown();
const reachable = (cluster: string) => (checks: Checks) => checks.clusterReachable(cluster);
const caughtUp = ({ replicationCaughtUp }: Checks) => replicationCaughtUp('dc2');
const lag = (value: number, target_cluster = 'dc2'): Sample => ({
  name: 'svc_replication_lag_seconds',
  value,
  labels: { target_cluster },
});

const ofClusters = [
  ...asking(down, [
    ['an active cluster that nothing tells', {}, setDescribe],
    [
      'an active cluster that is gone',
      { ...inDc3, 'cluster/dc3': { reason: 'refused', msg: 'closed' } },
      yes('dc3: closed'),
    ],
    ['an active cluster that answers', { ...inDc3, 'cluster/dc3': {} }, no('dc3 still answers: fine')],
    [
      'a domain that is there already',
      { ...inDc2, 'cluster/dc2': {} },
      yes('orders is already active in dc2'),
    ],
    ['an active cluster without an address', inDc3, unknown('set rpcAddress of dc3 in clusterGroupMetadata')],
  ]),
  ...asking(seenDown, [
    [
      'the standby itself',
      inDc3,
      yes('dc1 is the cluster of this configuration'),
      { subject: { to: 'dc1' } },
    ],
    ['the standby, which is active', inDc2, yes('dc2 is the cluster of this configuration')],
    [
      'no command at the standby',
      inDc3,
      unknown('set recovery.commands.standbyProbe, or run this beside the standby'),
    ],
    ['a standby that reaches it', inDc3, no('dc2 still reaches dc3'), { commands: named(['true']) }],
    ['a standby that does not reach it', inDc3, yes('dc2 does not see dc3'), { commands: named(['false']) }],
    [
      'a command that does not reach the standby',
      inDc3,
      unknown('sh: exit status 255'),
      { commands: named(['sh', '-c', 'exit 255']) },
    ],
  ]),
  ...asking(reachable('dc3'), [['another cluster', { 'cluster/dc3': { msg: 'serving' } }, yes('serving')]]),
  ...asking(reachable('dc1'), [
    [
      'its own cluster, with healthy roles',
      { 'cluster/dc1': {}, ...healthy },
      yes('its roles are healthy'),
      { rows },
    ],
    [
      'its own cluster, with a role that is down',
      { 'cluster/dc1': {}, 'health/history': {}, 'health/matching': { reason: 'refused', msg: 'closed' } },
      no('health/matching: closed'),
      { rows },
    ],
    [
      'its own cluster, whose frontend is down',
      { 'cluster/dc1': { reason: 'refused', msg: 'no frontend' }, ...healthy },
      no('no frontend'),
      { rows },
    ],
    ['a cluster without an address, by its roles', healthy, yes('its roles are healthy'), { rows }],
    [
      'a configuration without a group, by its roles',
      healthy,
      yes('its roles are healthy'),
      { rows, config: {} },
    ],
  ]),
  ...asking(caughtUp, [
    ['a lag that nothing tells', { 'replication/dc1': { msg: 'no metric' } }, unknown('no metric')],
    [
      'a lag without words',
      { 'replication/dc1': { msg: '', gauges: [lag(1, 'dc3')] } },
      unknown('the lag of dc2 is unknown'),
    ],
    [
      'the largest lag at the limit',
      {
        'replication/dc1': {
          gauges: [
            lag(10),
            lag(3),
            lag(99, 'dc3'),
            { ...lag(99), name: 'svc_replication_dlq_size' as never },
          ],
        },
      },
      yes('10 s behind'),
    ],
    ['a lag above the limit', { 'replication/dc1': { gauges: [lag(3), lag(10.5)] } }, no('10.5 s behind')],
  ]),
];

const global = ({ globalDomain }: Checks) => globalDomain();
const inClusters = ({ inClusters: ask }: Checks) => ask('dc2');
const isActive = ({ activeIn: ask }: Checks) => ask('dc2');
const agree = ({ noDisagreement }: Checks) => noDisagreement();

const ofDomains = [
  ...asking(global, [
    ['a domain that is not described', {}, setDescribe],
    ['a global domain', { [domain]: gauges('svc_domain_global', 1) }, yes('it is a global domain')],
    [
      'a local domain',
      { [domain]: gauges('svc_domain_global', 0) },
      no('it is a local domain, which cannot fail over'),
    ],
    ['a description without it', cutOff, unknown('cut off')],
  ]),
  ...asking(inClusters, [
    ['a cluster of the domain', clusters('dc1', 'dc2'), yes('dc1, dc2')],
    ['another cluster', clusters('dc1', 'dc3'), no('it has dc1, dc3')],
    ['a description without clusters', cutOff, unknown('cut off')],
  ]),
  ...asking(isActive, [
    ['the active cluster', inDc2, yes('active in dc2')],
    ['another active cluster', inDc1, no('active in dc1')],
    ['no active cluster', cutOff, unknown('cut off')],
  ]),
  ...asking(agree, [
    ['clusters that agree', { [domain]: {} }, yes('they agree')],
    [
      'clusters that disagree',
      { [domain]: { reason: 'clusters_disagree', msg: 'dc1 and dc2' } },
      no('dc1 and dc2'),
    ],
  ]),
];

test.each([...ofClusters, ...ofDomains])('%s', async (_, asks, checks, answer) => {
  expect(await answerOf(asks(checks()))).toEqual(answer);
});
