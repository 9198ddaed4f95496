import type { Counter, Gauge, Histogram, Intake, RawTags, Shape } from '../../../core/model.ts';
import type { Clock, Drops } from '../../../core/ports.ts';
import { defaultBounds } from '../../../core/registry/value-stores.ts';
import type { Steps } from '../../../core/slices.ts';
import {
  escapedText,
  type Fields,
  numberOf,
  numeral,
  plainText,
  type Slots,
  textOf,
  truth,
} from '../lines/fields.ts';
import type { LogRule } from '../options.ts';
import { createLogSeries, type LogIntake } from './log-series.ts';

/** The metric of one log rule of one service (docs/how-to/collect.md, Logs). */
export interface LogRuleMetric {
  count(fields: Fields): void;
  /** Releases series that had no entry for the `expire` time of the rule; `nowMs` is monotonic. */
  sweep(nowMs: number): void;
}

export interface LogRuleDeps {
  intake: LogIntake;
  slots: Slots;
  drops: Drops;
  clock: Clock;
}

interface RuleSeries {
  readonly handle: Counter | Gauge | Histogram;
  record(value: number): void;
  /** Monotonic time of the last entry. */
  usedMs: number;
}

/** The fields of an entry that a rule reads. */
export function ruleFields(rule: LogRule): readonly string[] {
  const value = rule.value === undefined ? [] : [rule.value];
  return [...Object.keys(rule.match ?? {}), ...value, ...Object.values(rule.labels ?? {})];
}

function shapeOf({ help, type, buckets, labels = {} }: LogRule): Shape {
  const tags = Object.keys(labels);
  return type === 'histogram' ? { help, tags, bounds: buckets ?? defaultBounds } : { help, tags };
}

type AnyHandle = Counter & Gauge & Histogram;

function seriesOf(type: LogRule['type'], handle: AnyHandle): RuleSeries {
  const records = {
    counter: (value: number) => handle.add(value),
    gauge: (value: number) => handle.set(value),
    histogram: (value: number) => handle.observe(value),
  };
  return { handle, record: records[type], usedMs: 0 };
}

function openSeries(intake: Intake, rule: LogRule, tags: RawTags): RuleSeries {
  const handle = intake[rule.type](rule.name, tags, shapeOf(rule));
  return seriesOf(rule.type, handle as AnyHandle);
}

/** Owns the series that were restored from the state, so that they expire unless an entry uses them in time. */
function* openRestored(rule: LogRule, { intake, clock }: LogRuleDeps): Steps<RuleSeries[]> {
  const restored = intake.restoring ? yield* intake.restoring(rule.type, rule.name, shapeOf(rule)) : [];
  if (rule.expireMs === undefined) return [];
  const opened: RuleSeries[] = [];
  for (const tags of restored) {
    opened.push({ ...openSeries(intake, rule, tags), usedMs: clock.monotonicMs() });
    yield;
  }
  return opened;
}

/** Restores the rule's series, in one step for each series. */
export function* openLogRuleMetric(rule: LogRule, deps: LogRuleDeps): Steps<LogRuleMetric> {
  const { intake, slots, drops, clock } = deps;
  let restored = yield* openRestored(rule, deps);
  const isMatch = createMatch(rule, slots);
  const labels = Object.entries(rule.labels ?? {}).map(([label, field]) => [label, slots.of(field)] as const);
  const valueSlot = rule.value === undefined ? undefined : slots.of(rule.value);
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
  const seriesByValues = createLogSeries<RuleSeries>({
    slots: labels.map(([, slot]) => slot),
    intake,
    open: (fields) => openSeries(intake, rule, tagsOf(fields)),
    withHandle: (_, handle) => seriesOf(rule.type, handle as unknown as AnyHandle),
  });
  /** The number to record. Undefined for an entry without a number, which is counted as a drop. */
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
      const series = seriesByValues.find(fields);
      series.record(value);
      if (rule.expireMs !== undefined) series.usedMs = clock.monotonicMs();
    },
    sweep(nowMs) {
      const { expireMs } = rule;
      if (expireMs === undefined) return;
      const isGone = ({ usedMs }: RuleSeries): boolean => nowMs - usedMs >= expireMs;
      seriesByValues.sweep(isGone);
      for (const series of restored) if (isGone(series)) series.handle.release();
      restored = restored.filter((series) => !isGone(series));
    },
  };
}

/** Whether a rule counts the entry. */
type Match = (fields: Fields) => boolean;

interface Condition {
  slot: number;
  texts: readonly string[];
  /** The allowed texts as bytes. */
  allowed: readonly Buffer[];
}

function isOneOf(condition: Condition, fields: Fields): boolean {
  const { slot, allowed, texts } = condition;
  const kind = fields.kind[slot]!;
  if (kind === plainText || kind === truth) {
    const from = fields.from[slot]!;
    const to = fields.to[slot]!;
    for (const value of allowed) {
      if (value.length === to - from && fields.bytes.compare(value, 0, value.length, from, to) === 0)
        return true;
    }
    return false;
  }
  return (kind === numeral || kind === escapedText) && texts.includes(textOf(fields, slot) as string);
}

/**
 * Compiles the rule's `match`: every field must have one of its values. Values are compared as label texts, so that `500` in the
 * configuration matches both the number and the string.
 */
function createMatch(rule: LogRule, slots: Slots): Match {
  const conditions = Object.entries(rule.match ?? {}).map(([field, wanted]): Condition => {
    const texts = (Array.isArray(wanted) ? wanted : [wanted]).map(String);
    return { slot: slots.of(field), texts, allowed: texts.map((text) => Buffer.from(text)) };
  });
  return (fields) => {
    for (const condition of conditions) if (!isOneOf(condition, fields)) return false;
    return true;
  };
}
