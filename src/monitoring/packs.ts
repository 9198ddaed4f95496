import type { Alert, Pack, PackName } from './alert.ts';
import { keptFor, withUnit } from './alert.ts';
import { agent, incidentsOfAgents, logs } from './alerts/agent.ts';
import { archival, replication } from './alerts/clusters.ts';
import { recordings } from './alerts/recordings.ts';
import { backups, stores } from './alerts/recovery.ts';
import { requests } from './alerts/requests.ts';
import { availability, processes } from './alerts/roles.ts';
import { slos } from './alerts/slo.ts';
import { specAlerts } from './alerts/spec.ts';
import { persistence, tasks } from './alerts/work.ts';
import { historyWork, workflows } from './alerts/workflows.ts';
import { type Names, type Naming, namesOf, shippedNaming } from './names.ts';

const recommended = [
  ...[availability, processes, persistence, tasks, workflows, historyWork, requests],
  ...[backups, stores, replication, archival, logs, agent, incidentsOfAgents],
];

const byName: Readonly<Record<PackName, Pack>> = {
  spec: { name: 'spec', groups: specAlerts },
  recommended: { name: 'recommended', groups: recommended },
  recording: { name: 'recording', groups: recordings },
  slo: { name: 'slo', groups: slos },
};

/** All packs that are shipped (docs/reference/alerts.md). Load `spec` or `recommended`, not both. */
export const packs: readonly Pack[] = Object.values(byName);

export function pack(name: PackName): Pack {
  return byName[name];
}

export function alertsOf(of: Pack): readonly Alert[] {
  return of.groups.flatMap(({ alerts = [] }) => alerts);
}

/** How an installation differs from the shipped files. */
export interface RuleOptions extends Naming {
  /** Labels that every alert gets in addition. */
  labels: Readonly<Record<string, string>>;
  /** Thresholds by alert; for the alerts of an objective this is the objective. */
  thresholds: Readonly<Record<string, number>>;
  /** `for` by alert, in Prometheus' notation; with an empty text the alert fires immediately. */
  fors: Readonly<Record<string, string>>;
  /**
   * The address of the folder `runbooks`; a link is this address, a slash and `<AlertName>.md`. If it is empty, there is no link.
   */
  runbookUrl: string;
  /** The address of Grafana; if it is empty, there is no link. */
  dashboardUrl: string;
}

export const shippedOptions: RuleOptions = {
  ...shippedNaming,
  labels: {},
  thresholds: {},
  fors: {},
  runbookUrl: '',
  dashboardUrl: '',
};

/** One rule in Prometheus' form. */
export interface RenderedAlert {
  alert: string;
  expr: string;
  for?: string;
  keep_firing_for?: string;
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
}
interface RenderedRecording {
  record: string;
  expr: string;
}
export type RenderedRule = RenderedAlert | RenderedRecording;

/** A rule file in Prometheus' form; also the `spec` of a PrometheusRule. */
export interface RuleFile {
  groups: readonly { name: string; rules: readonly RenderedRule[] }[];
}

/** A pack with the names, thresholds, times and addresses of an installation. */
export function renderPack(pack: Pack, options: RuleOptions): RuleFile {
  const names = namesOf(options);
  return {
    groups: pack.groups.map(({ name, records = [], alerts = [] }) => ({
      name,
      rules: [
        ...records.map(({ record, expr }) => ({ record, expr: expr(names) })),
        ...alerts.map((alert) => renderAlert(alert, pack, names, options)),
      ],
    })),
  };
}

function renderAlert(alert: Alert, pack: Pack, names: Names, options: RuleOptions): RenderedAlert {
  const threshold = options.thresholds[alert.name] ?? alert.threshold ?? 0;
  const holdFor = options.fors[alert.name] ?? alert.for;
  const measured = alert.description.replaceAll('$threshold', () => withUnit(threshold, alert.unit));
  return {
    alert: alert.name,
    expr: alert.expr(names, threshold),
    ...(holdFor ? { for: holdFor } : {}),
    ...(alert.isState ? { keep_firing_for: keptFor } : {}),
    labels: { severity: alert.severity, pack: pack.name, ...alert.labels, ...options.labels },
    annotations: {
      summary: alert.summary,
      description: `${measured} First steps: ${alert.firstSteps}`,
      runbook: `runbooks/${alert.name}.md`,
      ...linksOf(alert, options),
    },
  };
}

/**
 * The links of an alert. They are absolute or left out, because a receiver of alerts has no base for a relative link. `runbook`
 * is the path of the page.
 */
function linksOf({ name, dashboard, hasNoCluster }: Alert, { runbookUrl, dashboardUrl }: RuleOptions) {
  const environment = '?var-environment={{ $labels.environment }}';
  const cluster = hasNoCluster ? '' : '&var-cluster={{ $labels.cluster }}';
  return {
    ...(runbookUrl ? { runbook_url: `${runbookUrl}/${name}.md` } : {}),
    ...(dashboardUrl ? { dashboard_url: `${dashboardUrl}/d/svc-${dashboard}${environment}${cluster}` } : {}),
  };
}
