import { type CatalogMetric, catalog, type Role } from '../../src/core/catalog.ts';

/** Upper bounds of every histogram, in seconds (spec, Metrics configuration). */
export const bucketBounds = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10] as const;

export type Tags = Readonly<Record<string, string>>;

export interface Series {
  tags: Tags;
  /** One number; of a histogram the cumulative buckets with +Inf last, then the sum. */
  numbers: number[];
}

/** What a page says of a metric. */
type Described = Pick<CatalogMetric, 'name' | 'kind' | 'help'>;

export interface Family {
  metric: Described;
  series: Iterable<Series>;
}

/** What real services send beside the catalog: how far a cluster is behind another, here in seconds. */
const replicationLatency: CatalogMetric = {
  name: 'svc_replication_latency',
  kind: 'gauge',
  unit: 'seconds',
  group: 'Replication',
  help: 'Age of the oldest change that the target cluster has not taken yet.',
  tags: ['source_cluster', 'target_cluster'],
  roles: ['history'],
};

/** The metrics of one process; only those of its role exist. */
export interface Metrics {
  add(name: string, tags: Tags, increase?: number): void;
  set(name: string, tags: Tags, value: number): void;
  observe(name: string, tags: Tags, seconds: number): void;
  families(): Family[];
}

function addTo(numbers: number[], part: number, increase: number) {
  numbers[part] = (numbers[part] ?? 0) + increase;
}

/** Every series has the tags `own`. Of a role whose metrics are all `known`, others are refused. */
export function metricsOf(own: Tags, role: Role, known?: readonly Described[]): Metrics {
  const families = new Map<string, { metric: Described; series: Map<string, Series> }>();
  for (const metric of known ?? []) families.set(metric.name, { metric, series: new Map() });

  function numbersOf(name: string, kind: Described['kind'], tags: Tags): number[] {
    let family = families.get(name);
    if (!family) {
      if (known) throw new Error(`${role} has no metric ${name}`);
      family = { metric: { name, kind, help: `${name} ${kind}` }, series: new Map() };
      families.set(name, family);
    }
    const key = JSON.stringify(tags);
    let series = family.series.get(key);
    if (!series) {
      const parts = kind === 'histogram' ? bucketBounds.length + 2 : 1;
      series = { tags: { ...own, ...tags }, numbers: new Array<number>(parts).fill(0) };
      family.series.set(key, series);
    }
    return series.numbers;
  }

  return {
    add: (name, tags, increase = 1) => addTo(numbersOf(name, 'counter', tags), 0, increase),
    set: (name, tags, value) => {
      numbersOf(name, 'gauge', tags)[0] = value;
    },
    observe: (name, tags, seconds) => {
      const numbers = numbersOf(name, 'histogram', tags);
      bucketBounds.forEach((bound, part) => {
        if (seconds <= bound) addTo(numbers, part, 1);
      });
      addTo(numbers, bucketBounds.length, 1);
      addTo(numbers, bucketBounds.length + 1, seconds);
    },
    families: () => [...families.values()].map(({ metric, series }) => ({ metric, series: series.values() })),
  };
}

/** The metrics of a role under the names of the catalog. */
export const createMetrics = (role: Role): Metrics =>
  metricsOf(
    { svc_service: role },
    role,
    [...catalog, replicationLatency].filter((metric) => metric.roles.includes(role)),
  );
