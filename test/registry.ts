import type { IntakeOptions, OpenIntake } from '../src/core/registry/intake.ts';
import { createRegistry, type Registry, type RegistryOptions } from '../src/core/registry/registry.ts';
import { createPageStore, type PageStore } from '../src/core/registry/value-stores.ts';
import { type ManualClock, manualClock } from './clock.ts';

export const wideLimits = { seriesPerMetric: 2000, series: 50_000, forbiddenTags: [], allowValues: [] };

/** A registry for tests, with its clock. */
export interface TestRegistry {
  registry: Registry;
  clock: ManualClock;
  /** An intake of the immediate store for received series; `options` override this. */
  intake(options?: Partial<IntakeOptions>): OpenIntake;
  /** An intake with its own page store. */
  page(options?: Partial<IntakeOptions>): { intake: OpenIntake; store: PageStore };
  /** What views show of series other than the agent's own: `name{label="value"}` with its numbers. */
  shown(): Record<string, number | number[]>;
  /** Freezes and publishes, like a successful commit. */
  commit(): void;
  /** The agent's own count of a drop or refusal. */
  dropped(reason: string, component?: string): number;
  refused(family: string, reason: string): number;
}

const text = (name: string, labels: readonly (readonly [string, string])[]) =>
  labels.length === 0 ? name : `${name}{${labels.map(([k, v]) => `${k}=${JSON.stringify(v)}`).join(',')}}`;

/** Every series in a view as text with its numbers: a single number, or an array of several. */
export function showAll(registry: Registry): Record<string, number | number[]> {
  const view = registry.view();
  const shown: Record<string, number | number[]> = {};
  for (const family of view.families) {
    const width = { counter: () => 1, gauge: () => 1, untyped: () => 1 } as const;
    for (const series of family.series) {
      const extra = family.kind === 'histogram' ? 3 : 2;
      const count = family.kind in width ? 1 : series.bounds.length + extra;
      const numbers = [...view.numbers(series).subarray(series.at, series.at + count)];
      const key = text(family.name, series.labels);
      if (key in shown) throw new Error(`shown twice: ${key}`);
      shown[key] = count === 1 ? numbers[0]! : numbers;
    }
  }
  view.release();
  return shown;
}

export function testRegistry(options: Partial<RegistryOptions> = {}): TestRegistry {
  const clock = manualClock();
  const registry = createRegistry({ limits: wideLimits, ...options }, { clock });
  const defaults: IntakeOptions = {
    service: 'frontend',
    component: 'scrape',
    relayed: true,
    rank: 0,
    store: registry.immediate,
    globalTags: {},
    received: true,
    tagService: false,
  };
  const intake = (own: Partial<IntakeOptions> = {}) => registry.intake({ ...defaults, ...own });
  return {
    registry,
    clock,
    intake,
    page(own = {}) {
      const store = createPageStore();
      return { store, intake: intake({ store, ...own }) };
    },
    shown: () =>
      Object.fromEntries(Object.entries(showAll(registry)).filter(([key]) => !key.startsWith('svc_agent_'))),
    commit: () => registry.durable.publish(registry.durable.freeze()),
    dropped(reason, component = 'registry') {
      const key = `svc_agent_dropped_total{component="${component}",reason="${reason}"}`;
      return showAll(registry)[key] as number;
    },
    refused(family, reason) {
      const key = `svc_agent_series_refused_total{family="${family}",reason="${reason}"}`;
      return (showAll(registry)[key] as number | undefined) ?? 0;
    },
  };
}
