import type { MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client';
import type { Intake, RawTags } from '../core/model.ts';

type Value = MetricValueWithName<string>;
type Metric = MetricObjectWithValues<Value>;

/** One series of prom-client's, kept in the registry. */
interface Relayed {
  set(values: readonly Value[]): void;
  release(): void;
}

const splitLabel = { histogram: 'le', summary: 'quantile' } as const;
const isSplit = (type: string): type is keyof typeof splitLabel => type in splitLabel;

function tagsOf(value: Value, without: string): RawTags {
  const pairs = Object.entries(value.labels).filter(([name]) => name !== without);
  return Object.fromEntries(pairs.map(([name, text]) => [name, String(text)]));
}

/**
 * Copies prom-client's numbers into the registry, so that the agent's own instruments leave through every
 * reporter in the same way as everything else. Call it before a view is taken; series that prom-client
 * dropped are released.
 */
export function createSelfRelay(registry: Registry, intake: Intake): () => Promise<void> {
  let known = new Map<string, Relayed>();
  return async () => {
    const seen = new Map<string, Relayed>();
    const metrics = (await registry.getMetricsAsJSON()) as unknown as Metric[];
    for (const metric of metrics) {
      const type = String(metric.type);
      for (const [key, values] of grouped(metric, isSplit(type) ? splitLabel[type] : '')) {
        const relayed = known.get(key) ?? open(intake, metric, type, values);
        relayed.set(values);
        seen.set(key, relayed);
      }
    }
    for (const [key, relayed] of known) if (!seen.has(key)) relayed.release();
    known = seen;
  };
}

/** A metric's values by their labels less the one that splits a distribution. */
function grouped(metric: Metric, split: string): Map<string, Value[]> {
  const groups = new Map<string, Value[]>();
  for (const value of metric.values) {
    const key = JSON.stringify([metric.name, tagsOf(value, split)]);
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}

function open(intake: Intake, metric: Metric, type: string, values: readonly Value[]): Relayed {
  const shape = { help: metric.help };
  if (!isSplit(type)) {
    const handle = (type === 'counter' ? intake.counter : intake.gauge)(
      metric.name,
      tagsOf(values[0]!, ''),
      shape,
    );
    return { set: ([value]) => handle.set(value!.value), release: () => handle.release() };
  }
  const split = splitLabel[type];
  const texts = values.filter((v) => split in v.labels).map((v) => String(v.labels[split]));
  const tags = tagsOf(values[0]!, split);
  const handle =
    type === 'histogram'
      ? intake.histogram(metric.name, tags, {
          ...shape,
          bounds: texts.filter((t) => t !== '+Inf').map(Number),
        })
      : intake.summary(metric.name, tags, { ...shape, quantiles: texts });
  return { set: (now) => handle.set(partsOf(metric.name, split, now)), release: () => handle.release() };
}

/** Buckets or quantiles in order, then sum, then count: the order of the model. */
function partsOf(name: string, split: string, values: readonly Value[]): number[] {
  const named = (suffix: string) => values.find((v) => v.metricName === `${name}${suffix}`)?.value ?? 0;
  return [...values.filter((v) => split in v.labels).map((v) => v.value), named('_sum'), named('_count')];
}
