import { createAdmission } from './admission.ts';
import { findMetric } from './catalog.ts';
import { monotonicWallTime } from './clock.ts';
import { createDrops, createSelfSeries, type RegistryStatus, statusOf } from './drop-counters.ts';
import { createDurableStore, type DurableStore } from './durable-store.ts';
import { createIntake, type IntakeDeps, type IntakeOptions, type OpenIntake } from './intake.ts';
import { compareText } from './labels.ts';
import type { FamilyView, RawTags, SeriesView, View } from './model.ts';
import type { Clock, Drops, GatherRequest } from './ports.ts';
import {
  createRefusalLog,
  createScopes,
  type Family,
  type KnownFamily,
  type Limits,
  type RegistryState,
  type Series,
  type SeriesScope,
  visibleSeries,
} from './registry-state.ts';
import { createImmediateStore, type HeldValues, type Store } from './value-stores.ts';

/** What views read: the families of a state, and the stores that hold their numbers. */
export interface ViewDeps {
  state: RegistryState;
  stores(): Iterable<Store>;
}

function helpOf(state: RegistryState, family: Family): string {
  const known = state.catalogKind(family.name);
  return known?.help || family.claims.winner()?.help || '';
}

/** The predicate with its answers cached per scope. */
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
export function createViews({ state, stores }: ViewDeps): (takes: GatherRequest['takes']) => View {
  let names: readonly string[] = [];
  let namedAt = -1;

  const sortedNames = () => {
    if (namedAt !== state.version) names = [...state.families.keys()].sort(compareText);
    namedAt = state.version;
    return names;
  };

  return (takes) => {
    const held = new Map<Store, HeldValues>();
    for (const store of stores()) held.set(store, store.hold());
    const families = familyViews(state, sortedNames(), remembered(takes));
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
  /** Keys of `services`. */
  serviceKeys?: Iterable<string>;
  /** Global tags of the agent's own series. */
  globalTags?: RawTags;
}

export interface RegistryOptions extends RegistrySettings {
  /** What is known of a family before any source sends it. Default: the spec's catalog. */
  catalogKind?: (family: string) => KnownFamily | undefined;
  /** A store that has been restored already. Default: a new one. */
  durable?: DurableStore;
}

/** All series: where they come in, and the pictures that reporters read. */
export interface Registry {
  /** Values that survive restarts. Views show the last published ones. */
  readonly durable: DurableStore;
  /** Values that do not survive restarts. Views show the current ones. Each scrape target has a store of its own (`createPageStore`). */
  readonly immediate: Store;
  readonly drops: Drops;
  intake(options: IntakeOptions): OpenIntake;
  /** A snapshot of the series whose scope is taken, in one synchronous step. Release it. */
  view(takes?: GatherRequest['takes']): View;
  status(): RegistryStatus;
  /** Series that are open stay, even if the limits are lower now. */
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
    counted: 0,
    overflow: 0,
    waiting: 0,
    version: 0,
  };
  const admission = createAdmission(state);
  const pages = new Map<Store, number>();
  let settings: RegistrySettings = options;
  const deps = (): IntakeDeps => ({
    state,
    admission,
    limits: settings.limits,
    serviceKeys: new Set(settings.serviceKeys),
    clock,
    drop: (reason) => own.drops.count('registry', reason),
  });

  /** The registry's own series, with the current global tags. */
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
    view(takes = () => true) {
      admission.settleAll();
      own.refresh();
      return view(takes);
    },
    status() {
      admission.settleAll();
      return statusOf(state);
    },
    configure(next) {
      const sameTags = JSON.stringify(next.globalTags ?? {}) === JSON.stringify(settings.globalTags ?? {});
      settings = next;
      state.limits = next.limits;
      if (sameTags) return;
      own.intakes.durable.close();
      own.intakes.immediate.close();
      own = openOwn();
    },
  };
}
