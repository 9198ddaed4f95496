import { layoutOf } from './histogram.ts';
import { identityOf, type Labeller, type TagFault } from './labels.ts';
import type { Kind, RawTags, Shape } from './model.ts';
import { sanitizeName } from './names.ts';
import type { RefusalReason } from './reasons.ts';
import type { Room } from './room.ts';
import type { Source, Want } from './series.ts';

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
export interface Asked {
  kind: Kind;
  name: string;
  tags: RawTags;
  shape: Shape;
}

export interface Answer {
  readonly want: Want;
  /** Why there can be no such series, whoever else is there. */
  readonly unfit: RefusalReason | undefined;
  readonly faults: readonly TagFault[];
}

export interface AskingRules {
  source: Source;
  labeller: Labeller;
  scopeOf: Room['scopeOf'];
  received: boolean;
  exempt: boolean;
  translate: Translate | undefined;
}

/** Names of the agent's own families, which nobody else may send. */
const reservedPrefix = 'svc_agent_';
const single: ReadonlySet<Kind | undefined> = new Set<Kind>(['counter', 'gauge', 'untyped']);

/** Who asks, without ambiguity; the layout is part of it, since a series whose buckets changed is another one. */
export function rawKeyOf({ kind, name, tags, shape }: Asked): string {
  const pairs = Object.keys(tags)
    .sort()
    .map((tag) => [tag, tags[tag]]);
  const { bounds, boundTexts, quantiles } = shape;
  const layout = { histogram: boundTexts ?? bounds, summary: quantiles, counter: 0, gauge: 0, untyped: 0 };
  return JSON.stringify([name, pairs, kind, layout[kind]]);
}

/** Settles once everything about the place of a series: vocabulary, name, labels, layout. */
export function createAsking(rules: AskingRules): (asked: Asked, rawKey: string) => Answer {
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
    const want: Want = {
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
    return { want, unfit: unfitness(family, translated), faults };
  };
}
