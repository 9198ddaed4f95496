import { alertGroup } from '../alert.ts';
import { increaseWithNewSeries, type Names, site, withPart, withStore } from '../names.ts';

const causes = (names: readonly string[]): string => names.join('|');
const own = `${site}, instance`;
const ofRole = `${site}, svc_service, instance`;

/** Kinds of problems of a log file, each of which the agent finds within a minute. */
export const logCauses = ['log_unread', 'log_deleted', 'log_disk_full', 'log_gone'] as const;

/** The alerts on the logs of the roles, as the agents read them. */
export const logs = alertGroup({
  name: 'svc-logs',
  dashboard: 'logs',
  alerts: [
    {
      name: 'SvcFatalLogEntry',
      severity: 'critical',
      expr: ({ m }, threshold) => {
        const fatal = increaseWithNewSeries(
          `${m('svc_log_entries_total')}{level="fatal"}`,
          m('svc_log_bytes_total'),
          '10m',
        );
        return `sum by (${ofRole}) (${fatal}) > ${threshold}`;
      },
      threshold: 0,
      summary: '{{ $labels.svc_service }} on {{ $labels.instance }} logged a fatal error.',
      description:
        '{{ $labels.svc_service }} on {{ $labels.instance }} logged fatal entries: {{ $value | printf "%.0f" }} in 10m. Each one ends a process.',
      firstSteps: 'Read the entry and those before it; check whether the role is running again.',
    },
    {
      name: 'SvcLogSilent',
      severity: 'warning',
      isState: true,
      // This covers a role that stopped writing, a pattern that matches no file and a file that cannot be read.
      expr: ({ m }) =>
        [
          `sum by (${ofRole}) (increase(${m('svc_log_bytes_total')}[1h])) == 0`,
          `and on (${ofRole}) max by (${ofRole}) (${m('svc_role_up')} or ${m('svc_role_scrape_up')}) == 1`,
        ].join('\n'),
      for: '15m',
      summary: '{{ $labels.svc_service }} on {{ $labels.instance }} is up, but its log does not grow.',
      description:
        'The agent read {{ $value }} bytes of the log of {{ $labels.svc_service }} on {{ $labels.instance }} in the last hour, although the role is up.',
      firstSteps:
        'Check that the paths under logs match the files of the role and that the agent may read them (svc-agent check), then where the role writes its log and at which level.',
    },
    {
      name: 'SvcLogFault',
      severity: 'warning',
      isState: true,
      expr: ({ m }) =>
        `max by (${own}, cause, subject) (${m('svc_incident')}{cause=~"${causes(logCauses)}"}) == 1`,
      for: '5m',
      summary: 'Lines of log file {{ $labels.subject }} on {{ $labels.instance }} may be lost.',
      description:
        'According to the agent on {{ $labels.instance }}, {{ $labels.subject }} has the problem {{ $labels.cause }} (svc_incident is {{ $value }}).',
      firstSteps:
        'Run svc-agent status on that host: it shows the file, the process that writes to it, and how to fix it.',
    },
    {
      name: 'SvcLogLag',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `max by (${ofRole}) (min_over_time(${m('svc_log_lag_bytes')}[5m])) > ${threshold}`,
      threshold: 67_108_864,
      unit: 'binaryBytes',
      for: '5m',
      summary: 'The agent on {{ $labels.instance }} lags behind the log of {{ $labels.svc_service }}.',
      description:
        'At least {{ $value | humanize1024 }}B of the log of {{ $labels.svc_service }} on {{ $labels.instance }} have waited for 10m, above $threshold.',
      firstSteps:
        'Check the processor time of the agent and whether the role logs at level debug; a file that cannot be read counts as waiting, too.',
    },
    {
      name: 'SvcLogBytesLost',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `sum by (${ofRole}, reason) (increase(${m('svc_log_skipped_bytes_total')}{reason!="start_at_end"}[10m])) > ${threshold}`,
      threshold: 0,
      summary: 'Log lines of {{ $labels.svc_service }} on {{ $labels.instance }} were lost.',
      description:
        '{{ $value | humanize1024 }}B of the log of {{ $labels.svc_service }} on {{ $labels.instance }} were gone before they were read ({{ $labels.reason }}) in 10m.',
      firstSteps:
        'Check the rotation: keep rotated files until the agent has read them, and keep copytruncate rare.',
    },
    {
      name: 'SvcRoleReporterErrors',
      severity: 'info',
      expr: ({ m }, threshold) =>
        `sum by (${ofRole}) (increase(${m('svc_role_reporter_errors_total')}[15m])) > ${threshold}`,
      threshold: 0,
      for: '15m',
      summary: 'The metrics of {{ $labels.svc_service }} on {{ $labels.instance }} are incomplete.',
      description:
        '{{ $labels.svc_service }} on {{ $labels.instance }} logged warnings that its own reporter lost series: {{ $value | printf "%.0f" }} in 15m. Alerts on its metrics may not fire.',
      firstSteps:
        'Read the warnings: they name the metric. Rely on the log counters until the role is fixed.',
    },
  ],
});

/** Kinds of problems whose subject is a role, or a store and its database. */
export const roleCauses = ['crash_loop', 'role_down', 'fatal', 'role_failing', 'scrape_down'] as const;
export const storeCauses = ['store_down', 'read_only', 'schema'] as const;
/**
 * Kinds of problems for which a critical alert notifies within minutes, so that the problems that they explain need not notify.
 */
const pagingCauses = [...storeCauses, 'crash_loop', 'role_down'];

/**
 * How long an incident explains what it caused after its end: windows of five minutes, plus two for scrapes, evaluations and
 * clients that connect again.
 */
const explainsFor = '7m';

/** A condition that holds now or held lately. A subquery looks at whole minutes, so what has just begun is not in it. */
const nowOrLately = (condition: string, value = 1): string =>
  `(\n${condition}\n) == ${value} or max_over_time((\n${condition}\n)[${explainsFor}:1m])`;

/**
 * The incidents according to the verdicts of the agents. An incident that is an outage for all agents has the role or the store
 * as labels, which inhibitions need: a role of which no instance is up, or a store that no agent reaches.
 */
function incidents({ m }: Names): string {
  const ofCauses = (names: readonly string[]) =>
    `max by (${site}, cause, subject) (${m('svc_incident')}{cause${names.length > 1 ? '=~' : '='}"${causes(names)}"})`;
  const upRoles = `max by (${site}, svc_service) (${m('svc_role_up')} or ${m('svc_role_scrape_up')}) == 1`;
  const upStores = `max by (${site}, store, database) (${m('svc_store_up')}) == 1`;
  const outages = [
    `${withPart(ofCauses(roleCauses), 'svc_service', '(.*)')} unless on (${site}, svc_service) (${upRoles})`,
    `or (${withStore(ofCauses(['store_down']))} unless on (${site}, store, database) (${upStores}))`,
    `or ${withStore(ofCauses(['read_only', 'schema']))}`,
  ].join('\n');
  const all = `max by (${site}, cause, subject) (max_over_time(${m('svc_incident')}[${explainsFor}]))`;
  return `(\n${nowOrLately(outages)}\nor on (${site}, cause, subject) ${all}\n) == 1`;
}

/** Roles that are unhealthy, if an agent's verdict has a cause for it, and no verdict calls the role itself a cause. */
function explainedRoles({ m }: Names): string {
  const role = `${site}, svc_service, instance`;
  const unwell = `max by (${role}) (${m('svc_role_up')} == 0 or ${m('svc_role_scrape_up')} == 0)`;
  const incident = `max by (${site}, instance) (${m('svc_incident')}{cause=~"${causes(pagingCauses)}"})`;
  // An agent that starts again has no verdict for a moment.
  const own = `max by (${site}, subject) (max_over_time(${m('svc_incident')}{cause=~"${causes(roleCauses)}"}[2m]))`;
  const unlessOwn = `unless on (${site}, svc_service) ${withPart(own, 'svc_service', '(.*)')}`;
  // A role is not explained by its own incident, nor after the end of that incident.
  const explained = `${unwell} and on (${site}, instance) ${incident}\n${unlessOwn}`;
  return `max by (${site}, svc_service) (${nowOrLately(explained, 0)}) + 1\n${unlessOwn}`;
}

/** The verdicts of the agents, as sources of inhibitions, so that one cause is one page. */
export const incidentsOfAgents = alertGroup({
  name: 'svc-incidents',
  dashboard: 'agent',
  alerts: [
    {
      name: 'SvcIncident',
      severity: 'info',
      expr: incidents,
      summary:
        'Incident in {{ $labels.cluster }}: {{ $labels.cause }}{{ with $labels.subject }} {{ . }}{{ end }}.',
      description:
        'According to its own values, an agent of {{ $labels.cluster }} sees {{ $labels.cause }}{{ with $labels.subject }} of {{ . }}{{ end }}, which no other problem explains, or saw it within the last 7m (svc_incident is {{ $value }}).',
      firstSteps:
        'Run svc-agent status on the host of the agent: it shows the evidence and what follows from it.',
    },
    {
      name: 'SvcRoleExplained',
      severity: 'info',
      expr: explainedRoles,
      summary: '{{ $labels.svc_service }} of {{ $labels.cluster }} is unhealthy because of another incident.',
      description:
        'According to the verdict of the agents of {{ $labels.cluster }}, another problem explains why {{ $labels.svc_service }} is unhealthy, or explained it within the last 7m (the rule returns {{ $value }}).',
      firstSteps: 'Follow the alert on the cause: svc-agent status names it.',
    },
  ],
});

/** Reasons of drops that the cardinality rules cause on purpose, which are no loss. */
const removed = 'forbidden_tag|forbidden_value';
/** The drops that are a loss. A page that a role did not deliver has its own alerts. */
const losses = [
  `{component!="scrape", reason!~"${removed}"}`,
  `{component="scrape", reason!~"${removed}|failed"}`,
];

/** The alerts on the agents themselves. */
export const agent = alertGroup({
  name: 'svc-agent',
  dashboard: 'agent',
  alerts: [
    {
      name: 'SvcAgentDown',
      severity: 'warning',
      isState: true,
      expr: ({ job }) => `max by (${site}, job, instance) (up{${job('svc-agent')}}) == 0`,
      for: '5m',
      summary: 'The agent on {{ $labels.instance }} is down.',
      description:
        'The agent on {{ $labels.instance }} does not answer its scrape: up is {{ $value }}. What it observes is not monitored.',
      firstSteps:
        'Check whether the agent runs and what it logged last: svc-agent check finds faults of its configuration.',
    },
    {
      name: 'SvcProbeStale',
      severity: 'warning',
      // The gauges of a probe are removed when it had no result for three intervals; its counters are removed only with the
      // probe.
      expr: ({ m }) =>
        [
          `sum by (${own}, probe) (increase(${m('svc_probe_skipped_total')}[5m]))`,
          `unless on (${own}, probe) ${m('svc_probe_last_run_timestamp_seconds')}`,
        ].join('\n'),
      for: '10m',
      summary: 'Probe {{ $labels.probe }} on {{ $labels.instance }} has no results.',
      description:
        'Probe {{ $labels.probe }} on {{ $labels.instance }} has had no result for three intervals (skipped runs in 5m: {{ $value | printf "%.0f" }}).',
      firstSteps: 'Run svc-agent probe with its name: it shows where the probe hangs.',
    },
    {
      name: 'SvcCertificateExpiring',
      severity: 'warning',
      isState: true,
      expr: ({ m }, threshold) =>
        `min by (${site}, probe) (${m('svc_probe_tls_not_after_timestamp_seconds')}) - time() < ${threshold}`,
      threshold: 1_209_600,
      unit: 'seconds',
      isLow: true,
      for: '1h',
      summary: 'The certificate that probe {{ $labels.probe }} sees expires soon or has expired.',
      description:
        'The certificate that probe {{ $labels.probe }} sees is valid for {{ $value | humanizeDuration }} more, below $threshold; with a minus sign, it expired that long ago.',
      firstSteps: 'Renew the certificate and reload the server that presents it.',
      dashboard: 'overview',
    },
    {
      name: 'SvcAgentDropping',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `sum by (${own}, component, reason) (${losses.map((lost) => `rate(${m('svc_agent_dropped_total')}${lost}[5m])`).join(' or ')}) > ${threshold}`,
      threshold: 0,
      for: '15m',
      summary: 'The agent on {{ $labels.instance }} drops data ({{ $labels.component }}).',
      description:
        'The agent on {{ $labels.instance }} drops {{ $value | printf "%.3f" }} items/s in {{ $labels.component }}, reason {{ $labels.reason }}.',
      firstSteps:
        'The status page of the agent explains the reason. refused_series: raise limits or drop a tag; buffer_full: raise the receive buffer.',
    },
    {
      name: 'SvcAgentStateDegraded',
      severity: 'warning',
      isState: true,
      expr: ({ m }) => `max by (${own}) (${m('svc_agent_state_degraded')}) == 1`,
      for: '5m',
      summary: 'The agent on {{ $labels.instance }} cannot save its state.',
      description:
        'The agent on {{ $labels.instance }} counts in memory only: svc_agent_state_degraded is {{ $value }}. A crash would lose counts.',
      firstSteps: 'Check the space and the permissions of the state directory.',
    },
    {
      name: 'SvcAgentReloadFailed',
      severity: 'warning',
      isState: true,
      expr: ({ m }) => `max by (${own}) (${m('svc_agent_config_last_reload_successful')}) == 0`,
      for: '5m',
      summary: 'The agent on {{ $labels.instance }} rejected its changed configuration.',
      description:
        'The agent on {{ $labels.instance }} still runs its previous configuration: svc_agent_config_last_reload_successful is {{ $value }}.',
      firstSteps: 'Run svc-agent check on that host: it prints the line and the allowed values.',
    },
    {
      name: 'SvcMaintenance',
      severity: 'info',
      // Alerts that it inhibits continue after their fault is over: for `keptFor`, or as long as their windows include it. A
      // restart of the agent during the work must not end it either.
      expr: ({ m }) => `max by (${site}) (max_over_time(${m('svc_maintenance')}[${explainsFor}])) == 1`,
      summary: 'Planned work is under way in {{ $labels.cluster }}, or ended a few minutes ago.',
      description:
        'An agent in {{ $labels.cluster }} has planned work, or had it in the last 7 minutes: svc_maintenance was {{ $value }}. Alerts on what planned work stops are inhibited; those on data at risk, backups and recovery are not.',
      firstSteps: 'Nothing to do. The status page of the agent shows what is done, and until when.',
    },
    {
      name: 'SvcAgentReportFailing',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `sum by (${own}, reason) (rate(${m('svc_agent_report_failures_total')}[5m])) > ${threshold}`,
      threshold: 0,
      for: '15m',
      summary: 'Reports of the agent on {{ $labels.instance }} fail ({{ $labels.reason }}).',
      description:
        '{{ $value | printf "%.3f" }} reports/s of the agent on {{ $labels.instance }} fail, reason {{ $labels.reason }}.',
      firstSteps: 'Check the address, the credentials and the state of the destination.',
    },
  ],
});
