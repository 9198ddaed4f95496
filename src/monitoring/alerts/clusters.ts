import { alertGroup, recovering } from '../alert.ts';
import { type Names, site } from '../names.ts';

const pair = `${site}, source_cluster, target_cluster`;

/**
 * Each cluster's view, with the group to which the cluster belongs: two groups of an environment may have domains with the same
 * name.
 */
const opinions = ({ m }: Names): string =>
  `max by (${site}, domain, active_cluster) (${m('svc_domain_active_cluster')})` +
  ` * on (${site}) group_left (primary_cluster) max by (${site}, primary_cluster) (${m('svc_cluster_group_info')})`;

/** The alerts on clusters, the domains that span them, and replication between them. */
export const replication = alertGroup({
  name: 'svc-replication',
  dashboard: 'dr',
  alerts: [
    {
      name: 'SvcReplicationLag',
      severity: 'critical',
      isState: true,
      expr: ({ m }, threshold) => `max by (${pair}) (${m('svc_replication_lag_seconds')}) > ${threshold}`,
      threshold: 300,
      unit: 'seconds',
      for: '5m',
      summary: 'Replication from {{ $labels.source_cluster }} to {{ $labels.target_cluster }} lags.',
      description:
        '{{ $labels.target_cluster }} is {{ $value | humanizeDuration }} behind {{ $labels.source_cluster }}, above $threshold. A failover now would lose that much.',
      firstSteps:
        'Check whether both clusters reach each other and whether history applies replication tasks; do not fail over before the lag is gone.',
    },
    {
      name: 'SvcReplicationTaskFailures',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `sum by (${pair}) (rate(${m('svc_replication_task_failures_total')}[5m])) > ${threshold}`,
      threshold: 10,
      for: '5m',
      summary: 'Replication tasks from {{ $labels.source_cluster }} to {{ $labels.target_cluster }} fail.',
      description:
        'From {{ $labels.source_cluster }} to {{ $labels.target_cluster }} {{ $value | humanize }} replication tasks/s fail, above $threshold/s.',
      firstSteps: 'Read the errors in the log of history of the target cluster; check its store.',
    },
    {
      name: 'SvcReplicationLagUnknown',
      severity: 'warning',
      isState: true,
      expr: ({ m }, threshold) =>
        [
          `max by (${site}) (${m('svc_clusters')}) > ${threshold}`,
          `unless max by (${site}) (${m('svc_replication_lag_seconds')})`,
        ].join('\n'),
      threshold: 1,
      for: '30m',
      summary: 'The replication lag of {{ $labels.cluster }} is unknown.',
      description:
        'The group of {{ $labels.cluster }} has {{ $value }} enabled clusters, and no agent reports the replication lag.',
      firstSteps:
        'The agents that scrape history need clusterGroupMetadata in their agent.yaml. Check that they have it and that svc_role_scrape_up of history is 1.',
    },
    {
      name: 'SvcClusterUnreachable',
      severity: 'critical',
      isState: true,
      expr: ({ m }) => `max by (${site}, remote_cluster) (${m('svc_cluster_up')}) == 0`,
      for: '5m',
      summary: 'Cluster {{ $labels.remote_cluster }} cannot be reached from {{ $labels.cluster }}.',
      description:
        'The frontend of cluster {{ $labels.remote_cluster }} does not answer the agents of {{ $labels.cluster }}: svc_cluster_up is {{ $value }}.',
      firstSteps:
        'Check the network and the certificates between the clusters. If the cluster is lost, follow the runbook on datacenter failure.',
    },
    ...recovering({
      name: 'SvcClusterRecovering',
      of: 'SvcClusterUnreachable',
      by: `${site}, remote_cluster`,
      subject: 'Cluster {{ $labels.remote_cluster }}, seen from {{ $labels.cluster }},',
      windows: ['5m'],
    }),
    {
      name: 'SvcDomainDisagreement',
      severity: 'critical',
      isState: true,
      expr: (names, threshold) =>
        [
          `(${opinions(names)})`,
          '* on (environment, domain, primary_cluster) group_left ()',
          `count by (environment, domain, primary_cluster) (max by (environment, domain, active_cluster, primary_cluster) (${opinions(names)})) > ${threshold}`,
        ].join('\n'),
      threshold: 1,
      for: '5m',
      summary: 'Clusters disagree on where domain {{ $labels.domain }} is active.',
      description:
        'According to {{ $labels.cluster }}, domain {{ $labels.domain }} is active in {{ $labels.active_cluster }}; the clusters of the group report {{ $value }} different active clusters.',
      firstSteps:
        'Describe the domain in each cluster. Stop writes to the cluster that should be standby, then update the domain with the right active cluster.',
    },
    {
      name: 'SvcDomainFailover',
      severity: 'info',
      expr: ({ m }, threshold) =>
        `time() - max by (${site}, domain) (${m('svc_domain_last_failover_timestamp_seconds')}) < ${threshold}`,
      threshold: 900,
      unit: 'seconds',
      isLow: true,
      summary: 'Domain {{ $labels.domain }} failed over.',
      description:
        '{{ $labels.cluster }} saw a failover of domain {{ $labels.domain }} {{ $value | humanizeDuration }} ago.',
      firstSteps:
        'If it was not planned, find out who updated the domain; check the replication lag and that clients reach the active cluster.',
    },
    {
      name: 'SvcDomainTooFewClusters',
      severity: 'info',
      // This applies only if the group has more clusters than the domain uses.
      expr: ({ m }, threshold) =>
        [
          `max by (${site}, domain) (${m('svc_domain_clusters')}) < ${threshold}`,
          `and max by (${site}, domain) (${m('svc_domain_global')}) == 1`,
          `and on (${site}) max by (${site}) (${m('svc_clusters')}) >= ${threshold}`,
        ].join('\n'),
      threshold: 3,
      isLow: true,
      for: '1h',
      summary: 'Global domain {{ $labels.domain }} spans few clusters.',
      description:
        'The number of clusters of global domain {{ $labels.domain }} is {{ $value }}; $threshold or more are suggested, and the group has them.',
      firstSteps: 'Decide whether the domain should span more clusters; if so, update its clusters.',
    },
  ],
});

const archive = `${site}, archive, scheme`;
const weekSeconds = 7 * 86_400;

/** The alerts on archival of closed workflows. */
export const archival = alertGroup({
  name: 'svc-archival',
  dashboard: 'worker',
  alerts: [
    {
      name: 'SvcArchiveDown',
      severity: 'warning',
      isState: true,
      expr: ({ m }) => `max by (${archive}) (${m('svc_archival_up')}) == 0`,
      for: '10m',
      summary: 'The {{ $labels.archive }} archive of {{ $labels.cluster }} is down.',
      description:
        'The {{ $labels.archive }} archive ({{ $labels.scheme }}) of {{ $labels.cluster }} cannot be used: svc_archival_up is {{ $value }}.',
      firstSteps:
        'Run svc-agent probe: it shows the cause. Check credentials, the bucket or directory, and space.',
    },
    {
      name: 'SvcArchivalStalled',
      severity: 'warning',
      isState: true,
      expr: ({ m }, threshold) =>
        [
          `time() - max by (${archive}) (${m('svc_archival_newest_object_timestamp_seconds')}) > ${threshold}`,
          `and on (${site}) sum by (${site}) (rate(${m('svc_workflow_completed')}[1h])) > 0`,
        ].join('\n'),
      threshold: 86_400,
      unit: 'seconds',
      for: '1h',
      summary: 'Nothing reaches the {{ $labels.archive }} archive of {{ $labels.cluster }}.',
      description:
        'The newest object of the {{ $labels.archive }} archive ({{ $labels.scheme }}) is {{ $value | humanizeDuration }} old, above $threshold, although workflows complete.',
      firstSteps:
        'Check whether the worker role runs and what it logs about archival. Retention deletes what was not archived.',
    },
    {
      name: 'SvcArchivalNeverWritten',
      severity: 'warning',
      // History is archived when the retention elapses: 7 days by default. Runs that closed a day earlier are due.
      expr: ({ m }) =>
        [
          `max by (${archive}) (${m('svc_archival_up')}) == 1`,
          `unless max by (${archive}) (last_over_time(${m('svc_archival_newest_object_timestamp_seconds')}[1d]))`,
          `and on (${site}) sum by (${site}) (rate(${m('svc_workflow_completed')}[1h] offset 8d)) > 0`,
          `unless on (${site}) max by (${site}) (${m('svc_domain_retention_seconds')}) > ${weekSeconds}`,
        ].join('\n'),
      isState: true,
      for: '1h',
      summary: 'Nothing was ever written to the {{ $labels.archive }} archive of {{ $labels.cluster }}.',
      description:
        'The {{ $labels.archive }} archive ({{ $labels.scheme }}) of {{ $labels.cluster }} can be used (svc_archival_up is {{ $value }}) but holds no object, although workflows closed more than 8 days ago.',
      firstSteps:
        'Describe a domain: its archival must be enabled, with the URI of this archive. Then check that the worker role runs and what it logs about archival.',
    },
    {
      name: 'SvcRetentionBeforeArchive',
      severity: 'critical',
      expr: ({ m }) => {
        const enabled = `max by (${site}, domain, archive) (${m('svc_domain_archival_enabled')}) == 1`;
        const retention = `max by (${site}, domain) (${m('svc_domain_retention_seconds')})`;
        const shortest = `min by (${site}, archive) ((${enabled}) * on (${site}, domain) group_left () (${retention}))`;
        const newest = `max by (${archive}) (${m('svc_archival_newest_object_timestamp_seconds')})`;
        return [
          `time() - ${newest} > on (${site}, archive) group_left () (${shortest})`,
          `and on (${site}) sum by (${site}) (rate(${m('svc_workflow_completed')}[1h])) > 0`,
        ].join('\n');
      },
      isState: true,
      for: '1h',
      summary:
        'Workflows of {{ $labels.cluster }} are deleted before the {{ $labels.archive }} archive has them.',
      description:
        'The newest object of the {{ $labels.archive }} archive ({{ $labels.scheme }}) of {{ $labels.cluster }} is {{ $value | humanizeDuration }} old. That is longer than the retention of a domain that archives, although workflows complete: what closed since then is deleted or is about to be.',
      firstSteps:
        'Raise the retention of the domain now (domain update), so that nothing more is deleted. Then find out why the worker role does not archive.',
    },
    {
      name: 'SvcArchivalOff',
      severity: 'info',
      // Archival that was always off is the owner's decision. A change within a day is worth a note.
      expr: ({ m }) => {
        const enabled = m('svc_domain_archival_enabled');
        return [
          `max by (${site}, domain, archive) (${enabled}) == 0`,
          `and max by (${site}, domain, archive) (max_over_time(${enabled}[1d])) == 1`,
        ].join('\n');
      },
      for: '15m',
      summary: 'Domain {{ $labels.domain }} no longer archives its {{ $labels.archive }}.',
      description:
        'Archival of {{ $labels.archive }} was on within the last day for domain {{ $labels.domain }} and is off now: svc_domain_archival_enabled is {{ $value }}.',
      firstSteps:
        'Ask the owner of the domain. Workflows that close while archival is off are deleted after the retention.',
    },
  ],
});
