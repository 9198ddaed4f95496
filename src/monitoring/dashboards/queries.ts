import { agentMetrics } from '../../core/agent-metrics.ts';
import { catalog, findMetric, type Metric, roles } from '../../core/catalog.ts';
import { type Names, type Naming, namesOf } from '../names.ts';

/** A variable of a dashboard. Its values are those of `label` in the series of `metric`. */
export interface Choice {
  name: string;
  label: string;
  title: string;
  metric: string;
}

const agentChoice = (label: string, title: string): Choice => ({
  name: label,
  label,
  title,
  metric: 'svc_agent_build_info',
});
/** The variables of every dashboard, in this order: labels of the scrape targets, which every series may have. */
export const siteChoices = [agentChoice('environment', 'Environment'), agentChoice('cluster', 'Cluster')];

/** A variable with the roles of the series of `metric`. */
export const roleOf = (metric: string): Choice => ({
  name: 'role',
  label: 'svc_service',
  title: 'Role',
  metric,
});
export const role = roleOf('svc_num_goroutines');
export const instance = agentChoice('instance', 'Instance');

const labelled =
  (label: string, title: string) =>
  (metric: string): Choice => ({ name: label, label, title, metric });
export const operation = labelled('operation', 'Operation');
export const domain = labelled('domain', 'Domain');
export const tasklist = labelled('tasklist', 'Task list');
export const store = labelled('store', 'Store');
export const backup = labelled('backup', 'Backup');

/** Whether a variable of the label narrows a series, which is written `name` or `name{matchers}`. */
export function isNarrowedBy(series: string, label: string): boolean {
  const { name, matchers } = partsOf(series);
  if (siteChoices.some((choice) => choice.label === label)) return true;
  const type = typeOf(name);
  if (!type?.labels.includes(label)) return false;
  // All agents report the same value.
  if (label === 'instance') return !type.isReplicated;
  if (label !== 'svc_service') return true;
  // Series of only one role are not narrowed: a role that was chosen on another dashboard must not empty this one.
  return type.isOfSeveralRoles && !/(?:^|[\s,])svc_service="/.test(matchers);
}

function partsOf(series: string): { name: string; matchers: string } {
  const [, name = '', matchers = ''] = /^([\w:]+)(?:\{(.*)\})?$/.exec(series) ?? [];
  if (!name) throw new Error(`neither name nor name{matchers}: ${series}`);
  return { name, matchers };
}

/** The options of queries: the names of the installation, and matchers that are added to every scraped series. */
export interface QueryOptions extends Naming {
  matchers: Readonly<Record<string, string>>;
}

export type Queries = ReturnType<typeof queriesFor>;

const interval = '[$__rate_interval]';
const wholeRange = '[$__range] @ end()';
const level = (by: string): string => (by ? `cluster, ${by}` : 'cluster');

/**
 * Creates PromQL expressions by their purpose. Series are written as `name` or `name{matchers}`; the matchers of the variables
 * are added. `by` lists labels in addition to `cluster`.
 */
export function queriesFor({ prefix, jobs, matchers }: QueryOptions, choices: readonly Choice[]) {
  const names: Names = namesOf({ prefix, jobs });
  const fixed = Object.entries(matchers).map(([label, value]) => `${label}=${JSON.stringify(value)}`);

  /** A selector of the installation's series, narrowed by the variables. */
  function s(series: string): string {
    const { name, matchers: own } = partsOf(series);
    const isReported = name.startsWith('svc_') && !name.includes(':');
    const isScraped = isReported || name === 'up';
    const all = [
      ...(isScraped ? fixed : []),
      ...choices
        .filter(({ label }) => isNarrowedBy(series, label))
        .map(({ name: variable, label }) => `${label}=~"$${variable}"`),
      ...(own ? [own] : []),
    ];
    const selected = isReported ? names.m(name as `svc_${string}`) : name;
    return all.length > 0 ? `${selected}{${all.join(', ')}}` : selected;
  }

  const rate = (series: string, by = '') => `sum by (${level(by)}) (rate(${s(series)}${interval}))`;
  const highest = (series: string, by = '') => `max by (${level(by)}) (${s(series)})`;
  const total = (series: string, by = '') => `sum by (${level(by)}) (${s(series)})`;
  /** The latest value in the shown range, which outlives the agent that reported it. */
  const lastKnown = (series: string, by = '') =>
    `max by (${level(by)}) (last_over_time(${s(series)}[$__range]))`;

  return {
    s,
    job: names.job,
    rate,
    highest,
    total,
    lastKnown,
    /** The rate of a counter for which several agents may count the same events. */
    rateOnce: (series: string, by = '') => `max by (${level(by)}) (rate(${s(series)}${interval}))`,
    /** The growth of a counter in the shown range, rounded because `increase` extrapolates. */
    grown: (series: string, by = '') => `round(sum by (${level(by)}) (increase(${s(series)}[$__range])))`,
    /** The growth of a counter for which several agents may count the same events. */
    grownOnce: (series: string, by = '') => `round(max by (${level(by)}) (increase(${s(series)}[$__range])))`,
    /** The growth of a counter at each step: events as they happen. */
    events: (series: string, by: string) =>
      `round(max by (${level(by)}) (increase(${s(series)}${interval})))`,
    /** Seconds since a timestamp. */
    age: (series: string, by = '') => `time() - ${lastKnown(series, by)}`,
    /** A timestamp in milliseconds, as Grafana expects it. */
    moment: (series: string, by = '') => `1000 * ${lastKnown(series, by)}`,
    /** A share of events: 0 if none is bad, absent if there are none at all. */
    share: (bad: string, all: string, by = '') =>
      `(${rate(bad, by)} or 0 * ${rate(all, by)}) / (${rate(all, by)} > 0)`,
    quantile: (q: number, metric: string, by = '') =>
      `histogram_quantile(${q}, sum by (${level(by)}, le) (rate(${s(part(metric, 'bucket'))}${interval})))`,
    /** The observations of a histogram per second. */
    observations: (metric: string) => rate(part(metric, 'count')),
    /** The distribution over all chosen clusters. */
    distribution: (metric: string) => `sum by (le) (rate(${s(part(metric, 'bucket'))}${interval}))`,
    /** The maximum of a gauge in the shown range. */
    peak: (series: string, by = '') => `sum by (${level(by)}) (max_over_time(${s(series)}${wholeRange}))`,
    /** The number of series that meet the condition; 0 if there are series and none does. */
    howMany: (series: string, by: string, condition: string) =>
      `count by (cluster) (${highest(series, by)} ${condition}) or 0 * ${highest(series)}`,
  };
}

const part = (metric: string, suffix: string): string =>
  metric.replace(/^\w+/, (name) => `${name}_${suffix}`);

/**
 * The series that are highest over the whole shown range. `topk` alone chooses again at each step, and shows hundreds of series
 * if many are alike. `overall` is the expression by which they are chosen.
 */
export function top(count: number, expr: string, overall = expr.replaceAll(interval, wholeRange)): string {
  return `${expr} and topk(${count}, ${overall})`;
}

/** Limits a table that would have too many rows to those in which `chosenBy` is highest now. */
export const rowsOf = (expr: string, count: number, chosenBy: string): string =>
  `${expr} and topk(${count}, ${chosenBy})`;

/** A metric that a log rule of every agent counts, so that it is not in `agentMetrics`. */
export const reporterErrors: Metric = {
  name: 'svc_role_reporter_errors_total',
  kind: 'counter',
  unit: 'none',
  tags: ['svc_service'],
  group: 'logs',
  help: 'Warnings of the role that its own metrics reporter dropped series or could not report.',
};

const ofCallers = { tags: ['svc_service', 'domain', 'caller'], group: 'roles' } as const;

/**
 * Metrics that vocabularies produce from the frontend's own metrics, in addition to the catalog's, to distinguish its callers.
 */
export const frontendCallers: readonly Metric[] = [
  {
    ...ofCallers,
    name: 'svc_frontend_domain_requests',
    kind: 'counter',
    unit: 'none',
    help: 'Calls to the frontend by domain and caller.',
  },
  {
    ...ofCallers,
    name: 'svc_frontend_domain_latency',
    kind: 'histogram',
    unit: 'seconds',
    help: 'Time of calls to the frontend by domain and caller.',
  },
  {
    ...ofCallers,
    name: 'svc_frontend_domain_errors',
    kind: 'counter',
    unit: 'none',
    help: 'Calls to the frontend that failed, by domain and caller.',
  },
  {
    ...ofCallers,
    name: 'svc_frontend_domain_throttled',
    kind: 'counter',
    unit: 'none',
    help: 'Calls that the frontend refused because of a rate limit, by domain and caller.',
  },
];

const ofServing = { tags: ['svc_service', 'operation'], group: 'roles' } as const;

/** Metrics that vocabularies produce for the alerts, in addition to the catalog's. */
export const servedRequests: readonly Metric[] = [
  {
    ...ofServing,
    name: 'svc_served_requests',
    kind: 'counter',
    unit: 'none',
    help: 'Requests that history or matching served.',
  },
  {
    ...ofServing,
    name: 'svc_served_errors',
    kind: 'counter',
    unit: 'none',
    help: 'Requests that history or matching served and failed to answer. Answers such as "already started" are not failures.',
  },
  {
    ...ofServing,
    name: 'svc_history_task_queue_latency',
    kind: 'histogram',
    unit: 'seconds',
    help: 'Time of the tasks of history from when they were due until they were done.',
  },
  {
    name: 'svc_matching_pollers',
    tags: ['svc_service', 'domain', 'tasklist', 'tasklist_type'],
    group: 'roles',
    kind: 'gauge',
    unit: 'none',
    help: 'Workers that poll a task list.',
  },
];

/** Every metric that rules and dashboards may use. */
const metrics: ReadonlyMap<string, Metric> = new Map(
  [...catalog, ...agentMetrics, reporterErrors, ...frontendCallers, ...servedRequests].map((metric) => [
    metric.name,
    metric,
  ]),
);

const partSuffix = /_(bucket|sum|count)$/;
/** Groups whose metrics describe one host or one agent. Several agents may report the other metrics with equal labels. */
const perHost = new Set(['logs', 'roles', 'probes', 'agent']);
/** Metrics for which each agent counts the failures on the pages that it scrapes. */
const perAgent = new Set(['svc_replication_task_failures_total']);

/** The properties of a series that follow from its name. */
interface SeriesType {
  movement: 'counter' | 'gauge';
  /** Labels that its samples can have. */
  labels: readonly string[];
  /** Whether several agents may report the same value. */
  isReplicated: boolean;
  /** Whether more than one role sends it. */
  isOfSeveralRoles: boolean;
}

/** Labels that every scraped series has. */
const scraped = ['environment', 'cluster', 'instance', 'pod', 'job'];

/** The type of a series according to the catalogs; undefined if nothing exports it. */
export function typeOf(name: string): SeriesType | undefined {
  if (name === 'up')
    return { movement: 'gauge', labels: scraped, isReplicated: false, isOfSeveralRoles: true };
  const whole = metrics.get(name);
  if (whole && whole.kind !== 'histogram')
    return seriesType(whole, whole.kind === 'counter' ? 'counter' : 'gauge', []);
  const family = metrics.get(name.replace(partSuffix, ''));
  const suffix = partSuffix.exec(name)?.[1];
  if (!family || !suffix || !hasParts(family)) return undefined;
  return seriesType(family, 'counter', suffix === 'bucket' ? ['le'] : []);
}

/** A counter for which a timer of the same name is accepted, too (docs/reference/metrics.md, The catalog). */
const alsoTimer = 'svc_memory_gc_pause_ms';
const hasParts = ({ kind, name }: Metric) => kind === 'histogram' || name === alsoTimer;

function seriesType(
  { name, tags, group }: Metric,
  movement: SeriesType['movement'],
  more: readonly string[],
): SeriesType {
  const ofRole = findMetric(name);
  const quantile = name === alsoTimer ? ['quantile'] : [];
  return {
    movement,
    labels: [...scraped, ...(ofRole ? ['svc_service'] : []), ...tags, ...more, ...quantile],
    isReplicated: !ofRole && !perHost.has(group) && !perAgent.has(name),
    isOfSeveralRoles: (ofRole?.roles ?? roles).length > 1,
  };
}
