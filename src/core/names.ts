const clean = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * A metric or tag name as it is exported: one `_` for each code point outside `[A-Za-z0-9_]`, and one in
 * front of a leading digit (spec, Rules for metric names). Runs are not collapsed. Pure, so callers may memo it.
 * Distinct names can meet; who wins is decided where they meet.
 */
export function sanitizeName(raw: string): string {
  if (clean.test(raw)) return raw;
  const name = raw.replace(/[^A-Za-z0-9_]/gu, '_');
  return /^[0-9]/.test(name) ? `_${name}` : name;
}

/** The text with each lone surrogate as U+FFFD, so that it has a UTF-8 form. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** Order of UTF-16 code units: the same on every machine, whatever its locale. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
