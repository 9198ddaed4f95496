import type { RuleGroup } from '../alert.ts';

const roleJobs = 'job=~"frontend|history|matching|worker"';
const everyJob = 'job=~"frontend|history|matching|worker|svc-agent"';
const down = `max by (cluster, job) (up{${roleJobs}}) == 0`;
const absent = ['frontend', 'history', 'matching', 'worker', 'svc-agent'].map(
  (job) => `absent(up{job="${job}"})`,
);

/** Whether there is anybody who answers. */
export const availability: RuleGroup = {
  name: 'svc-availability',
  alerts: [
    {
      name: 'SvcServiceDown',
      severity: 'critical',
      expr: down,
      for: '1m',
      summary: 'Every instance of a role is down.',
      description:
        'No instance of job {{ $labels.job }} answers: the most that any of them has for up is {{ $value }}.',
      dashboard: 'overview',
    },
    {
      name: 'SvcInstanceDown',
      severity: 'warning',
      expr: `max by (cluster, job, instance) (up{${roleJobs}}) == 0 unless on (cluster, job) (${down})`,
      for: '5m',
      summary: 'One of several instances of a role is down.',
      description: '{{ $labels.instance }} of job {{ $labels.job }} does not answer: up is {{ $value }}.',
      dashboard: 'overview',
    },
    {
      name: 'SvcTargetsVanished',
      severity: 'critical',
      expr: `count by (cluster, job) (last_over_time(up{${everyJob}}[1d])) unless count by (cluster, job) (up{${everyJob}})`,
      for: '5m',
      summary: 'A job that had targets within the last day has none.',
      description: 'Job {{ $labels.job }} had {{ $value }} targets within the last day and has none now.',
      dashboard: 'overview',
    },
    {
      name: 'SvcRoleAbsent',
      severity: 'critical',
      expr: absent.join(' or '),
      for: '10m',
      summary: 'A job has no target in any cluster.',
      description:
        'There is no series up of job {{ $labels.job }} at all: its absence has the value {{ $value }}.',
      dashboard: 'overview',
    },
    {
      name: 'SvcHealthFailing',
      severity: 'critical',
      expr: 'max by (cluster, svc_service, instance) (svc_role_up) == 0',
      for: '2m',
      summary: 'A role fails its health check.',
      description:
        '{{ $labels.svc_service }} beside {{ $labels.instance }} fails its health check: svc_role_up is {{ $value }}.',
      dashboard: 'overview',
    },
    {
      name: 'SvcAgentDown',
      severity: 'warning',
      expr: 'max by (cluster, job, instance) (up{job="svc-agent"}) == 0',
      for: '5m',
      summary: 'An agent is down; what it watches is not seen.',
      description: 'The agent {{ $labels.instance }} does not answer: up is {{ $value }}.',
      dashboard: 'agent',
    },
  ],
};
