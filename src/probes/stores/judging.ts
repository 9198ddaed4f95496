import { isAtLeast } from './schema-version.ts';
import type { StoreLook, StoreVerdict } from './store.ts';

const fullShare = 0.9;

/** Whether the schema is what it must be; undefined where nothing is expected. */
export function schemaVerdict(
  { schemaVersion, schemaUnknown }: StoreLook,
  expected: string | undefined,
): StoreVerdict | undefined {
  if (expected === undefined) return undefined;
  const atLeast = schemaVersion === undefined ? undefined : isAtLeast(schemaVersion, expected);
  const found = schemaVersion === undefined ? (schemaUnknown ?? 'no version') : `version ${schemaVersion}`;
  return { check: 'schema', holds: atLeast ?? 'unknown', found: `${found}, expected ${expected} or newer` };
}

/** Whether there is room for more connections; undefined where the store does not say how many there are. */
export function connectionsVerdict({ connections, connectionsMax }: StoreLook): StoreVerdict | undefined {
  if (connections === undefined || !connectionsMax) return undefined;
  const open = Object.values(connections).reduce((sum, count) => sum + count, 0);
  return {
    check: 'connections',
    holds: open < fullShare * connectionsMax,
    found: `${open} of ${connectionsMax} connections are open`,
  };
}
