import { alertGroup } from '../alert.ts';
import { increaseWithNewSeries, type Names, site } from '../names.ts';

const byDomain = `${site}, domain`;

/** Matches the domains of a canary, which starts workflows all the time. Some of them fail or time out on purpose. */
export const canaryDomains = '.*canary.*';
/**
 * The largest share of timeouts of a canary that can be intended. A canary that loses more shows an outage, and excuses no other
 * domain's share above this.
 */
export const largestCanaryShare = 0.5;
const canary = `{domain=~"${canaryDomains}"}`;
const others = `{domain!~"${canaryDomains}"}`;
/** Selects canaries that complete workflows steadily: a canary of archival is silent for a long time. */
const steadyCanary = `{domain=~"${canaryDomains}", domain!~".*archival.*"}`;

const outcomes = ['completed', 'failed', 'timeout', 'canceled', 'continued_as_new'] as const;
type Outcome = (typeof outcomes)[number];

const rateOf = ({ m }: Names, outcome: Outcome, of: string, by: string): string =>
  `sum by (${by}) (rate(${m(`svc_workflow_${outcome}`)}${of}[5m]))`;

/** The share of the closed runs with an outcome; another outcome that never occurred counts as 0. */
function share(names: Names, outcome: Outcome, of = others, by = byDomain): string {
  const one = rateOf(names, outcome, of, by);
  const rest = outcomes.filter((other) => other !== outcome);
  const closed = [one, ...rest.map((other) => `(${rateOf(names, other, of, by)} or 0 * ${one})`)];
  return `${one} / (${closed.join(' + ')})`;
}

/**
 * Whether an instance of history was read throughout ten minutes, so that no completed workflow was missed: it answered each
 * scrape, and its target is older than that. If no other program scrapes it, as with a hosted reporter, the agents report this.
 */
function wasRead({ m, job }: Names): string {
  const all = (series: string) =>
    `max by (${site}) (min_over_time(${series}[10m]) and ${series} and ${series} offset 10m)`;
  const sources = [
    `up{${job('history')}}`,
    `${m('svc_role_scrape_up')}{svc_service="history"}`,
    `${m('svc_role_up')}{svc_service="history"}`,
  ];
  return `(${sources.map(all).join('\nor ')}) == 1`;
}

/** The alerts on workflows: how they end, and whether those of a canary succeed. */
export const workflows = alertGroup({
  name: 'svc-workflows',
  dashboard: 'history',
  alerts: [
    {
      name: 'SvcWorkflowTimeoutShare',
      severity: 'warning',
      // If a canary has as large a share, SvcCanaryFailing judges by its successes instead. One success does not excuse every
      // timeout.
      expr: (names, threshold) =>
        [
          `${share(names, 'timeout')} > on (${site}) group_left () (`,
          `clamp_max(${share(names, 'timeout', canary, site)}, ${largestCanaryShare}) > ${threshold}`,
          `or 0 * ${rateOf(names, 'timeout', others, site)} + ${threshold}`,
          `) and ${rateOf(names, 'timeout', others, byDomain)} > 0.01`,
        ].join('\n'),
      threshold: 0.05,
      unit: 'share',
      for: '10m',
      summary: 'A large share of the workflows of domain {{ $labels.domain }} times out.',
      description:
        '{{ $value | humanizePercentage }} of the closed workflows of domain {{ $labels.domain }} timed out, above $threshold. If there is a canary, this is also more than its share, or more than half.',
      firstSteps: 'Find the workflow types that time out; check the task latency of their task lists.',
    },
    {
      name: 'SvcWorkflowTimeouts',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `sum by (${byDomain}) (${increaseWithNewSeries(m('svc_workflow_timeout'), m('svc_workflow_started'), '5m')}) / 300 > ${threshold}`,
      threshold: 5,
      for: '2m',
      summary: 'Workflows of domain {{ $labels.domain }} time out.',
      description: 'Domain {{ $labels.domain }} has {{ $value | humanize }} timeouts/s, above $threshold/s.',
      firstSteps:
        'Check the backlog and the task latency of the domain; then the timeouts that the workflows set.',
    },
    {
      name: 'SvcWorkflowFailures',
      severity: 'warning',
      expr: (names, threshold) =>
        [
          `${share(names, 'failed')} > ${threshold}`,
          `and ${rateOf(names, 'failed', others, byDomain)} > 0.01`,
        ].join('\n'),
      threshold: 0.2,
      unit: 'share',
      for: '10m',
      summary: 'A large share of the workflows of domain {{ $labels.domain }} fails.',
      description:
        '{{ $value | humanizePercentage }} of the closed workflows of domain {{ $labels.domain }} failed, above $threshold.',
      firstSteps:
        'Find the workflow types that fail, and read the failure of one run. Ask the owner of the domain what was deployed.',
    },
    {
      name: 'SvcCanaryFailing',
      severity: 'critical',
      // A day of data shows that there is a canary, even after history has started again.
      expr: (names, threshold) => {
        const completed = `${names.m('svc_workflow_completed')}${steadyCanary}`;
        return [
          `sum by (${byDomain}) (increase(${completed}[1d])) > ${threshold}`,
          `unless sum by (${byDomain}) (increase(${completed}[10m])) > 0`,
          `and on (${site}) ${wasRead(names)}`,
        ].join('\n');
      },
      threshold: 10,
      for: '5m',
      summary: 'The canary in domain {{ $labels.domain }} completes no workflow.',
      description:
        'The canary in domain {{ $labels.domain }} completed {{ $value | humanize }} workflows within a day, more than $threshold, and none in the last 15m. Other workflows probably do not complete either.',
      firstSteps:
        'Check whether the canary runs. If it does, start one workflow by hand and follow it: frontend, history, matching, the worker.',
      dashboard: 'overview',
    },
  ],
});

/** The operations of active tasks by their queue; standby tasks wait for their cluster by design. */
const queues = { transfer: 'TransferActiveTask.*', timer: 'TimerActiveTask.*' } as const;

/** The alerts on the work of history behind the workflows. */
export const historyWork = alertGroup({
  name: 'svc-history',
  dashboard: 'history',
  alerts: [
    {
      name: 'SvcHistoryTaskLatency',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        Object.entries(queues)
          .map(([queue, operations]) => {
            const of = `{operation=~"${operations}"}[5m]`;
            const latency = m('svc_history_task_queue_latency');
            const late = `histogram_quantile(0.95, sum by (${site}, le) (rate(${latency}_bucket${of}))) > ${threshold}`;
            const busy = `sum by (${site}) (rate(${latency}_count${of})) > 0.2`;
            return `label_replace(${late} and ${busy}, "queue", "${queue}", "", "")`;
          })
          .join('\nor '),
      threshold: 5,
      unit: 'seconds',
      for: '10m',
      summary: 'The {{ $labels.queue }} tasks of {{ $labels.cluster }} are late.',
      description:
        'The 95th percentile of the time that {{ $labels.queue }} tasks of {{ $labels.cluster }} wait in their queue is {{ $value | humanizeDuration }}, above $threshold.',
      firstSteps:
        'Check the latency of the store, then the processor time of history. Timer tasks alone: many timers fire at once.',
    },
    {
      name: 'SvcShardMovement',
      severity: 'warning',
      expr: ({ m }, threshold) =>
        `sum by (${site}) (rate(${m('svc_history_shard_context_closed')}[5m])) > ${threshold}`,
      threshold: 0.1,
      for: '15m',
      summary: 'Shards of {{ $labels.cluster }} keep moving between history hosts.',
      description:
        'The history hosts of {{ $labels.cluster }} release {{ $value | humanize }} shards/s, above $threshold/s, for 15m.',
      firstSteps:
        'Check whether history hosts restart or leave the ring, and whether the store is slow: a host that cannot renew its shard gives it up.',
    },
  ],
});
