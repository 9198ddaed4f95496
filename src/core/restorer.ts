import { type Admission, overLimit } from './admission.ts';
import { addClaim, removeClaim } from './claims.ts';
import { serviceOf } from './durable-store.ts';
import { type Labeller, sanitizeName } from './labels.ts';
import type { Kind, RawTags, Shape } from './model.ts';
import {
  type Family,
  familyOf,
  type RegistryState,
  removeIfUnused,
  type SeriesSource,
  type SeriesSpec,
} from './registry-state.ts';
import { closeSeries, isSameShape, openSeries } from './series-opening.ts';
import type { Steps } from './slices.ts';
import type { SeriesIndex, SeriesRecord } from './value-stores.ts';
import { layoutOf } from './value-stores.ts';

/** Reopens series of the state before their sources ask for them. */
export interface Restorer {
  /** A step for each series. */
  restore(kind: Kind, name: string, shape: Shape): Steps<readonly RawTags[]>;
  /** Releases all claims, a step for each series; series without an owner return to the state. */
  close(): Steps;
}

interface RestoredFamily {
  family: Family;
  kind: Kind;
  rawName: string;
}

export interface RestorerDeps {
  state: RegistryState;
  admission: Admission;
  source: SeriesSource;
  labeller: Labeller;
  isLimited: boolean;
}

const ownLabel = (name: string) => name.replace(/^(?:exported_)+/, '');

/** Whether a series of the state has the labels that its rule gives today. */
function createFits(labeller: Labeller, shape: Shape): (retained: SeriesRecord) => boolean {
  const { globals } = labeller;
  const tags = shape.tags && new Set(shape.tags.map(sanitizeName));
  const isGiven = (name: string): boolean =>
    name === 'svc_service' ||
    (!labeller.isForbidden(name) && (!tags || tags.has(name) || tags.has(ownLabel(name))));
  /** Many series have the same few names. */
  const given = new Map<string, boolean>();
  const mayHave = (name: string): boolean => {
    let may = given.get(name);
    if (may === undefined) {
      may = isGiven(name);
      given.set(name, may);
    }
    return may;
  };
  return ({ labels, overflow }) => {
    let found = 0;
    for (const [name, value] of labels) {
      const global = globals.get(name);
      if (global?.[1] === value) found += 1;
      else if (global || !((overflow && name === 'overflow') || mayHave(name))) return false;
    }
    return found === globals.size;
  };
}

/** The series of the state as a source would ask for it. */
function specOf(
  retained: SeriesRecord,
  rawName: string,
  shape: Shape,
  { state, source, isLimited }: Pick<RestorerDeps, 'state' | 'source' | 'isLimited'>,
): SeriesSpec {
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
    isLimited,
  };
}

export function createRestorer(deps: RestorerDeps): Restorer {
  const { state, admission, source, labeller } = deps;
  const { globals } = labeller;
  const restored: RestoredFamily[] = [];

  function* reopen(
    index: SeriesIndex,
    { family, kind, rawName }: RestoredFamily,
    shape: Shape,
  ): Steps<RawTags[]> {
    const back: RawTags[] = [];
    const layout = layoutOf(kind, shape);
    const fits = createFits(labeller, shape);
    for (const retained of index.retainedOf(family.name)) {
      yield;
      if (serviceOf(retained.labels) !== source.service) continue;
      // Between two steps another kind may have taken the name, or a source may have asked for the series.
      if (family.taken || family.kind !== kind) break;
      if (index.find(family.name, retained.identity) !== retained) continue;
      const spec = specOf(retained, rawName, shape, deps);
      const isWanted = isSameShape(retained, { kind, layout }) && fits(retained);
      if (!isWanted || (!retained.overflow && overLimit(state, family, spec))) index.discard(retained);
      else {
        openSeries(state, family, spec, retained.overflow);
        const own = retained.labels.filter(([name]) => !globals.has(name) && name !== 'svc_service');
        if (!retained.overflow) back.push(Object.fromEntries(own));
      }
    }
    return back;
  }

  return {
    *restore(kind, rawName, shape) {
      const family = familyOf(state, sanitizeName(rawName), source.use);
      const one = { family, kind, rawName };
      restored.push(one);
      addClaim(family.claims, { kind, rawName, help: shape.help ?? '' });
      admission.settle(family);
      const { index } = source.store;
      return index && !family.taken && family.kind === kind ? yield* reopen(index, one, shape) : [];
    },
    *close() {
      for (const { family, kind, rawName } of restored.splice(0)) {
        for (const series of [...family.series.values()]) {
          if (series.first || series.spec.source !== source) continue;
          closeSeries(state, family, series, true);
          yield;
        }
        removeClaim(family.claims, { kind, rawName });
        admission.settle(family);
        removeIfUnused(state, family);
      }
    },
  };
}
