import { agentMetric } from '../agent-metrics.ts';
import { findMetric } from '../catalog.ts';
import { monotonicWallTime } from '../clock.ts';
import { AgentError } from '../errors.ts';
import type { Counter, FamilyView, Gauge, Intake, Kind, RawTags, SeriesView, View } from '../model.ts';
import type { Clock, Drops, GatherRequest } from '../ports.ts';
import { type Component, type DropReason, dropReasons } from '../reasons.ts';
import { createAdmission } from './admission.ts';
import { allClaims, areConflicting, winnerOf } from './claims.ts';
import { createDurableStore, type DurableStore } from './durable-store.ts';
import { createIntake, type IntakeDeps, type IntakeOptions, type OpenIntake } from './intake.ts';
import { compareText } from './labels.ts';
import {
  createRefusalLog,
  createScopes,
  type Family,
  type KnownFamily,
  type Limits,
  type Refusal,
  type RefusalCount,
  type RegistryState,
  type Series,
  type SeriesScope,
  visibleSeries,
} from './registry-state.ts';
import { createImmediateStore, type HeldValues, type Store } from './value-stores.ts';

/** Components whose drops come from log bytes. They are counted exactly once across restarts, like the lines. */
const durableComponents: ReadonlySet<Component> = new Set<Component>(['logs', 'rules']);

/** The intakes in which drops are counted. */
interface DropsDeps {
  durable: Pick<OpenIntake, 'counter' | 'restore'>;
  immediate: Pick<OpenIntake, 'counter'>;
}

const { name, help, tags } = agentMetric('svc_agent_dropped_total');

/**
 * Counts `svc_agent_dropped_total{component,reason}`. Every pair of the closed lists exists from the start, at 0. Counting
 * a reason of another component throws `AgentError` (`internal`).
 */
function createDrops({ durable, immediate }: DropsDeps): Drops {
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
interface FamilySize {
  readonly family: string;
  readonly series: number;
}

const shownFamilies = 20;
const sizes = agentMetric('svc_agent_series');
const refused = agentMetric('svc_agent_series_refused_total');

const compareSizes = (a: Family, b: Family) => b.series.size - a.series.size || compareText(a.name, b.name);

/** The sizes of the largest families, then the sum of all others as `other`. */
function familySizes(state: RegistryState): FamilySize[] {
  const largest: Family[] = [];
  let rest = 0;
  // There may be tens of thousands of families, so they are not sorted.
  for (const family of state.families.values()) {
    rest += family.series.size;
    const isFull = largest.length === shownFamilies;
    if (family.series.size === 0 || (isFull && compareSizes(largest.at(-1)!, family) <= 0)) continue;
    if (isFull) largest.pop();
    const at = largest.findLastIndex((other) => compareSizes(other, family) <= 0);
    largest.splice(at + 1, 0, family);
  }
  for (const { series } of largest) rest -= series.size;
  const shown = largest.map(({ name, series }) => ({ family: name, series: series.size }));
  return [...shown, { family: 'other', series: rest }];
}

/**
 * The registry's metrics about itself: `svc_agent_series{family}` and
 * `svc_agent_series_refused_total{family,reason}`. Call `refresh` before a view is taken. It costs nothing while no
 * series is added, removed or refused.
 */
function createSelfSeries(state: RegistryState, intake: Intake): { refresh(): void } {
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
interface Conflict {
  readonly family: string;
  /** The kind of the name; undefined while it is a histogram's suffix. */
  readonly kind: Kind | undefined;
  readonly claims: readonly { readonly rawName: string; readonly kind: Kind }[];
}

/** The registry's part of the status page and of `/api/status`. */
interface RegistryStatus {
  /** The number of series that count against `limits.series`. */
  readonly series: number;
  /** The number of overflow series, which do not count. */
  readonly overflow: number;
  readonly families: readonly FamilySize[];
  readonly refusals: readonly RefusalCount[];
  /** The newest refusals, newest last. */
  readonly latest: readonly Refusal[];
  readonly conflicts: readonly Conflict[];
}

const maxConflicts = 100;

function isContested({ claims, taken }: Family): boolean {
  return taken || areConflicting(claims);
}

function conflictOf({ name, kind, taken, claims }: Family): Conflict {
  const wanting = [...allClaims(claims)].map(({ rawName, kind }) => ({ rawName, kind }));
  wanting.sort((a, b) => compareText(a.rawName, b.rawName) || compareText(a.kind, b.kind));
  return { family: name, kind: taken ? undefined : kind, claims: wanting };
}

function statusOf(state: RegistryState): RegistryStatus {
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

/** What views read: the families of a state, and the stores with their numbers. */
interface ViewDeps {
  state: RegistryState;
  stores(): Iterable<Store>;
}

function helpOf(state: RegistryState, family: Family): string {
  const known = state.catalogKind(family.name);
  return known?.help || winnerOf(family.claims)?.help || '';
}

/** The predicate, with its answers cached per scope. */
function remembered(takes: GatherRequest['takes']): (scope: SeriesScope) => boolean {
  const answers = new Map<SeriesScope, boolean>();
  return (scope) => {
    let answer = answers.get(scope);
    if (answer === undefined) {
      answer = takes(scope);
      answers.set(scope, answer);
    }
    return answer;
  };
}

function familyViews(
  state: RegistryState,
  names: readonly string[],
  takes: (scope: SeriesScope) => boolean,
): FamilyView[] {
  const views: FamilyView[] = [];
  for (const name of names) {
    const family = state.families.get(name);
    if (!family?.kind) continue;
    const series = visibleSeries(family, takes);
    if (series.length > 0) views.push({ name, kind: family.kind, help: helpOf(state, family), series });
  }
  return views;
}

/** Takes snapshots: families sorted by name, series in the order of their opening. */
function createViews({ state, stores }: ViewDeps): Registry['view'] {
  let names: readonly string[] = [];
  let namedAt = -1;

  const sortedNames = () => {
    if (namedAt !== state.version) names = [...state.families.keys()].sort(compareText);
    namedAt = state.version;
    return names;
  };

  return (takes = () => true, wanted) => {
    const held = new Map<Store, HeldValues>();
    for (const store of stores()) held.set(store, store.hold());
    const families = familyViews(state, wanted ?? sortedNames(), remembered(takes));
    let latestStore: Store | undefined;
    let latest: Float64Array = new Float64Array(0);
    return {
      families,
      numbers(series: SeriesView): Float64Array {
        const { store } = series as Series;
        if (store !== latestStore) {
          latest = held.get(store)?.values ?? new Float64Array(0);
          latestStore = store;
        }
        return latest;
      },
      release() {
        for (const each of held.values()) each.release();
        held.clear();
        latestStore = undefined;
      },
    };
  };
}

/** Settings that a reload may change. They apply to intakes that open afterwards. */
export interface RegistrySettings {
  limits: Limits;
  /** The keys of `services`. */
  serviceKeys?: Iterable<string>;
  /** Global tags of the agent's own series. */
  globalTags?: RawTags;
}

export interface RegistryOptions extends RegistrySettings {
  /** The known kind of a family before any source sends it. Default: from the spec's catalog. */
  catalogKind?: (family: string) => KnownFamily | undefined;
  /** A store that has been restored already. Default: a new one. */
  durable?: DurableStore;
}

/** All series of the agent: sources open intakes, reporters take views. */
export interface Registry {
  /** Values that survive restarts. Views show the last published ones. */
  readonly durable: DurableStore;
  /**
   * Values that do not survive restarts. Views show the current ones. Each scrape target has its own store (`createPageStore`).
   */
  readonly immediate: Store;
  readonly drops: Drops;
  intake(options: IntakeOptions): OpenIntake;
  /**
   * A snapshot of the series whose scope is selected, taken in one synchronous step. With `wanted` it has only these families, in
   * this order. The caller must release it.
   */
  view(takes?: GatherRequest['takes'], wanted?: readonly string[]): View;
  status(): RegistryStatus;
  /** Applies settings. Open series stay, even if the limits are lower now. */
  configure(settings: RegistrySettings): void;
}

const ownIntake = { service: '', component: 'agent', relayed: false, rank: -1 } as const;
const ownLabels = { received: false, tagService: false, exempt: true } as const;

export function createRegistry(
  options: RegistryOptions,
  { clock }: { clock: Pick<Clock, 'nowMs' | 'monotonicMs'> },
): Registry {
  const { catalogKind = findMetric, durable = createDurableStore() } = options;
  const immediate = createImmediateStore();
  const state: RegistryState = {
    families: new Map(),
    refusals: createRefusalLog(clock.nowMs),
    startMs: monotonicWallTime(clock),
    catalogKind,
    scopeOf: createScopes(),
    limits: options.limits,
    unsettled: new Set(),
    sources: new Set(),
    heapBytes: 0,
    counted: 0,
    overflow: 0,
    waiting: 0,
    version: 0,
  };
  const admission = createAdmission(state);
  const pages = new Map<Store, number>();
  let settings: RegistrySettings = options;
  // All intakes share this set: there are several for each service.
  let serviceKeys = new Set(settings.serviceKeys);
  const deps = (): IntakeDeps => ({
    state,
    admission,
    limits: settings.limits,
    serviceKeys,
    clock,
    drop: (reason) => own.drops.count('registry', reason),
  });

  /** Opens the registry's own series with the current global tags. */
  const openOwn = () => {
    const of = (store: Store) =>
      createIntake({ ...ownIntake, ...ownLabels, store, globalTags: settings.globalTags ?? {} }, deps());
    const intakes = { durable: of(durable), immediate: of(immediate) };
    const self = createSelfSeries(state, intakes.immediate);
    return { drops: createDrops(intakes), refresh: self.refresh, intakes };
  };
  let own = openOwn();
  const view = createViews({ state, stores: () => [durable, immediate, ...pages.keys()] });

  return {
    durable,
    immediate,
    drops: { count: (component, reason, n) => own.drops.count(component, reason, n) },
    intake(intakeOptions) {
      const { store } = intakeOptions;
      const intake = createIntake(intakeOptions, deps());
      if (store === durable || store === immediate) return intake;
      pages.set(store, (pages.get(store) ?? 0) + 1);
      const leavePage = () => {
        const left = (pages.get(store) ?? 0) - 1;
        if (left > 0) pages.set(store, left);
        else pages.delete(store);
      };
      return {
        ...intake,
        close() {
          intake.close();
          leavePage();
        },
        async closeInSlices(pause) {
          await intake.closeInSlices(pause);
          leavePage();
        },
      };
    },
    view(takes, wanted) {
      admission.decidePostponed();
      own.refresh();
      return view(takes, wanted);
    },
    status() {
      admission.decidePostponed();
      return statusOf(state);
    },
    configure(next) {
      const sameTags = JSON.stringify(next.globalTags ?? {}) === JSON.stringify(settings.globalTags ?? {});
      settings = next;
      serviceKeys = new Set(next.serviceKeys);
      state.limits = next.limits;
      if (sameTags) return;
      own.intakes.durable.close();
      own.intakes.immediate.close();
      own = openOwn();
    },
  };
}
