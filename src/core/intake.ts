import type { Admission } from './admission.ts';
import { isAgentName } from './agent-metrics.ts';
import { createHandle, Handle, type HandleCallbacks, type HandlePair, pairOf } from './handles.ts';
import {
  createLabeller,
  createNames,
  foldTag,
  identityOf,
  identityToFind,
  joinTexts,
  type Labeller,
  sanitizeName,
  type TagFault,
} from './labels.ts';
import type { Counter, Gauge, Histogram, Intake, Kind, Part, RawTags, Shape, Summary } from './model.ts';
import { type Accepts, createOverLimit, type OverLimitForm, type UnopenedSeries } from './over-limit.ts';
import type { Clock } from './ports.ts';
import type { Component, RefusalReason, RegistryDrop } from './reasons.ts';
import type { Limits, RegistryState, SeriesSource, SeriesSpec } from './registry-state.ts';
import { createRestorer } from './restorer.ts';
import { atOnce, inSlices, type Steps } from './slices.ts';
import type { Store } from './value-stores.ts';
import { type Layout, layoutOf } from './value-stores.ts';

/** What a vocabulary makes of a series: its name, tags and unit in the catalog. */
export interface Translated {
  name: string;
  tags: RawTags;
  /** Received numbers and bounds are divided by it: 1e9 takes nanoseconds to seconds. Default 1. */
  divisor?: number;
  /** Replaces the kind among those with one number (counter, gauge, untyped); ignored for others. */
  kind?: Kind;
  /** The same numbers under a second name. */
  also?: Omit<Translated, 'also'>;
}

/**
 * `undefined`: no vocabulary applies. `'left_out'`: the vocabulary leaves the series out on purpose, because others
 * that are sent contain it; that is neither a drop nor a refusal.
 */
export type Translate = (kind: Kind, name: string, tags: RawTags) => Translated | 'left_out' | undefined;

/** A raw series as a source asks for it. */
interface RawSeries {
  kind: Kind;
  name: string;
  tags: RawTags;
  shape: Shape;
  /** See `OpenIntake.parts`. */
  key?: string | undefined;
}

interface ResolveRules {
  source: SeriesSource;
  labeller: Labeller;
  scopeOf: RegistryState['scopeOf'];
  received: boolean;
  isLimited: boolean;
  translate: Translate | undefined;
}

const single: ReadonlySet<Kind | undefined> = new Set<Kind>(['counter', 'gauge', 'untyped']);

/** Unambiguous text of a raw series. The layout is part of it: with other buckets it is another series. */
function rawKeyOf({ kind, name, tags, key }: RawSeries, layout: string): string {
  if (key !== undefined) return layout === '' ? key : joinTexts([key, layout]);
  const texts = [name];
  const raws = Object.keys(tags);
  if (raws.length > 1) raws.sort();
  for (const tag of raws) texts.push(tag, tags[tag]!);
  texts.push(kind, layout);
  return joinTexts(texts);
}

function layoutText(kind: Kind, { bounds, boundTexts, quantiles, hasSum, hasCount }: Shape): string {
  if (single.has(kind)) return '';
  const texts = kind === 'histogram' ? (boundTexts ?? bounds) : quantiles;
  return JSON.stringify([texts, hasSum !== false, hasCount !== false]);
}

const isSameSent = (a: Shape, b: Shape): boolean =>
  a.bounds === b.bounds &&
  a.boundTexts === b.boundTexts &&
  a.quantiles === b.quantiles &&
  a.hasSum === b.hasSum &&
  a.hasCount === b.hasCount;

/** Remembers what was made of the last shape: most sources ask with the same arrays each time. */
function lastOf<T>(make: (kind: Kind, shape: Shape, divisor: number) => T) {
  let last: { kind: Kind; shape: Shape; divisor: number; made: T } | undefined;
  return (kind: Kind, shape: Shape, divisor = 1): T => {
    const isSame = last?.kind === kind && last.divisor === divisor && isSameSent(last.shape, shape);
    if (!isSame) last = { kind, shape: { ...shape }, divisor, made: make(kind, shape, divisor) };
    return last!.made;
  };
}

/** Resolves a raw series once: vocabulary, name, labels, identity, layout. */
function createResolver(
  rules: ResolveRules,
): (raw: RawSeries, rawKey: string, isKept?: boolean) => UnopenedSeries {
  const { source, labeller, received, isLimited } = rules;
  const familyOf = createNames(sanitizeName);
  const layoutFor: (kind: Kind, shape: Shape, divisor: number) => Layout = lastOf(layoutOf);
  const isReserved = (family: string, kind: Kind) =>
    family === '' ||
    (received && isAgentName(family, kind, source.component === 'logs' ? 'logs' : undefined));

  const specOf = (
    { kind: sent, name, shape }: RawSeries,
    rawKey: string,
    to: Omit<Translated, 'also'>,
    isKept?: boolean,
  ) => {
    const kind = to.kind && single.has(sent) && single.has(to.kind) ? to.kind : sent;
    const divisor = to.divisor ?? 1;
    const family = familyOf(to.name);
    const { labels, service, faults } = labeller.label(to.tags, kind, isKept);
    const spec: SeriesSpec = {
      source,
      family,
      kind,
      rawName: name,
      rawKey,
      labels,
      identity: isKept === false ? identityToFind(labels) : identityOf(labels),
      scope: rules.scopeOf(service, source.relayed),
      layout: layoutFor(kind, shape, divisor),
      help: shape.help ?? '',
      divisor,
      isLimited,
    };
    return { spec, faults };
  };

  return (raw, rawKey, isKept) => {
    const translated = rules.translate?.(raw.kind, raw.name, raw.tags);
    const to: Translated = typeof translated === 'object' ? translated : { name: raw.name, tags: raw.tags };
    const { spec, faults } = specOf(raw, rawKey, to, isKept);
    const reserved = isReserved(spec.family, spec.kind) ? 'reserved_name' : undefined;
    return {
      spec,
      faults,
      unfit: translated === 'left_out' ? translated : reserved,
      also: to.also && specOf(raw, secondKey(rawKey), to.also).spec,
    };
  };
}

/** Raw key of the second series that a raw one may have. */
const secondKey = (rawKey: string): string => `${rawKey} also`;

export interface IntakeOptions {
  /** Key of the service; `''` for what belongs to none. */
  service: string;
  component: Component;
  /** True for what a role itself sent. */
  relayed: boolean;
  /** If two sources send the same series, the one with the lower rank keeps it: the order of `services`. */
  rank: number;
  store: Store;
  globalTags: RawTags;
  /**
   * Names and tags come from a sender: limits apply, the agent's own names are refused, reserved tags renamed, values
   * cleaned.
   */
  received: boolean;
  /** Series that come without `svc_service` get the service's key. */
  tagService: boolean;
  translate?: Translate;
  /** The agent's own closed label sets: not subject to forbidden tags. */
  exempt?: boolean;
  /** Its totals began, and go on, without the agent or without this intake: the sender keeps them. */
  externalTotals?: boolean;
}

/** A series whose numbers come one by one, as the lines of a page do. */
export interface PartedSeries {
  /** The number at this index: 0 for single ones, else in the order of `SeriesView.at`. */
  part(index: number): Part;
  /** Whether the registry does not hold the series by itself: it waits, is refused or is over a limit. */
  readonly refused: boolean;
  release(): void;
}

/** The intake's interface for the component that opened it. */
export interface OpenIntake extends Intake {
  /**
   * `key` is an unambiguous text of kind, name and tags, in a form of the caller's. A caller that keeps such a text
   * anyway gives it for each series or for none, so that the intake need not keep another.
   */
  parts(kind: Kind, name: string, tags: RawTags, shape?: Shape, key?: string): PartedSeries;
  /**
   * The overflow series that a refused one is added up in, or undefined if there is none: a handle for all those of
   * one family and service, which the source gives increases to. With it the source can release the refused handle
   * and keep `RefusedLines` only. Release it when the source has no such series any more.
   */
  overflowOf(refused: { release(): void }): Handle | undefined;
  /**
   * Decides what becomes of a series that would be over a limit, without opening it: for sources that receive
   * ever new series. Counts the refusal. The handle is that of `overflowOf` and has no owner more; `'refused'` is
   * for kinds that are not added up. Undefined, and not counted, if only opening the series can decide, or if
   * `accepts` does not take the result: then request it, and `overflowOf` if it is refused.
   */
  overLimitAs(
    kind: Kind,
    name: string,
    tags: RawTags,
    shape: Shape,
    accepts: Accepts,
  ): Handle | 'refused' | undefined;
  /**
   * The same for all series of one name and the same tags, whatever the values. `tags` has a text of its own for
   * each value. Call it only if the translation of the name does not depend on values.
   */
  overLimitForm(
    kind: Kind,
    name: string,
    tags: ReadonlyMap<string, string>,
    shape: Shape,
    mayRefuse: boolean,
  ): OverLimitForm | undefined;
  /**
   * Durable store: claims a family and reopens its series from the state, which are shown from the next publish
   * on, before their source asks for them. Series that do not fit `shape` any more are discarded. Returns the tags
   * of the reopened ones, for a source that wants to own them and let them expire.
   */
  restore(kind: Kind, name: string, shape?: Shape): readonly RawTags[];
  /** Does what `restore` does, a step for each series. */
  restoring(kind: Kind, name: string, shape?: Shape): Steps<readonly RawTags[]>;
  /**
   * Ends all its series and claims. The state retains durable ones for the next intake that restores them or asks
   * for them: close an intake before its successor restores. Later requests are refused.
   */
  close(): void;
  /** Does what `close` does in slices of at most 10 ms, with `pause` between them. */
  closeInSlices(pause: () => Promise<void>): Promise<void>;
}

/** What an intake needs of its registry. */
export interface IntakeDeps {
  state: RegistryState;
  admission: Admission;
  limits: Limits;
  serviceKeys: ReadonlySet<string>;
  clock: Pick<Clock, 'monotonicMs'>;
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

function sourceOf(
  options: IntakeOptions,
  scopeOf: RegistryState['scopeOf'],
  labeller: Labeller,
): SeriesSource {
  const { rank, component, relayed, store, tagService, externalTotals = false } = options;
  return {
    rank,
    component,
    relayed,
    store,
    externalTotals,
    use: { series: 0, heapBytes: 0 },
    service: tagService ? options.service : '',
    overflow(service) {
      const labels = labeller.overflow(service);
      return { labels, identity: identityOf(labels), scope: scopeOf(service, relayed) };
    },
  };
}

/** Opens handles, one for each raw series however often it is asked for. */
function createOpener(options: IntakeOptions, deps: IntakeDeps, source: SeriesSource, labeller: Labeller) {
  const { state, admission, drop } = deps;
  const { received, translate } = options;
  const resolve = createResolver({
    source,
    labeller,
    scopeOf: state.scopeOf,
    received,
    isLimited: received,
    translate,
  });
  const handles = new Map<string, Handle>();
  const layoutKey = lastOf(layoutText);
  let isClosed = false;
  const callbacks: HandleCallbacks = {
    drop,
    leave(handle) {
      handles.delete(handle.spec.rawKey);
      overLimit.forget(handle);
      admission.leave(handle, false);
    },
    restarted: (series) => series.store.restarted(series, state.startMs()),
  };
  /** A series that the vocabulary leaves out is not a drop. */
  const silent: HandleCallbacks = { ...callbacks, drop() {} };
  const refused = ({ family, rawName, labels, scope }: SeriesSpec, reason: RefusalReason) =>
    state.refusals.record({ family, rawName, labels, service: scope.service, reason });
  const countFaults = (spec: SeriesSpec, faults: readonly TagFault[]) => {
    for (const fault of faults) {
      drop(fault);
      if (fault === 'tag_collision') refused(spec, fault);
    }
  };
  const overLimit = createOverLimit({
    state,
    isClosed: () => isClosed,
    onRefused: refused,
    onFaults: countFaults,
  });
  const known = (rawKey: string): Handle | undefined => handles.get(rawKey)?.share();

  return {
    /** Ends the handles that are there, a step for each; those that are asked for later are refused. */
    *close(): Steps {
      isClosed = true;
      // Waiting handles are closed first: otherwise they would be admitted only to be closed.
      for (const isWaiting of [true, false]) {
        for (const handle of handles.values()) {
          if (isWaiting && !handle.waitsIn) continue;
          handles.delete(handle.spec.rawKey);
          handle.owners = 0;
          admission.leave(handle, true);
          yield;
        }
      }
    },
    open(raw: RawSeries): Handle | HandlePair {
      const rawKey = rawKeyOf(raw, layoutKey(raw.kind, raw.shape));
      const opened = known(rawKey);
      if (opened) return pairOf(opened, known(secondKey(rawKey)));
      const { spec, unfit, faults, also } = resolve(raw, rawKey);
      const handle = createHandle(spec, unfit === 'left_out' ? silent : callbacks);
      if (isClosed) return handle;
      handles.set(rawKey, handle);
      if (unfit === 'left_out') return handle;
      countFaults(spec, faults);
      if (unfit) refused(spec, unfit);
      else admission.join(handle);
      if (unfit || !also) return handle;
      const second = createHandle(also, callbacks);
      handles.set(also.rawKey, second);
      admission.join(second);
      return pairOf(handle, second);
    },
    overLimitAs: (raw: RawSeries, accepts: Accepts) => overLimit.decide(resolve(raw, '', false), accepts),
    overLimitForm: (raw: RawSeries, placeholders: readonly string[], mayRefuse: boolean) =>
      overLimit.formOf(resolve(raw, '', false), placeholders, mayRefuse),
    overflowOf(refused: Handle | HandlePair): Handle | undefined {
      if (isClosed || !(refused instanceof Handle) || !refused.series?.overflow) return undefined;
      const { spec, series } = refused;
      const { labels, identity, scope } = series.spec;
      const { family, divisor, layout } = spec;
      const rawKey = JSON.stringify([family, identity, divisor, layout.bounds, layout.texts]);
      const opened = known(rawKey);
      if (opened) return opened;
      const handle = createHandle({ ...spec, labels, identity, scope, rawKey, isOverflow: true }, callbacks);
      handles.set(rawKey, handle);
      admission.join(handle);
      overLimit.remember(handle);
      return handle;
    },
  };
}

/** An intake of a registry; use `registry.intake`. */
export function createIntake(options: IntakeOptions, deps: IntakeDeps): OpenIntake {
  const { state, admission, clock } = deps;
  const labeller = labellerOf(options, deps);
  const source = sourceOf(options, state.scopeOf, labeller);
  const restorer = createRestorer({ state, admission, source, labeller, isLimited: options.received });
  const opener = createOpener(options, deps, source, labeller);
  if (options.received) state.sources.add(source.use);

  /** A vocabulary may turn one kind with a single number into another: their handles take the same calls. */
  const of =
    <H>(kind: Kind) =>
    (name: string, tags: RawTags, shape: Shape = {}) =>
      opener.open({ kind, name, tags, shape }) as unknown as H;

  function* closing(): Steps {
    yield* opener.close();
    yield* restorer.close();
    state.sources.delete(source.use);
  }

  return {
    counter: of<Counter>('counter'),
    gauge: of<Gauge>('gauge'),
    histogram: of<Histogram>('histogram'),
    summary: of<Summary>('summary'),
    untyped: of<Gauge>('untyped'),
    parts: (kind, name, tags, shape = {}, key) => opener.open({ kind, name, tags, shape, key }),
    overLimitAs: (kind, name, tags, shape, accepts) =>
      opener.overLimitAs({ kind, name, tags, shape }, accepts),
    overLimitForm: (kind, name, tags, shape, mayRefuse) =>
      opener.overLimitForm(
        { kind, name, tags: Object.fromEntries(tags), shape },
        [...tags.values()],
        mayRefuse,
      ),
    overflowOf: (refused) => opener.overflowOf(refused as Handle | HandlePair),
    restore: (kind, name, shape = {}) => atOnce(restorer.restore(kind, name, shape)),
    restoring: (kind, name, shape = {}) => restorer.restore(kind, name, shape),
    close: () => atOnce(closing()),
    closeInSlices: (pause) => inSlices(closing(), clock, pause),
  };
}
