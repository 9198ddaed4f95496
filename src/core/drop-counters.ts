import { agentMetric } from './agent-metrics.ts';
import { AgentError } from './errors.ts';
import type { OpenIntake } from './intake.ts';
import { compareText } from './labels.ts';
import type { Counter, Gauge, Intake, Kind } from './model.ts';
import type { Drops } from './ports.ts';
import { type Component, type DropReason, dropReasons } from './reasons.ts';
import type { Family, Refusal, RefusalCount, RegistryState } from './registry-state.ts';

/** Components whose drops come from log bytes. They are counted exactly once across restarts, as the lines are. */
const durableComponents: ReadonlySet<Component> = new Set<Component>(['logs', 'rules']);

/** The intakes that drops are counted in. */
export interface DropsDeps {
  durable: Pick<OpenIntake, 'counter' | 'restore'>;
  immediate: Pick<OpenIntake, 'counter'>;
}

const { name, help, tags } = agentMetric('svc_agent_dropped_total');

/**
 * Counts `svc_agent_dropped_total{component,reason}`. Every pair of the closed lists exists from the start, at 0. Counting
 * a reason of another component throws `AgentError` (`internal`).
 */
export function createDrops({ durable, immediate }: DropsDeps): Drops {
  durable.restore('counter', name, { help, tags });
  const counters = new Map<Component, Map<DropReason, Counter>>();
  for (const component of Object.keys(dropReasons) as Component[]) {
    const intake = durableComponents.has(component) ? durable : immediate;
    const open = (reason: DropReason) => intake.counter(name, { component, reason }, { help });
    counters.set(component, new Map(dropReasons[component].map((reason) => [reason, open(reason)])));
  }
  return {
    count(component, reason, n = 1) {
      const counter = counters.get(component)?.get(reason);
      if (!counter) {
        const fault = { where: `drops.${component}`, what: 'no reason of this component', got: reason };
        throw new AgentError('internal', fault);
      }
      counter.add(n);
    },
  };
}

/** The number of series of a family. */
export interface FamilySize {
  readonly family: string;
  readonly series: number;
}

const shownFamilies = 20;
const sizes = agentMetric('svc_agent_series');
const refused = agentMetric('svc_agent_series_refused_total');

/** The largest families, then all others as `other`. */
export function familySizes(state: RegistryState): FamilySize[] {
  const all = [...state.families.values()]
    .filter((family) => family.series.size > 0)
    .map((family) => ({ family: family.name, series: family.series.size }))
    .sort((a, b) => b.series - a.series || compareText(a.family, b.family));
  const rest = all.slice(shownFamilies).reduce((sum, { series }) => sum + series, 0);
  return [...all.slice(0, shownFamilies), { family: 'other', series: rest }];
}

/**
 * The registry's metrics about itself: `svc_agent_series{family}` and
 * `svc_agent_series_refused_total{family,reason}`. Call `refresh` before a view is taken. It costs nothing while no
 * series is added, removed or refused.
 */
export function createSelfSeries(state: RegistryState, intake: Intake): { refresh(): void } {
  let gauges = new Map<string, Gauge>();
  const counters = new Map<string, Counter>();
  let seenVersion = -1;

  const refreshSizes = () => {
    const now = new Map<string, Gauge>();
    for (const { family, series } of familySizes(state)) {
      const gauge = gauges.get(family) ?? intake.gauge(sizes.name, { family }, { help: sizes.help });
      gauge.set(series);
      now.set(family, gauge);
    }
    for (const [family, gauge] of gauges) if (!now.has(family)) gauge.release();
    gauges = now;
  };

  const refreshRefusals = () => {
    for (const { family, reason, count } of state.refusals.counts()) {
      const key = `${reason} ${family}`;
      let counter = counters.get(key);
      if (!counter) {
        counter = intake.counter(refused.name, { family, reason }, { help: refused.help });
        counters.set(key, counter);
      }
      counter.set(count);
    }
  };

  return {
    refresh() {
      refreshRefusals();
      if (state.version !== seenVersion) refreshSizes();
      seenVersion = state.version;
    },
  };
}

/** A name that sources send with several kinds, or that is a part of a histogram. */
export interface Conflict {
  readonly family: string;
  /** The kind that holds the name; undefined while it is a histogram's suffix. */
  readonly kind: Kind | undefined;
  readonly claims: readonly { readonly rawName: string; readonly kind: Kind }[];
}

/** The registry's part of the status page and of `/api/status`. */
export interface RegistryStatus {
  /** Series that count against `limits.series`. */
  readonly series: number;
  /** Overflow series, which do not count. */
  readonly overflow: number;
  readonly families: readonly FamilySize[];
  readonly refusals: readonly RefusalCount[];
  /** The newest refusals, newest last. */
  readonly latest: readonly Refusal[];
  readonly conflicts: readonly Conflict[];
}

const maxConflicts = 100;

function isContested({ claims, taken }: Family): boolean {
  return taken || claims.conflicting;
}

function conflictOf({ name, kind, taken, claims }: Family): Conflict {
  const wanting = [...claims.all()].map(({ rawName, kind }) => ({ rawName, kind }));
  wanting.sort((a, b) => compareText(a.rawName, b.rawName) || compareText(a.kind, b.kind));
  return { family: name, kind: taken ? undefined : kind, claims: wanting };
}

export function statusOf(state: RegistryState): RegistryStatus {
  const contested = [...state.families.values()].filter(isContested);
  return {
    series: state.counted,
    overflow: state.overflow,
    families: familySizes(state),
    refusals: [...state.refusals.counts()],
    latest: [...state.refusals.latest()],
    conflicts: contested
      .map(conflictOf)
      .sort((a, b) => compareText(a.family, b.family))
      .slice(0, maxConflicts),
  };
}
