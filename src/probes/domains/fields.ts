/** Values by path; each step of a path is its letters and digits in lower case, so that spellings meet. */
export type Fields = ReadonlyMap<string, unknown>;

const deepest = 4;
const plainKey = (key: string): string => key.toLowerCase().replace(/[^a-z0-9]/g, '');
const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Every value of an object, those of the objects in it below them; lists are values. */
export function fieldsOf(object: Record<string, unknown>): Fields {
  const fields = new Map<string, unknown>();
  const walk = (of: Record<string, unknown>, prefix: string, depth: number) => {
    for (const [key, value] of Object.entries(of)) {
      if (value === null) continue;
      const path = prefix + plainKey(key);
      fields.set(path, value);
      if (isMap(value) && depth < deepest) walk(value, `${path}.`, depth + 1);
    }
  };
  walk(object, '', 1);
  return fields;
}

/**
 * Every `Key: value` line. Of equal keys the last counts, as what precedes the service's own lines may be free
 * text (a description of several lines), but the name comes before all of that.
 */
export function fieldsOfLines(text: string): Fields {
  const fields = new Map<string, unknown>();
  for (const line of text.split('\n')) {
    const [, key, value] = /^\s*([A-Za-z][\w().-]*)\s*:(?:\s+(.*))?$/.exec(line) ?? [];
    if (key === undefined) continue;
    const path = plainKey(key);
    if (path !== 'name' || !fields.has(path)) fields.set(path, value?.trim() ?? '');
  }
  return fields;
}

/** The first of these paths whose value can be read. */
export function firstOf<T>(
  fields: Fields,
  paths: readonly string[],
  read: (value: unknown) => T | undefined,
): T | undefined {
  for (const path of paths) {
    const value = fields.has(path) ? read(fields.get(path)) : undefined;
    if (value !== undefined) return value;
  }
  return undefined;
}
