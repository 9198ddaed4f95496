import { alertGroup } from '../alert.ts';
import { type Names, site } from '../names.ts';

const byRole = `${site}, svc_service`;

/** Matches calls that wait for work by design, or whose duration depends on the request. */
export const slowByDesign =
  'operation!~".*(Poll|GetWorkflowExecutionHistory|QueryWorkflow|List|Count|Scan).*"';

/** Excludes polls: polls that their worker cancels end with an error. */
const noPolls = 'operation!~".*Poll.*"';
const callees = ['frontend', 'history', 'matching'] as const;

/**
 * Roles that count which of the requests that they served failed by their own fault, without answers such as "already started". A
 * role that serves less than half of the requests that others send it does not see the failures.
 */
function telling({ m }: Names, callee: string): string {
  const served = `sum by (${site}) (rate(${m('svc_served_requests')}{svc_service="${callee}"}[5m]))`;
  const asked = `sum by (${site}) (rate(${m(`svc_${callee}_client_requests`)}[5m]))`;
  return `(${served} unless ${served} < 0.5 * ${asked})`;
}

/** The share of requests to a role that fail by the role's own fault, if the role counts this. */
function faultShare(names: Names, callee: string): string {
  const of = `{svc_service="${callee}", ${noPolls}}[5m]`;
  const rate = (what: string) => `sum by (${site}) (rate(${names.m(`svc_served_${what}`)}${of}))`;
  return `label_replace(${rate('errors')} / (${rate('requests')} > 0.2) and ${telling(names, callee)}, "callee", "${callee}", "", "")`;
}

/**
 * The share of requests to a role that fail, by caller, if the role does not count its own faults. A failed request counts as a
 * request even if the series of requests is missing. If the product counts its faults, callers count answers as failures; then
 * their count is used only if the callee serves few of their requests.
 */
function failedShare(names: Names, callee: string): string {
  const { m } = names;
  const rate = (what: string) => `sum by (${byRole}) (rate(${m(`svc_${callee}_client_${what}`)}[5m]))`;
  const calls = `(${rate('requests')} > ${rate('errors')} or ${rate('errors')})`;
  const tells = `unless on (${site}) ${telling(names, callee)}`;
  return `label_replace(${rate('errors')} / ${calls} and ${rate('requests')} > 0.2 ${tells}, "callee", "${callee}", "", "")`;
}

/** The alerts on requests between the roles. */
export const requests = alertGroup({
  name: 'svc-requests',
  dashboard: 'frontend',
  alerts: [
    {
      name: 'SvcFrontendLatency',
      severity: 'warning',
      expr: ({ m }, threshold) => {
        const latency = m('svc_frontend_client_latency');
        return [
          `histogram_quantile(0.95, sum by (${site}, le) (rate(${latency}_bucket{${slowByDesign}}[5m]))) > ${threshold}`,
          `and sum by (${site}) (rate(${latency}_count{${slowByDesign}}[5m])) > 0.2`,
        ].join('\n');
      },
      threshold: 0.5,
      unit: 'seconds',
      for: '5m',
      summary: 'Calls to the frontend of {{ $labels.cluster }} are slow.',
      description:
        'The 95th percentile of calls to the frontend of {{ $labels.cluster }}, without long polls and lists, is {{ $value | humanizeDuration }}, above $threshold.',
      firstSteps: 'See which operations are slow; compare with the latency of history and of persistence.',
    },
    {
      name: 'SvcRequestErrors',
      severity: 'warning',
      expr: (names, threshold) =>
        `(\n${callees.flatMap((role) => [faultShare(names, role), failedShare(names, role)]).join('\nor ')}\n) > ${threshold}`,
      threshold: 0.05,
      unit: 'share',
      for: '5m',
      summary:
        'A large share of the requests{{ with $labels.svc_service }} from {{ . }}{{ end }} to {{ $labels.callee }} fails.',
      description:
        '{{ $value | humanizePercentage }} of the requests{{ with $labels.svc_service }} from {{ . }}{{ end }} to {{ $labels.callee }} fail, above $threshold. Answers such as "already started" do not count as failures where {{ $labels.callee }} counts its own faults.',
      firstSteps:
        'Find the operations that fail, then read the errors in the log of the role that is called.',
      dashboard: 'overview',
    },
  ],
});
