import { isAgentName } from '../agent-metrics.ts';
import type { Kind, RawTags, Shape } from '../model.ts';
import {
  createNames,
  identityOf,
  identityToFind,
  type Labeller,
  sanitizeName,
  tagNamesOf,
} from './labels.ts';
import type { UnopenedSeries } from './over-limit.ts';
import type { RegistryState, SeriesSource, SeriesSpec } from './registry-state.ts';
import { type Layout, layoutOf } from './value-stores.ts';

/** The translation of a series by a vocabulary: its name, tags and unit in the catalog. */
export interface Translated {
  name: string;
  tags: RawTags;
  /** Received numbers and bounds are divided by this: 1e9 converts nanoseconds to seconds. Default 1. */
  divisor?: number;
  /** Replaces the kind if the series has one number (counter, gauge, untyped); ignored for other kinds. */
  kind?: Kind;
  /** A second name for the same numbers. */
  also?: Omit<Translated, 'also'>;
}

/**
 * Translates a series. `undefined`: no vocabulary applies. `'left_out'`: the vocabulary leaves the series out on purpose, because
 * other series contain it; this is neither a drop nor a refusal.
 */
export type Translate = (kind: Kind, name: string, tags: RawTags) => Translated | 'left_out' | undefined;

/** A raw series as a source requests it. */
export interface RawSeries {
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

export const single: ReadonlySet<Kind | undefined> = new Set<Kind>(['counter', 'gauge', 'untyped']);

const isSameSent = (a: Shape, b: Shape): boolean =>
  a.bounds === b.bounds &&
  a.boundTexts === b.boundTexts &&
  a.quantiles === b.quantiles &&
  a.hasSum === b.hasSum &&
  a.hasCount === b.hasCount;

/** Caches the layout of the last shape: most sources pass the same arrays each time. */
export function lastOf<T>(make: (kind: Kind, shape: Shape, divisor: number) => T) {
  let last: { kind: Kind; shape: Shape; divisor: number; made: T } | undefined;
  return (kind: Kind, shape: Shape, divisor = 1): T => {
    const isSame = last?.kind === kind && last.divisor === divisor && isSameSent(last.shape, shape);
    if (!isSame) last = { kind, shape: { ...shape }, divisor, made: make(kind, shape, divisor) };
    return last!.made;
  };
}

/** Resolves a raw series once: vocabulary, name, labels, identity, layout. */
export function createResolver(
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
      ...(shape.tags && { tagNames: tagNamesOf(shape.tags) }),
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

/** The raw key of the second series that a raw series may have. */
export const secondKey = (rawKey: string): string => `${rawKey} also`;
