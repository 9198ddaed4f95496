import { escapedText, type Fields, numeral, plainText, type Slots, textOf, truth } from '../lines/fields.ts';
import type { LogRule } from '../options.ts';

/** Whether an entry is one that a rule is about. */
export type Match = (fields: Fields) => boolean;

interface Condition {
  slot: number;
  texts: readonly string[];
  /** The same texts as bytes. */
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
 * All fields must have one of their values. Values are compared as labels would show them, so that `500` in
 * the configuration matches both the number and the string.
 */
export function createMatch(rule: LogRule, slots: Slots): Match {
  const conditions = Object.entries(rule.match ?? {}).map(([field, wanted]): Condition => {
    const texts = (Array.isArray(wanted) ? wanted : [wanted]).map(String);
    return { slot: slots.of(field), texts, allowed: texts.map((text) => Buffer.from(text)) };
  });
  return (fields) => {
    for (const condition of conditions) if (!isOneOf(condition, fields)) return false;
    return true;
  };
}
