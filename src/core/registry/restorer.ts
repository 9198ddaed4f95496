import type { Kind, Labels, RawTags, Shape } from '../model.ts';
import type { Steps } from '../slices.ts';
import { type Admission, overLimit } from './admission.ts';
import { addClaim, removeClaim } from './claims.ts';
import { serviceOf } from './durable-store.ts';
import { compareText, identityOf, type Labeller, sanitizeName, tagNamesOf } from './labels.ts';
import {
  type Family,
  familyOf,
  type RegistryState,
  removeIfUnused,
  type SeriesSource,
  type SeriesSpec,
} from './registry-state.ts';
import { closeSeries, isSameShape, openSeries } from './series-opening.ts';
import type { SeriesIndex, SeriesRecord } from './value-stores.ts';
import { layoutOf } from './value-stores.ts';

/** Reopens series of the state before their sources ask for them. */
interface Restorer {
  /** Restores the series of a family, in one step for each. */
  restore(kind: Kind, name: string, shape: Shape): Steps<readonly RawTags[]>;
  /** Releases all claims, in one step for each series; series without an owner return to the state. */
  close(): Steps;
}

interface RestoredFamily {
  family: Family;
  kind: Kind;
  rawName: string;
}

interface RestorerDeps {
  state: RegistryState;
  admission: Admission;
  source: SeriesSource;
  labeller: Labeller;
  isLimited: boolean;
}

const ownLabel = (name: string) => name.replace(/^(?:exported_)+/, '');

/** The labels that a rule gives today, for comparison with a series of the state. */
interface RuleLabels {
  /** Whether the series has exactly these labels. */
  fits(retained: SeriesRecord): boolean;
  /** Whether the rule may give a label with this name. */
  mayHave(name: string): boolean;
}

function ruleLabels(labeller: Labeller, shape: Shape): RuleLabels {
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
  const fits = ({ labels, overflow }: SeriesRecord): boolean => {
    let found = 0;
    for (const [name, value] of labels) {
      const global = globals.get(name);
      if (global?.[1] === value) found += 1;
      else if (global || !((overflow && name === 'overflow') || mayHave(name))) return false;
    }
    return found === globals.size;
  };
  return { fits, mayHave };
}

const hasLabel = (labels: Labels, [name, value]: Labels[number]): boolean =>
  labels.some((label) => label[0] === name && label[1] === value);

/**
 * The labels that all series of at least two families of a service have in the state. Among them are the global tags of the
 * configuration that wrote it, which the state does not name. Other families may lack them: series of a rule that is gone keep
 * the tags of their time.
 */
function* commonLabels(index: SeriesIndex, service: string): Steps<Labels> {
  const byFamily = new Map<string, Labels>();
  for (const { family, labels } of index.retained()) {
    yield;
    if (serviceOf(labels) !== service) continue;
    byFamily.set(family, byFamily.get(family)?.filter((label) => hasLabel(labels, label)) ?? labels);
  }
  const families = [...byFamily.values()];
  // Labels that the series of only one rule have in common may be labels of the rule.
  return families.flatMap((own) =>
    own.filter((label) => families.some((other) => other !== own && hasLabel(other, label))),
  );
}

/**
 * The labels of a series with today's global tags instead of earlier ones; undefined if other labels differ, too, for example after
 * a change of its rule.
 */
function withGlobals(
  { labels, overflow }: SeriesRecord,
  { mayHave }: RuleLabels,
  common: Labels,
  globals: Labeller['globals'],
): Labels | undefined {
  const own: Labels[number][] = [];
  for (const label of labels) {
    const [name] = label;
    const isOwn = (overflow && name === 'overflow') || (mayHave(name) && !globals.has(name));
    if (isOwn) own.push(label);
    else if (!hasLabel(common, label)) return undefined;
  }
  return [...own, ...globals.values()].sort(([a], [b]) => compareText(a, b));
}

/** The spec with which a source would request a series of the state. */
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
    ...(shape.tags && { tagNames: tagNamesOf(shape.tags) }),
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
    const tagNames = shape.tags && tagNamesOf(shape.tags);
    const rule = ruleLabels(labeller, shape);
    for (const found of index.retainedOf(family.name)) {
      yield;
      if (serviceOf(found.labels) !== source.service) continue;
      // Between two steps another kind may have got the name, or a source may have requested the series.
      if (family.taken || family.kind !== kind) break;
      if (index.find(family.name, found.identity) !== found) continue;
      const retained = rule.fits(found) ? found : relabelled(index, family, found, rule);
      const spec = specOf(retained, rawName, shape, deps);
      const isWanted = isSameShape(retained, { kind, layout, tagNames }) && rule.fits(retained);
      if (!isWanted || (!retained.overflow && overLimit(state, family, spec))) index.discard(retained);
      else {
        openSeries(state, family, spec, retained.overflow);
        const own = retained.labels.filter(([name]) => !globals.has(name) && name !== 'svc_service');
        if (!retained.overflow) back.push(Object.fromEntries(own));
      }
    }
    return back;
  }

  let common: Labels | undefined;
  /** The series with today's global tags. It is unchanged if other labels differ, too, or if a series with them exists already. */
  const relabelled = (
    index: SeriesIndex,
    family: Family,
    found: SeriesRecord,
    rule: RuleLabels,
  ): SeriesRecord => {
    const labels = withGlobals(found, rule, common ?? [], globals);
    if (!labels) return found;
    const identity = identityOf(labels);
    if (index.find(family.name, identity) || family.series.has(identity)) return found;
    return index.relabel(found, labels);
  };

  return {
    *restore(kind, rawName, shape) {
      const family = familyOf(state, sanitizeName(rawName), source.use);
      const one = { family, kind, rawName };
      restored.push(one);
      addClaim(family.claims, { kind, rawName, help: shape.help ?? '' });
      admission.decideKind(family);
      const { index } = source.store;
      // The common labels are determined before the first series leaves the state.
      if (index) common ??= yield* commonLabels(index, source.service);
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
        admission.decideKind(family);
        removeIfUnused(state, family);
      }
    },
  };
}
