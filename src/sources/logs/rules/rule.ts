import { defaultBounds } from '../../../core/histogram.ts';
import type { Counter, Gauge, Histogram, Intake, RawTags, Shape } from '../../../core/model.ts';
import type { Clock, Drops } from '../../../core/ports.ts';
import { type Fields, type Slots, textOf } from '../lines/fields.ts';
import type { LogRule } from '../options.ts';
import { createLabelCache, findIn, keepIn, sweepIn } from './label-cache.ts';
import type { LogIntake } from './log-intake.ts';
import { createMatch } from './match.ts';
import { numberOf } from './numbers.ts';

/** Counts one user rule of one service (contract, Logs). */
export interface RuleCount {
  count(fields: Fields): void;
  /** Gives back series that had no entry for the rule's `expire`; `nowMs` is monotonic. */
  sweep(nowMs: number): void;
}

interface Series {
  take(value: number): void;
  release(): void;
  usedMs: number;
}

/** The fields that a rule needs. */
export function ruleFields(rule: LogRule): readonly string[] {
  const value = rule.value === undefined ? [] : [rule.value];
  return [...Object.keys(rule.match ?? {}), ...value, ...Object.values(rule.labels ?? {})];
}

/** What the registry is told about a rule's family. */
function shapeOf({ help, type, buckets, labels = {} }: LogRule): Shape {
  const tags = Object.keys(labels);
  return type === 'histogram' ? { help, tags, bounds: buckets ?? defaultBounds } : { help, tags };
}

function openSeries(intake: Intake, rule: LogRule, tags: RawTags): Series {
  const shape = shapeOf(rule);
  const seriesOf = (handle: Counter | Gauge | Histogram, take: (value: number) => void): Series => ({
    take,
    release: () => handle.release(),
    usedMs: 0,
  });
  switch (rule.type) {
    case 'counter': {
      const counter = intake.counter(rule.name, tags, shape);
      return seriesOf(counter, (value) => counter.add(value));
    }
    case 'gauge': {
      const gauge = intake.gauge(rule.name, tags, shape);
      return seriesOf(gauge, (value) => gauge.set(value));
    }
    case 'histogram': {
      const histogram = intake.histogram(rule.name, tags, shape);
      return seriesOf(histogram, (value) => histogram.observe(value));
    }
  }
}

export interface RuleDeps {
  intake: LogIntake;
  slots: Slots;
  drops: Drops;
  clock: Clock;
}

/** Series that came back from the state, owned so that they expire unless an entry asks for them in time. */
function openRestored(rule: LogRule, { intake, clock }: RuleDeps): Series[] {
  const restored = intake.declare?.(rule.type, rule.name, shapeOf(rule)) ?? [];
  if (rule.expireMs === undefined) return [];
  return restored.map((tags) => ({ ...openSeries(intake, rule, tags), usedMs: clock.monotonicMs() }));
}

export function createRuleCount(rule: LogRule, deps: RuleDeps): RuleCount {
  const { intake, slots, drops, clock } = deps;
  let restored = openRestored(rule, deps);
  const isMatch = createMatch(rule, slots);
  const labels = Object.entries(rule.labels ?? {}).map(([label, field]) => [label, slots.of(field)] as const);
  const valueSlot = rule.value === undefined ? undefined : slots.of(rule.value);
  const known = createLabelCache<Series>(labels.map(([, slot]) => slot));
  if (rule.type === 'counter' && labels.length === 0 && rule.expireMs === undefined) {
    openSeries(intake, rule, {});
  }

  const tagsOf = (fields: Fields): RawTags => {
    const tags: Record<string, string> = {};
    for (const [label, slot] of labels) {
      const text = textOf(fields, slot);
      if (text) tags[label] = text;
    }
    return tags;
  };
  /** The number to take, or undefined for an entry that has none for the rule, which is counted. */
  const valueFor = (fields: Fields): number | undefined => {
    if (valueSlot === undefined) return 1;
    const value = numberOf(fields, valueSlot);
    if (value === undefined) drops.count('rules', 'no_value');
    else if (rule.type === 'counter' && value < 0) drops.count('rules', 'negative_value');
    else return value;
    return undefined;
  };
  return {
    count(fields) {
      if (!isMatch(fields)) return;
      const value = valueFor(fields);
      if (value === undefined) return;
      const found = findIn(known, fields);
      const series = found ?? openSeries(intake, rule, tagsOf(fields));
      series.take(value);
      if (rule.expireMs !== undefined) series.usedMs = clock.monotonicMs();
      if (found === undefined && !keepIn(known, fields, series)) series.release();
    },
    sweep(nowMs) {
      const { expireMs } = rule;
      if (expireMs === undefined) return;
      const expire = (series: Series): boolean => {
        const isGone = nowMs - series.usedMs >= expireMs;
        if (isGone) series.release();
        return isGone;
      };
      sweepIn(known, expire);
      restored = restored.filter((series) => !expire(series));
    },
  };
}
