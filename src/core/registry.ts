import { createAdmission } from './admission.ts';
import { findMetric } from './catalog.ts';
import { createDrops } from './drops.ts';
import { createDurableStore, type DurableStore } from './durable-store.ts';
import { forwardTime } from './forward-time.ts';
import { createIntake, type IntakeDeps, type IntakeOptions, type OpenIntake } from './intake.ts';
import type { RawTags, View } from './model.ts';
import type { Clock, Drops, GatherRequest } from './ports.ts';
import { createScopes, type Known, type Limits, type Room } from './room.ts';
import { createSelfSeries } from './self-series.ts';
import { type RegistryStatus, statusOf } from './status.ts';
import { createImmediateStore, type Store } from './store.ts';
import { createTally } from './tally.ts';
import { createViews } from './view.ts';

/** What a reload may change; it counts for intakes that open afterwards. */
export interface RegistrySettings {
  limits: Limits;
  /** Keys of `services`. */
  serviceKeys?: Iterable<string>;
  /** Global tags of the agent's own series. */
  globalTags?: RawTags;
}

export interface RegistryOptions extends RegistrySettings {
  /** What is known of a name before anybody sends it. Default: the spec's catalog. */
  catalogKind?: (family: string) => Known | undefined;
  /** Already restored, if there is something to restore. Default: a new one. */
  durable?: DurableStore;
}

/** All series: where they come in, and the pictures that reporters read. */
export interface Registry {
  /** Values that survive restarts, shown as last published. */
  readonly durable: DurableStore;
  /** Values that do not, shown as they are. Scraped pages have a store each (`createPageStore`). */
  readonly immediate: Store;
  readonly drops: Drops;
  intake(options: IntakeOptions): OpenIntake;
  /** A still picture of the series whose scope is taken, taken in one step. Release it. */
  view(takes?: GatherRequest['takes']): View;
  status(): RegistryStatus;
  /** Series that are there stay, limits that shrank notwithstanding. */
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
  const room: Room = {
    families: new Map(),
    tally: createTally(clock.nowMs),
    startMs: forwardTime(clock),
    catalogKind,
    scopeOf: createScopes(),
    limits: options.limits,
    counted: 0,
    overflow: 0,
    version: 0,
  };
  const admission = createAdmission(room);
  const pages = new Map<Store, number>();
  let settings: RegistrySettings = options;
  const deps = (): IntakeDeps => ({
    room,
    admission,
    limits: settings.limits,
    serviceKeys: new Set(settings.serviceKeys),
    drop: (reason) => own.drops.count('registry', reason),
  });

  /** The registry's own series, under the global tags of the time. */
  const openOwn = () => {
    const of = (store: Store) =>
      createIntake({ ...ownIntake, ...ownLabels, store, globalTags: settings.globalTags ?? {} }, deps());
    const intakes = { durable: of(durable), immediate: of(immediate) };
    const self = createSelfSeries(room, intakes.immediate);
    return { drops: createDrops(intakes), refresh: self.refresh, intakes };
  };
  let own = openOwn();
  const view = createViews({ room, stores: () => [durable, immediate, ...pages.keys()] });

  return {
    durable,
    immediate,
    drops: { count: (component, reason, n) => own.drops.count(component, reason, n) },
    intake(intakeOptions) {
      const { store } = intakeOptions;
      const intake = createIntake(intakeOptions, deps());
      if (store === durable || store === immediate) return intake;
      pages.set(store, (pages.get(store) ?? 0) + 1);
      return {
        ...intake,
        close() {
          intake.close();
          const left = (pages.get(store) ?? 0) - 1;
          if (left > 0) pages.set(store, left);
          else pages.delete(store);
        },
      };
    },
    view(takes = () => true) {
      own.refresh();
      return view(takes);
    },
    status: () => statusOf(room),
    configure(next) {
      const sameTags = JSON.stringify(next.globalTags ?? {}) === JSON.stringify(settings.globalTags ?? {});
      settings = next;
      room.limits = next.limits;
      if (sameTags) return;
      own.intakes.durable.close();
      own.intakes.immediate.close();
      own = openOwn();
    },
  };
}
