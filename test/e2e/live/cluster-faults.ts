import { renameSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { placesIn } from './configs.ts';
import { critical, type Fault, info, warning } from './fault.ts';

const dc1 = { cluster: 'dc1' };
const incoming = { ...dc1, source_cluster: 'dc2', target_cluster: 'dc1' };
const dayS = 86_400;
const twoDaysS = 2 * dayS;
/** Sets the time of the newest object in the archive of dc2. */
function touch(directory: string, ageS: number): void {
  const then = Date.now() / 1000 - ageS;
  utimesSync(join(placesIn(directory).otherArchive, 'object'), then, then);
}

/** Faults of the other clusters, of domains and of archives. */
export const clusterFaults: readonly Fault[] = [
  {
    what: 'dc1 is 400 s behind dc2',
    provoke: ({ service }) => service.replicationLag.set(400),
    undo: ({ service }) => service.replicationLag.set(1),
    alerts: [critical('SvcReplicationLag', incoming, /^dc1 is 6m 40s behind dc2, above 5m\./)],
  },
  {
    what: 'replication tasks fail in dc1',
    provoke: ({ service }) => service.replicationFailures.rise(50),
    undo: ({ service }) => service.replicationFailures.rise(0),
    alerts: [
      warning('SvcReplicationTaskFailures', incoming, /^From dc2 to dc1 [\d.]+ replication tasks\/s fail/),
    ],
  },
  {
    what: 'the history of dc2 no longer says how far it is behind',
    provoke: ({ service }) => service.roles['dc2 history'].page.show('svc_replication_latency', false),
    undo: ({ service }) => service.roles['dc2 history'].page.show('svc_replication_latency', true),
    alerts: [warning('SvcReplicationLagUnknown', { cluster: 'dc2' }, /has 3 enabled clusters/)],
  },
  {
    what: 'dc2 says that a domain is active there, dc1 that it is here',
    provoke: ({ describeDomain }) =>
      describeDomain('dc2', 'orders', {
        replicationConfig: { activeClusterName: 'dc2', clusters: ['dc1', 'dc2', 'dc3'] },
      }),
    undo: ({ describeDomain }) => describeDomain('dc2', 'orders'),
    alerts: [
      critical(
        'SvcDomainDisagreement',
        { ...dc1, domain: 'orders', active_cluster: 'dc1', primary_cluster: 'dc1' },
        /^According to dc1, domain orders is active in dc1; the clusters of the group report 2 different active clusters\./,
      ),
      critical(
        'SvcDomainDisagreement',
        { cluster: 'dc2', domain: 'orders', active_cluster: 'dc2', primary_cluster: 'dc1' },
        /^According to dc2, domain orders is active in dc2; the clusters of the group report 2 different active clusters\./,
      ),
      {
        ...info(
          'SvcDomainFailover',
          { cluster: 'dc2', domain: 'orders' },
          /^dc2 saw a failover of domain orders/,
        ),
        comesAndGoes: true,
      },
    ],
  },
  {
    what: 'a domain spans two clusters and has its history archival off',
    provoke: ({ describeDomain }) =>
      describeDomain('dc1', 'orders', {
        replicationConfig: { activeClusterName: 'dc1', clusters: ['dc1', 'dc2'] },
        archival: { history: { status: 'disabled' }, visibility: { status: 'enabled' } },
      }),
    undo: ({ describeDomain }) => describeDomain('dc1', 'orders'),
    alerts: [
      info(
        'SvcDomainTooFewClusters',
        { ...dc1, domain: 'orders' },
        /clusters of global domain orders is 2; 3 or more/,
      ),
      info(
        'SvcArchivalOff',
        { ...dc1, domain: 'orders', archive: 'history' },
        /is off now: svc_domain_archival_enabled is 0\./,
      ),
    ],
  },
  {
    what: 'the directory of the visibility archive is gone',
    provoke({ directory }) {
      const { visibilityArchive } = placesIn(directory);
      renameSync(visibilityArchive, `${visibilityArchive}-gone`);
    },
    undo({ directory }) {
      const { visibilityArchive } = placesIn(directory);
      renameSync(`${visibilityArchive}-gone`, visibilityArchive);
    },
    alerts: [
      warning(
        'SvcArchiveDown',
        { ...dc1, archive: 'visibility', scheme: 'file' },
        /visibility archive \(file\) .* svc_archival_up is 0\./,
      ),
    ],
  },
  {
    what: 'the newest file of the history archive is two days old',
    provoke({ directory }) {
      const then = Date.now() / 1000 - twoDaysS;
      utimesSync(join(placesIn(directory).historyArchive, 'object'), then, then);
    },
    undo({ directory }) {
      const now = Date.now() / 1000;
      utimesSync(join(placesIn(directory).historyArchive, 'object'), now, now);
    },
    alerts: [
      warning(
        'SvcArchivalStalled',
        { ...dc1, archive: 'history', scheme: 'file' },
        /history archive \(file\) is 2d 0h \d+m \d+s old, above 1d,/,
      ),
    ],
  },
  {
    what: 'the newest file of the visibility archive of dc2 is eight days old, and domains keep workflows for seven',
    provoke: ({ directory }) => touch(directory, 8 * dayS),
    undo: ({ directory }) => touch(directory, 0),
    alerts: [
      critical(
        'SvcRetentionBeforeArchive',
        { cluster: 'dc2', archive: 'visibility', scheme: 'file' },
        /visibility archive \(file\) of dc2 is 8d 0h \d+m \d+s old\./,
      ),
      warning(
        'SvcArchivalStalled',
        { cluster: 'dc2', archive: 'visibility', scheme: 'file' },
        /visibility archive \(file\) is 8d/,
        'SvcRetentionBeforeArchive recommended critical',
      ),
    ],
  },
];
