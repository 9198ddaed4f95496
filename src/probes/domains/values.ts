import { parseDuration } from '../../core/text-formats.ts';

/** Readers of single values as clients print them, JSON or text; undefined for what is not of the kind. */

/** Longer text is no name and no number. */
const longestText = 1000;

export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > longestText) return undefined;
  const trimmed = value.trim();
  return trimmed === '' ? undefined : trimmed;
}

/** Integers of 64 bits come as text in JSON made of proto. */
export function integerOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\s*-?\d+\s*$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) ? (number as number) : undefined;
}

export function booleanOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const word = textOf(value)?.toLowerCase();
  return word === 'true' ? true : word === 'false' ? false : undefined;
}

/** No group has more clusters. */
const mostNames = 100;

/** `[a b]`, `a, b`, a list of names, or a list of maps with the name; undefined when none is named. */
export function namesOf(value: unknown): string[] | undefined {
  const items =
    typeof value === 'string' && !/^n\/a\b/i.test(value.trim())
      ? value.replace(/[[\]]/g, ' ').split(/[\s,]+/)
      : Array.isArray(value)
        ? value.map(nameIn)
        : [];
  const names = items.flatMap((item) => textOf(item) ?? []).slice(0, mostNames);
  return names.length === 0 ? undefined : names;
}

function nameIn(item: unknown): unknown {
  if (typeof item !== 'object' || item === null) return item;
  const found = Object.entries(item).find(([key]) => /^(?:cluster_?)?name$/i.test(key));
  return found?.[1];
}

/** A word that ends in `enabled` is on, any other is off (`paused`, `ARCHIVAL_STATUS_DISABLED`); 1 is on, 0 off. */
export function enabledOf(value: unknown): boolean | undefined {
  const number = integerOf(value);
  if (number !== undefined) return number === 0 || number === 1 ? number === 1 : undefined;
  const word = textOf(value)?.toLowerCase();
  return word === undefined ? undefined : /(?:^|_)enabled$/.test(word);
}

const dayMs = 864e5;

/** A span in ms: a plain number is of days, as the service counts retention; text may have a unit. */
export function retentionOf(value: unknown): number | undefined {
  const days = integerOf(value);
  if (days !== undefined) return days >= 0 ? days * dayMs : undefined;
  const text = textOf(value)?.replace(/\s*days?$/i, 'd');
  if (text === undefined) return undefined;
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}

/** Times before and after are taken for something else. */
const [earliestMs, latestMs] = [Date.UTC(2001), Date.UTC(2100)];
const perMs = [1e-3, 1, 1e3, 1e6];

/** A moment in ms since the epoch: RFC 3339, or a number of s, ms, µs or ns, which its size tells apart. */
export function momentOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const candidates =
    typeof number === 'number'
      ? perMs.map((per) => Math.floor(number / per))
      : typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)
        ? [Date.parse(value)]
        : [];
  return candidates.find((ms) => ms >= earliestMs && ms < latestMs);
}
