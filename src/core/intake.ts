import { type Admission, closeSeries, isSameShape, openSeries, overLimit } from './admission.ts';
import { serviceOf } from './durable-store.ts';
import { createHandle, type Handle, type HandleCallbacks, type PartHandle } from './handles.ts';
import { layoutOf } from './histogram.ts';
import { createLabeller, foldTag, identityOf, type Labeller, sanitizeName, type TagFault } from './labels.ts';
import type { Counter, Gauge, Histogram, Intake, Kind, RawTags, Shape, Summary } from './model.ts';
import type { Component, RefusalReason, RegistryDrop } from './reasons.ts';
import {
  claim,
  type Family,
  familyOf,
  type Limits,
  type RegistryState,
  type SeriesSpec,
  type Source,
  tidy,
  unclaim,
} from './registry-state.ts';
import type { SeriesIndex, SeriesRecord, Store } from './stores.ts';

/** What a vocabulary makes of a series: its place in the catalog. */
export interface Translated {
  name: string;
  tags: RawTags;
  /** Received numbers and bounds are divided by it: 1e9 takes nanoseconds to seconds. Default 1. */
  divisor?: number;
  /** Another kind of those with one number (counter, gauge, untyped); ignored for others. */
  kind?: Kind;
}

/** `undefined`: not one of the vocabulary's; `'double'`: a sum over others, left out and counted. */
export type Translate = (kind: Kind, name: string, tags: RawTags) => Translated | 'double' | undefined;

/** A raw series as a source asks for it. */
export interface RawSeries {
  kind: Kind;
  name: string;
  tags: RawTags;
  shape: Shape;
}

export interface ResolvedSeries {
  readonly spec: SeriesSpec;
  /** Why there can be no such series, whoever else is there. */
  readonly unfit: RefusalReason | undefined;
  readonly faults: readonly TagFault[];
}

export interface ResolveRules {
  source: Source;
  labeller: Labeller;
  scopeOf: RegistryState['scopeOf'];
  received: boolean;
  exempt: boolean;
  translate: Translate | undefined;
}

/** Names of the agent's own families, which nobody else may send. */
const reservedPrefix = 'svc_agent_';
const single: ReadonlySet<Kind | undefined> = new Set<Kind>(['counter', 'gauge', 'untyped']);

/** Who asks, without ambiguity; the layout is part of it, since a series whose buckets changed is another one. */
export function rawKeyOf({ kind, name, tags, shape }: RawSeries): string {
  const pairs = Object.keys(tags)
    .sort()
    .map((tag) => [tag, tags[tag]]);
  const { bounds, boundTexts, quantiles } = shape;
  const layout = { histogram: boundTexts ?? bounds, summary: quantiles, counter: 0, gauge: 0, untyped: 0 };
  return JSON.stringify([name, pairs, kind, layout[kind]]);
}

/** Settles once everything about the place of a series: vocabulary, name, labels, layout. */
export function createResolver(rules: ResolveRules): (raw: RawSeries, rawKey: string) => ResolvedSeries {
  const { source, labeller, received, exempt } = rules;
  const unfitness = (family: string, translated: ReturnType<Translate>): RefusalReason | undefined => {
    if (translated === 'double') return 'double';
    return family === '' || (received && family.startsWith(reservedPrefix)) ? 'reserved_name' : undefined;
  };

  return ({ kind: told, name, tags, shape }, rawKey) => {
    const translated = rules.translate?.(told, name, tags);
    const to: Translated = typeof translated === 'object' ? translated : { name, tags };
    const kind = to.kind && single.has(told) && single.has(to.kind) ? to.kind : told;
    const divisor = to.divisor ?? 1;
    const family = sanitizeName(to.name);
    const { labels, service, faults } = labeller.label(to.tags, kind);
    const spec: SeriesSpec = {
      source,
      family,
      kind,
      rawName: name,
      rawKey,
      labels,
      identity: identityOf(labels),
      scope: rules.scopeOf(service, source.relayed),
      layout: layoutOf(kind, shape, divisor),
      help: shape.help ?? '',
      divisor,
      exempt,
    };
    return { spec, unfit: unfitness(family, translated), faults };
  };
}

/** How series of the state come back before anybody asks for them. */
export interface Restorer {
  restore(kind: Kind, name: string, shape: Shape): readonly RawTags[];
  /** Gives all claims back; series that nobody owns go back to the state. */
  close(): void;
}

interface RestoredFamily {
  family: Family;
  kind: Kind;
  rawName: string;
}

export interface RestorerDeps {
  state: RegistryState;
  admission: Admission;
  source: Source;
  labeller: Labeller;
  exempt: boolean;
}

const ownLabel = (name: string) => name.replace(/^(?:exported_)+/, '');

export function createRestorer({ state, admission, source, labeller, exempt }: RestorerDeps): Restorer {
  const { globals } = labeller;
  const restored: RestoredFamily[] = [];

  /** Judges whether what series of the state carry is what their rule gives today. */
  const createFits = (shape: Shape) => {
    const tags = shape.tags && new Set(shape.tags.map(sanitizeName));
    const isGiven = (name: string): boolean =>
      name === 'svc_service' ||
      (!labeller.isForbidden(name) && (!tags || tags.has(name) || tags.has(ownLabel(name))));
    /** Few names stand on many series. */
    const given = new Map<string, boolean>();
    const mayCarry = (name: string): boolean => {
      let may = given.get(name);
      if (may === undefined) {
        may = isGiven(name);
        given.set(name, may);
      }
      return may;
    };
    return ({ labels, overflow }: SeriesRecord): boolean => {
      let found = 0;
      for (const [name, value] of labels) {
        const global = globals.get(name);
        if (global?.[1] === value) found += 1;
        else if (global || !((overflow && name === 'overflow') || mayCarry(name))) return false;
      }
      return found === globals.size;
    };
  };

  const specOf = (retained: SeriesRecord, rawName: string, shape: Shape): SeriesSpec => {
    const { family, kind, labels, identity, texts } = retained;
    const bounds = kind === 'histogram' ? { bounds: texts.map(Number), boundTexts: texts } : {};
    return {
      source,
      family,
      kind,
      rawName,
      rawKey: '',
      labels,
      identity,
      scope: state.scopeOf(serviceOf(labels), source.relayed),
      layout: layoutOf(kind, { ...bounds, quantiles: texts }),
      help: shape.help ?? '',
      divisor: 1,
      exempt,
    };
  };

  const bringBack = (
    index: SeriesIndex,
    { family, kind, rawName }: RestoredFamily,
    shape: Shape,
  ): RawTags[] => {
    const back: RawTags[] = [];
    const layout = layoutOf(kind, shape);
    const fits = createFits(shape);
    for (const retained of index.retainedOf(family.name)) {
      if (serviceOf(retained.labels) !== source.service) continue;
      const spec = specOf(retained, rawName, shape);
      const wanted = isSameShape(retained, { kind, layout }) && fits(retained);
      if (!wanted || (!retained.overflow && overLimit(state, family, spec))) index.discard(retained);
      else {
        openSeries(state, family, spec, retained.overflow);
        const own = retained.labels.filter(([name]) => !globals.has(name) && name !== 'svc_service');
        if (!retained.overflow) back.push(Object.fromEntries(own));
      }
    }
    return back;
  };

  return {
    restore(kind, rawName, shape) {
      const family = familyOf(state, sanitizeName(rawName));
      const one = { family, kind, rawName };
      restored.push(one);
      claim(family, { kind, rawName, help: shape.help ?? '' });
      admission.judge(family);
      const { index } = source.store;
      return index && !family.taken && family.kind === kind ? bringBack(index, one, shape) : [];
    },
    close() {
      for (const { family, kind, rawName } of restored.splice(0)) {
        for (const series of [...family.series.values()]) {
          if (!series.first && series.spec.source === source) closeSeries(state, family, series, true);
        }
        unclaim(family, { kind, rawName });
        admission.judge(family);
        tidy(state, family);
      }
    },
  };
}

export interface IntakeOptions {
  /** Key of the service; `''` for what belongs to none. */
  service: string;
  component: Component;
  /** True for what a role itself sent. */
  relayed: boolean;
  /** Of two sources that send the same series the lower rank keeps it: the order of `services`. */
  rank: number;
  store: Store;
  globalTags: RawTags;
  /** Tags were made by others: reserved names are renamed and values cleaned. */
  received: boolean;
  /** Series that come without `svc_service` get the service's key. */
  tagService: boolean;
  translate?: Translate;
  /** The agent's own closed label sets: neither limited nor subject to forbidden tags. */
  exempt?: boolean;
  /** Its totals began, and go on, without the agent, or without this intake: somebody else keeps them. */
  externalTotals?: boolean;
}

/** A series whose numbers come one by one, as the lines of a page do. */
export interface Parts {
  /** The number at this place: 0 for single ones, else in the order of `SeriesView.at`. */
  part(index: number): PartHandle;
  release(): void;
}

/** An intake as the one who opened it has it. */
export interface OpenIntake extends Intake {
  parts(kind: Kind, name: string, tags: RawTags, shape?: Shape): Parts;
  /**
   * Durable store: claims a family and brings back its series from the state, in sight from the next publish
   * on even before their source asks for them; those that no longer fit `shape` are given up. Returns the tags
   * of those that came back, for a source that wants to own them and let them expire.
   */
  restore(kind: Kind, name: string, shape?: Shape): readonly RawTags[];
  /**
   * Ends all its series and claims; durable ones stay in the state for who declares them or asks next:
   * close an intake before its successor declares. What is asked for afterwards is refused.
   */
  close(): void;
}

/** What an intake needs of its registry. */
export interface IntakeDeps {
  state: RegistryState;
  admission: Admission;
  limits: Limits;
  serviceKeys: ReadonlySet<string>;
  drop(reason: RegistryDrop): void;
}

function labellerOf(options: IntakeOptions, { limits, serviceKeys }: IntakeDeps): Labeller {
  return createLabeller({
    globalTags: options.globalTags,
    received: options.received,
    exempt: options.exempt ?? false,
    service: options.tagService ? options.service : '',
    serviceKeys,
    forbidden: new Set(limits.forbiddenTags.map(foldTag)),
    allowValues: new Set(limits.allowValues.map(sanitizeName)),
  });
}

function sourceOf(options: IntakeOptions, scopeOf: RegistryState['scopeOf'], labeller: Labeller): Source {
  const { rank, component, relayed, store, tagService, externalTotals = false } = options;
  return {
    rank,
    component,
    relayed,
    store,
    externalTotals,
    service: tagService ? options.service : '',
    overflow(service) {
      const labels = labeller.overflow(service);
      return { labels, identity: identityOf(labels), scope: scopeOf(service, relayed) };
    },
  };
}

/** Opens handles, one for each raw series however often it is asked for. */
function createOpener(options: IntakeOptions, deps: IntakeDeps, source: Source, labeller: Labeller) {
  const { state, admission, drop } = deps;
  const { received, exempt = false, translate } = options;
  const resolve = createResolver({ source, labeller, scopeOf: state.scopeOf, received, exempt, translate });
  const handles = new Map<string, Handle>();
  let isClosed = false;
  const callbacks: HandleCallbacks = {
    drop,
    leave(handle) {
      handles.delete(handle.spec.rawKey);
      admission.leave(handle, false);
    },
    restarted: (series) => series.store.restarted(series, state.startMs()),
  };
  const refused = ({ family, rawName, labels, scope }: SeriesSpec, reason: RefusalReason) =>
    state.refusals.record({ family, rawName, labels, service: scope.service, reason });
  const countFaults = (spec: SeriesSpec, faults: readonly TagFault[]) => {
    for (const fault of faults) {
      drop(fault);
      if (fault === 'tag_collision') refused(spec, fault);
    }
  };

  return {
    /** Ends the handles that are there; those that are asked for later are refused. */
    close() {
      isClosed = true;
      // Those that wait go first: they would be let in only to be closed.
      for (const waits of [true, false]) {
        for (const handle of handles.values()) {
          if (waits && !handle.waitsIn) continue;
          handles.delete(handle.spec.rawKey);
          handle.owners = 0;
          admission.leave(handle, true);
        }
      }
    },
    open(raw: RawSeries): Handle {
      const rawKey = rawKeyOf(raw);
      const known = handles.get(rawKey);
      if (known) {
        known.owners += 1;
        return known;
      }
      const { spec, unfit, faults } = resolve(raw, rawKey);
      const handle = createHandle(spec, callbacks);
      if (isClosed) return handle;
      handles.set(rawKey, handle);
      countFaults(spec, faults);
      if (unfit) refused(spec, unfit);
      else admission.join(handle);
      return handle;
    },
  };
}

/** An intake of a registry; use `registry.intake`. */
export function createIntake(options: IntakeOptions, deps: IntakeDeps): OpenIntake {
  const { state, admission } = deps;
  const labeller = labellerOf(options, deps);
  const source = sourceOf(options, state.scopeOf, labeller);
  const restorer = createRestorer({ state, admission, source, labeller, exempt: options.exempt ?? false });
  const opener = createOpener(options, deps, source, labeller);

  /** A vocabulary may turn one kind with a single number into another: their handles take the same calls. */
  const of =
    <H>(kind: Kind) =>
    (name: string, tags: RawTags, shape: Shape = {}) =>
      opener.open({ kind, name, tags, shape }) as Handle & H;

  return {
    counter: of<Counter>('counter'),
    gauge: of<Gauge>('gauge'),
    histogram: of<Histogram>('histogram'),
    summary: of<Summary>('summary'),
    untyped: of<Gauge>('untyped'),
    parts: (kind, name, tags, shape) => of<Parts>(kind)(name, tags, shape),
    restore: (kind, name, shape = {}) => restorer.restore(kind, name, shape),
    close() {
      opener.close();
      restorer.close();
    },
  };
}
