import type { Counter, Gauge, Histogram, Intake, Kind, Part, RawTags, Shape, Summary } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { Component, RefusalReason, RegistryDrop } from '../reasons.ts';
import { atOnce, inSlices, type Steps } from '../slices.ts';
import type { Admission } from './admission.ts';
import { createHandle, Handle, type HandleCallbacks, type HandlePair, pairOf } from './handles.ts';
import {
  createLabeller,
  foldTag,
  identityOf,
  joinTexts,
  type Labeller,
  sanitizeName,
  type TagFault,
} from './labels.ts';
import { type Accepts, createOverLimit, type OverLimitForm } from './over-limit.ts';
import type { Limits, RegistryState, SeriesSource, SeriesSpec } from './registry-state.ts';
import { createResolver, lastOf, type RawSeries, secondKey, single, type Translate } from './resolver.ts';
import { createRestorer } from './restorer.ts';
import type { Store } from './value-stores.ts';

/** Unambiguous text of a raw series. It includes the layout: a series with other buckets is another series. */
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

export interface IntakeOptions {
  /** The key of the service; `''` for series that belong to none. */
  service: string;
  component: Component;
  /** True for series that a role itself sent. */
  relayed: boolean;
  /**
   * The rank of the source: if two sources send the same series, the one with the lower rank keeps it. It follows the order of
   * `services`.
   */
  rank: number;
  store: Store;
  globalTags: RawTags;
  /**
   * Whether names and tags come from a sender: then limits apply, the agent's own names are refused, reserved tags are renamed
   * and values cleaned.
   */
  received: boolean;
  /** Whether series without `svc_service` get the service's key. */
  tagService: boolean;
  translate?: Translate;
  /** Set for the agent's own closed label sets, which are not subject to forbidden tags. */
  exempt?: boolean;
  /** Set if the totals begin and continue without the agent or without this intake, because the sender maintains them. */
  externalTotals?: boolean;
}

/** A series whose numbers arrive one by one, like the lines of a page. */
export interface PartedSeries {
  /** The number with this index: 0 for a single number, otherwise in the order of `SeriesView.at`. */
  part(index: number): Part;
  /** Whether the registry does not store the series by itself: it waits, is refused or is over a limit. */
  readonly refused: boolean;
  release(): void;
}

/** The intake's interface for the component that opened it. */
export interface OpenIntake extends Intake {
  /**
   * Opens a series whose numbers arrive one by one. `key` is an unambiguous text of kind, name and tags, in a form that the
   * caller chooses. A caller that stores such a text anyway passes it for each series or for none, so that the intake need not
   * store another.
   */
  parts(kind: Kind, name: string, tags: RawTags, shape?: Shape, key?: string): PartedSeries;
  /**
   * The overflow series in which a refused series is added up; undefined if there is none. It is one handle for all such series
   * of one family and service, to which the source adds increases. The source can then release the refused handle and store only
   * `RefusedLines`. Release the handle when the source has no such series any more.
   */
  overflowOf(refused: { release(): void }): Handle | undefined;
  /**
   * Decides about a series that would be over a limit, without opening it, for sources that receive ever new series. Counts the
   * refusal. The handle is that of `overflowOf` without a further owner; `'refused'` is for kinds that are not added up.
   * Undefined, and not counted, if only opening the series can decide, or if `accepts` returns false for the result: then request
   * the series, and `overflowOf` if it is refused.
   */
  overLimitAs(
    kind: Kind,
    name: string,
    tags: RawTags,
    shape: Shape,
    accepts: Accepts,
  ): Handle | 'refused' | undefined;
  /**
   * Like `overLimitAs`, for all series of one name and the same tags, whatever the values. `tags` has a distinct text for each
   * value. Call it only if the translation of the name does not depend on values.
   */
  overLimitForm(
    kind: Kind,
    name: string,
    tags: ReadonlyMap<string, string>,
    shape: Shape,
    mayRefuse: boolean,
  ): OverLimitForm | undefined;
  /**
   * For a durable store: opens a family and reopens its series from the state before their source asks for them; they are shown
   * from the next publish on. Series that do not fit `shape` any more are discarded. Returns the tags of the reopened series, for
   * a source that wants to own them and let them expire.
   */
  restore(kind: Kind, name: string, shape?: Shape): readonly RawTags[];
  /** Does what `restore` does, in one step for each series. */
  restoring(kind: Kind, name: string, shape?: Shape): Steps<readonly RawTags[]>;
  /**
   * Ends all series and claims of the intake. The state retains durable series for the next intake that restores or requests
   * them: close an intake before its successor restores. Later requests are refused.
   */
  close(): void;
  /** Does what `close` does in slices of at most 10 ms, with `pause` between them. */
  closeInSlices(pause: () => Promise<void>): Promise<void>;
}

/** What an intake needs from its registry. */
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

/** Opens handles, one for each raw series however often it is requested. */
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
    /** Ends the existing handles, in one step for each; later requests are refused. */
    *close(): Steps {
      isClosed = true;
      // Waiting handles are closed first; otherwise they would be admitted only to be closed.
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

  /** A vocabulary may change one kind with a single number into another: their handles have the same methods. */
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
