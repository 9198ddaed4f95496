import { type Role, roles } from '../../core/catalog.ts';
import { type Alert, alertGroup, type RuleGroup, recovering } from '../alert.ts';
import { jobs, type Names, site } from '../names.ts';
import { roleCauses } from './agent.ts';

const own = `${site}, svc_service, instance`;

/**
 * `up` of the roles' targets, without those whose agent is down: then the state of the role is unknown, and it may well be alive.
 */
const seen = ({ job }: Names, of: readonly Role[] = roles): string =>
  `(up{${job(...of)}} unless on (${site}, instance) up{${job('svc-agent')}} == 0)`;
/** An expression for each role with the role as `svc_service`: an installation may use other names for its jobs. */
const withRole = (exprOf: (role: Role) => string): string =>
  roles.map((role) => `label_replace(${exprOf(role)}, "svc_service", "${role}", "", "")`).join('\nor ');
const silent = (names: Names): string =>
  withRole((role) => `max by (${site}, job) ${seen(names, [role])} == 0`);
const ofRole = `${site}, svc_service`;
/** Roles of which an instance passes its health check: such a role is up, whatever becomes of its metrics. */
const healthy = ({ m }: Names): string => `${m('svc_role_up')} == 1`;
const down = (names: Names): string => `(${silent(names)})\nunless on (${ofRole}) ${healthy(names)}`;

/**
 * The number of roles of a cluster of which no role is up, if no problem other than those of the roles explains it: the verdicts
 * of the agents call each role a cause. A role is up by its health check, or by its page if it has none. A role that is up counts
 * twice, so that there are fewer causes.
 */
function allDown({ m }: Names): string {
  const checked = `max by (${ofRole}) (${m('svc_role_up')})`;
  const states = `(${checked} or max by (${ofRole}) (${m('svc_role_scrape_up')}))`;
  const blamed = `group by (${site}, subject) (${m('svc_incident')}{cause=~"${roleCauses.join('|')}"} == 1)`;
  return `(sum by (${site}) (1 + ${states}) == count by (${site}) (${blamed})) > 1`;
}

/**
 * What is down, with the reasons that were counted lately, or without a reason if there was none. Two minutes contain several
 * checks, so that alternating reasons stay, and a reason that is over disappears soon.
 */
function unhealthy({ m }: Names, by: string): string {
  const reasons = `sum by (${by}, reason) (increase(${m('svc_role_health_failures_total')}[2m])) > 0`;
  const isDown = `max by (${by}) (${m('svc_role_up')}) == 0`;
  return [
    `(${isDown}) * on (${by}) group_right () (${reasons}) ^ 0`,
    `or (${isDown} unless on (${by}) (${reasons}))`,
  ].join('\n');
}

/** Roles that warm up, as after a rollout, except roles of which no instance was up for a quarter of an hour. */
function warming({ m }: Names): string {
  const by = `${site}, svc_service`;
  const up = m('svc_role_up');
  return [
    `sum by (${by}) (increase(${m('svc_role_health_failures_total')}{reason="warming_up"}[2m])) > 0`,
    `unless (max by (${by}) (max_over_time(${up}[15m])) == 0 and max by (${by}) (${up} offset 15m))`,
  ].join('\n');
}

/** The alerts on whether anything answers. */
export const availability = alertGroup({
  name: 'svc-availability',
  dashboard: 'overview',
  alerts: [
    {
      name: 'SvcServiceDown',
      severity: 'critical',
      isState: true,
      expr: down,
      for: '1m',
      summary: 'No instance of {{ $labels.job }} answers.',
      description:
        'No target of job {{ $labels.job }} answers its scrape, and no health check of the role passes: the highest up is {{ $value }}.',
      firstSteps:
        'Check the health endpoint and the last log entries of the role on one host; start the role or undo the last rollout. If the endpoint answers with ok, only the metrics fail.',
    },
    {
      name: 'SvcMetricsUnread',
      severity: 'warning',
      isState: true,
      expr: (names) => `(${silent(names)})\nand on (${ofRole}) ${healthy(names)}`,
      for: '5m',
      summary:
        'The metrics of {{ $labels.svc_service }} cannot be read, although the role passes its health check.',
      description:
        'No target of job {{ $labels.job }} answers its scrape (the highest up is {{ $value }}), but an instance of {{ $labels.svc_service }} passes its health check. Alerts on the metrics of the role cannot fire.',
      firstSteps:
        'Compare the address of the scrape with the listener of the metrics: svc-agent status on a host of the role shows why the scrape fails. The role itself works.',
    },
    ...recovering({
      name: 'SvcServiceRecovering',
      of: 'SvcServiceDown',
      by: `${site}, job, svc_service`,
      subject: 'Role {{ $labels.svc_service }}',
      windows: ['5m', '30m'],
    }),
    {
      name: 'SvcAllRolesDown',
      severity: 'critical',
      isState: true,
      expr: allDown,
      for: '1m',
      summary: 'No role of {{ $labels.cluster }} is up.',
      description:
        'No instance of any of the {{ $value }} roles of {{ $labels.cluster }} is up, and no problem of a store or of another role explains it. The alerts on each role are inhibited.',
      firstSteps:
        'Look for what the roles share: the host, the network, the last rollout, a dependency that no agent watches. Read the last log entries of each role, and start history first.',
    },
    ...recovering({
      name: 'SvcAllRolesRecovering',
      of: 'SvcAllRolesDown',
      by: site,
      subject: 'Every role of {{ $labels.cluster }}',
      windows: ['5m'],
      isAlsoPending: true,
    }),
    {
      name: 'SvcInstanceDown',
      severity: 'warning',
      isState: true,
      expr: (names) =>
        [
          `(${withRole((role) => `max by (${site}, job, instance) ${seen(names, [role])} == 0`)})`,
          `unless on (${site}, job) (max by (${site}, job) (up{${names.job(...roles)}}) == 0)`,
        ].join('\n'),
      for: '5m',
      summary: '{{ $labels.instance }} of {{ $labels.job }} does not answer.',
      description:
        'Target {{ $labels.instance }} of job {{ $labels.job }} does not answer its scrape, other instances do: up is {{ $value }}.',
      firstSteps: 'Check whether the process runs on that host and what it logged last.',
    },
    {
      name: 'SvcRoleUnwatched',
      severity: 'critical',
      isState: true,
      expr: (names) =>
        [
          `count by (${site}, job) (up{${names.job(...roles)}} == 0)`,
          `unless on (${site}, job) count by (${site}, job) ${seen(names)}`,
        ].join('\n'),
      for: '5m',
      summary: 'No agent beside {{ $labels.job }} answers; the state of the role is unknown.',
      description:
        'All agents beside job {{ $labels.job }} are down (targets: {{ $value }}). The hosts, the network or only the agents may be gone.',
      firstSteps:
        'Check whether the hosts of the role are reachable. If they are, start the agents; if they are not, treat it as an outage of the role.',
    },
    ...recovering({
      name: 'SvcAgentsRecovering',
      of: 'SvcRoleUnwatched',
      by: `${site}, job`,
      subject: 'Every agent beside {{ $labels.job }}',
      windows: ['5m'],
    }).map((alert) => ({ ...alert, dashboard: 'agent' as const })),
    {
      name: 'SvcRoleAbsent',
      severity: 'critical',
      // The jobs are compared per environment as long as it has any job, otherwise in all environments. Agents that push their
      // metrics have no job: a platform that no Prometheus of the installation scrapes for has no `up` at all.
      expr: ({ m, job, jobName }) => {
        const pushes = `(${m('svc_agent_build_info')} unless on (job, instance) up)`;
        return jobs
          .map((one) => {
            const others = `group by (environment) (up{${job(...jobs)}})`;
            const missing = `${others} unless group by (environment) (up{${job(one)}})`;
            return `label_replace(${missing}, "job", ${jobName(one)}, "", "") or absent(up{${job(one)}}) unless on () ${pushes}`;
          })
          .join('\nor ');
      },
      for: '10m',
      summary:
        'Prometheus has no target of {{ $labels.job }} in any cluster{{ with $labels.environment }} of {{ . }}{{ end }}.',
      description: 'There is no series up of job {{ $labels.job }} at all (the rule returns {{ $value }}).',
      firstSteps:
        'Add the job to the scrape configuration. If it has another name there, generate the rules with it: svc-agent rules --job.',
      hasNoCluster: true,
    },
    {
      name: 'SvcTargetsVanished',
      severity: 'critical',
      expr: ({ job }) =>
        [
          `count by (${site}, job) (last_over_time(up{${job(...jobs)}}[1d]))`,
          `unless count by (${site}, job) (up{${job(...jobs)}})`,
        ].join('\n'),
      for: '5m',
      summary: 'All targets of {{ $labels.job }} are gone.',
      description: 'Job {{ $labels.job }} has no targets now (within the last day: {{ $value }}).',
      firstSteps:
        'Check the service discovery and the relabelling of Prometheus, then whether the role still exists.',
    },
    {
      name: 'SvcRoleUnhealthy',
      severity: 'critical',
      isState: true,
      expr: (names) =>
        `(\n${unhealthy(names, `${site}, svc_service`)}\n) unless on (${site}, svc_service) (\n${warming(names)}\n)`,
      for: '3m',
      summary: 'Every instance of {{ $labels.svc_service }} fails its health check.',
      description:
        'No instance of {{ $labels.svc_service }} is healthy: the highest svc_role_up is {{ $value }}{{ with $labels.reason }}, reason {{ . }}{{ end }}.',
      firstSteps:
        'Read the message of the health endpoint. Reason persistence: check the store first; not_in_ring: check the membership of the cluster.',
    },
    ...recovering({
      name: 'SvcRoleRecovering',
      of: 'SvcRoleUnhealthy',
      by: `${site}, svc_service`,
      subject: 'Role {{ $labels.svc_service }}',
      windows: ['5m'],
    }),
    {
      name: 'SvcHealthFailing',
      severity: 'warning',
      isState: true,
      expr: (names) => unhealthy(names, own),
      for: '10m',
      summary: '{{ $labels.svc_service }} on {{ $labels.instance }} fails its health check.',
      description:
        'svc_role_up of {{ $labels.svc_service }} on {{ $labels.instance }} is {{ $value }}{{ with $labels.reason }}, reason {{ . }}{{ end }}.',
      firstSteps:
        'Read the message of the health endpoint on that host, then the last log entries of the role.',
    },
  ],
});

/**
 * Restarts in whole numbers: `increase()` extrapolates, and would count more than there were. If no agent counts restarts, a
 * process that starts again counts its garbage collections from 0.
 */
const restarts = ({ m }: Names): string => {
  const counted = m('svc_role_restarts_total');
  return [
    `max by (${own}) (${counted} - min_over_time(${counted}[15m]))`,
    `or max by (${own}) (resets(${m('svc_memory_num_gc')}[15m]))`,
  ].join('\n');
};

const processAlerts: readonly Alert[] = [
  {
    name: 'SvcCrashLooping',
    severity: 'critical',
    expr: (names, threshold) => `(\n${restarts(names)}\n) > ${threshold}`,
    threshold: 2,
    summary: '{{ $labels.svc_service }} on {{ $labels.instance }} restarts again and again.',
    description:
      '{{ $labels.svc_service }} on {{ $labels.instance }} restarted {{ $value | printf "%.0f" }} times in 15m, above $threshold.',
    firstSteps:
      'Read the last log entries before each start; check memory limits, the configuration and the schema of the store.',
    dashboard: 'process',
  },
  {
    name: 'SvcHighRestartRate',
    severity: 'critical',
    expr: ({ m }, threshold) =>
      `sum by (${site}, svc_service) (rate(${m('svc_role_restarts_total')}[5m])) > ${threshold}`,
    threshold: 0.1,
    for: '1m',
    summary: 'Many instances of {{ $labels.svc_service }} are restarting.',
    description:
      'The instances of {{ $labels.svc_service }} restart {{ $value | printf "%.2f" }} times/s in total, above $threshold/s.',
    firstSteps:
      'Read the fatal log entries of the role; undo the last change of its version or configuration.',
    dashboard: 'process',
  },
  {
    name: 'SvcHeapMemory',
    severity: 'warning',
    expr: ({ m }, threshold) => `max by (${own}) (min_over_time(${m('svc_memory_heap')}[5m])) > ${threshold}`,
    threshold: 8e9,
    unit: 'bytes',
    for: '5m',
    summary: '{{ $labels.svc_service }} on {{ $labels.instance }} has a large heap.',
    description:
      'The heap of {{ $labels.svc_service }} on {{ $labels.instance }} was at least {{ $value | humanize }}B for 10m, above $threshold.',
    firstSteps:
      'Compare with the other instances. One alone: take a heap profile, then restart it. All: check cache sizes and shards per host.',
    dashboard: 'process',
  },
  {
    name: 'SvcGCPause',
    severity: 'warning',
    // The metric is a counter of ms, or the sum of a timer of that name, in seconds. The quantiles of a summary are left out.
    expr: ({ m }, threshold) =>
      `max by (${own}) (rate(${m('svc_memory_gc_pause_ms')}{quantile=""}[5m])` +
      ` or 1000 * rate(${m('svc_memory_gc_pause_ms')}_sum[5m])) > ${threshold}`,
    threshold: 100,
    for: '10m',
    summary: '{{ $labels.svc_service }} on {{ $labels.instance }} spends much time in garbage collection.',
    description:
      '{{ $labels.svc_service }} on {{ $labels.instance }} pauses for {{ $value | humanize }} ms/s, above $threshold ms/s.',
    firstSteps: 'Check the heap and the allocation rate of the process; give it more memory or less load.',
    dashboard: 'process',
  },
];

/** The alerts on the processes of the roles. */
export const processes: RuleGroup = { name: 'svc-process', alerts: processAlerts };
