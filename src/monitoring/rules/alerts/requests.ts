import type { RuleGroup } from '../alert.ts';

/** Calls that wait for work by design, or are as slow as what they ask for. */
export const slowByDesign =
  'operation!~".*(Poll|GetWorkflowExecutionHistory|QueryWorkflow|List|Count|Scan).*"';
const latency = 'svc_frontend_client_latency';
const ratioOf = (role: string) => {
  const rate = (what: string) => `sum by (cluster, svc_service) (rate(svc_${role}_client_${what}[5m]))`;
  const ratio = `${rate('errors')} / (${rate('requests')} > 0.2)`;
  return `label_replace(${ratio}, "callee", "${role}", "", "")`;
};

/** Requests between the roles, as their callers see them. */
export const requests: RuleGroup = {
  name: 'svc-requests',
  alerts: [
    {
      name: 'SvcFrontendLatency',
      severity: 'warning',
      expr:
        `histogram_quantile(0.95, sum by (cluster, le) (rate(${latency}_bucket{${slowByDesign}}[5m]))) > $threshold` +
        ` and sum by (cluster) (rate(${latency}_count{${slowByDesign}}[5m])) > 0.2`,
      threshold: 0.5,
      for: '5m',
      summary: 'Calls to the frontend are slow.',
      description:
        'The 95th percentile of calls to the frontend, long polls and lists left out, is {{ $value | humanizeDuration }}, above $threshold s.',
      dashboard: 'frontend',
    },
    {
      name: 'SvcRequestErrors',
      severity: 'warning',
      expr: `(${['frontend', 'history', 'matching'].map(ratioOf).join(' or ')}) > $threshold`,
      threshold: 0.05,
      for: '5m',
      summary: 'A large share of the requests between two roles fails.',
      description:
        '{{ $value | humanizePercentage }} of the requests from {{ $labels.svc_service }} to {{ $labels.callee }} fail, above $threshold.',
      dashboard: 'overview',
    },
  ],
};
