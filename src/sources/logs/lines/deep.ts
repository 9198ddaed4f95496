/**
 * A line nested too deep for the reader, as a flat line with the wanted fields alone (objects and arrays as
 * null); undefined if `JSON.parse` throws. The line is known to begin with a brace.
 */
export function flattened(line: string, wanted: Iterable<string>): Buffer | undefined {
  let parsed: Record<string, unknown>;
  try {
    parsed = JSON.parse(line);
  } catch {
    return undefined;
  }
  const members: string[] = [];
  for (const name of wanted) {
    if (Object.hasOwn(parsed, name)) members.push(`${JSON.stringify(name)}:${literalOf(parsed[name])}`);
  }
  return Buffer.from(`{${members.join(',')}}\n`);
}

function literalOf(value: unknown): string {
  if (typeof value === 'object') return 'null';
  if (value === Number.POSITIVE_INFINITY) return '1e999';
  if (value === Number.NEGATIVE_INFINITY) return '-1e999';
  return JSON.stringify(value);
}
