import { agentMetrics } from '../core/agent-metrics.ts';
import { catalog, findMetric, type Metric, roles } from '../core/catalog.ts';

/**
 * Counted by a rule on log lines that every agent has; it is no metric of the contract's table.
 */
const reporterErrors: Metric = {
  name: 'svc_role_reporter_errors_total',
  kind: 'counter',
  unit: 'none',
  tags: ['svc_service'],
  group: 'logs',
  help: '',
};

/** Every metric that rules and dashboards may use. */
export const metrics: ReadonlyMap<string, Metric> = new Map(
  [...catalog, ...agentMetrics, reporterErrors].map((metric) => [metric.name, metric]),
);

const part = /_(bucket|sum|count)$/;
/** Groups whose metrics describe one host or one agent; several agents may report the others with equal labels. */
const perHost = new Set(['logs', 'roles', 'probes', 'agent']);
/** Each agent counts the failures on the pages that it scrapes. */
const perAgent = new Set(['svc_replication_task_failures_total']);

/** What is known of a series by its name alone. */
export interface SeriesType {
  movement: 'counter' | 'gauge';
  /** Labels that its samples can have. */
  labels: readonly string[];
  /** Whether several agents may report the same value. */
  isReplicated: boolean;
  /** Whether more than one role sends it. */
  isOfSeveralRoles: boolean;
}

/** Labels that every scraped series has. */
const scraped = ['cluster', 'instance', 'pod', 'job'];

/** The type of a series by the catalogs, or undefined if nothing exports it. */
export function typeOf(name: string): SeriesType | undefined {
  if (name === 'up')
    return { movement: 'gauge', labels: scraped, isReplicated: false, isOfSeveralRoles: true };
  const whole = metrics.get(name);
  if (whole && whole.kind !== 'histogram')
    return seriesType(whole, whole.kind === 'counter' ? 'counter' : 'gauge', []);
  const family = metrics.get(name.replace(part, ''));
  const suffix = part.exec(name)?.[1];
  if (!family || !suffix || !hasParts(family)) return undefined;
  return seriesType(family, 'counter', suffix === 'bucket' ? ['le'] : []);
}

/** A timer of this name is accepted beside the counter that it is (CONTRACT, Kinds in the catalog). */
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
