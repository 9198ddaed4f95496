import { agentMetrics } from '../../core/agent-metrics.ts';
import { catalog, type Metric } from '../../core/catalog.ts';

const known = new Map<string, Metric>([...catalog, ...agentMetrics].map((metric) => [metric.name, metric]));
const part = /_(bucket|sum|count)$/;
const perHost = new Set(['logs', 'roles', 'probes', 'agent']);

/** How a sample's number moves, as a query must treat it. */
export type Movement = 'counter' | 'gauge' | 'either';

/** What is known of a series by its name alone. */
export interface SeriesType {
  movement: Movement;
  /** Labels that its own tags give, without those that every scraped series has. */
  labels: readonly string[];
  /** Whether several agents may report the same of it. */
  isReplicated: boolean;
}

const scraped = ['cluster', 'instance', 'pod', 'job'];
const hasService = new Set(catalog.map(({ name }) => name));

/** The type of a series by the catalogs, or undefined if nothing exports it. */
export function typeOf(name: string): SeriesType | undefined {
  if (name === 'up') return { movement: 'gauge', labels: scraped, isReplicated: false };
  const whole = known.get(name);
  if (whole && whole.kind !== 'histogram') return seriesType(whole, movementOf(whole), []);
  const family = known.get(name.replace(part, ''));
  const suffix = part.exec(name)?.[1];
  if (!family || !suffix || !hasParts(family)) return undefined;
  return seriesType(family, 'counter', suffix === 'bucket' ? ['le'] : []);
}

/** A timer of this name is accepted beside the counter that it is (CONTRACT, Kinds in the catalog). */
const alsoTimer = 'svc_memory_gc_pause_ms';
const hasParts = ({ kind, name }: Metric) => kind === 'histogram' || name === alsoTimer;
const movementOf = ({ kind }: Metric): Movement => (kind === 'counter' ? 'counter' : 'gauge');

function seriesType({ name, tags, group }: Metric, movement: Movement, more: readonly string[]): SeriesType {
  const isRelayed = hasService.has(name);
  return {
    movement,
    labels: [
      ...scraped,
      ...(isRelayed ? ['svc_service'] : []),
      ...tags,
      ...more,
      ...(name === alsoTimer ? ['quantile'] : []),
    ],
    isReplicated: !isRelayed && !perHost.has(group),
  };
}
