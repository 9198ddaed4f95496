import { formatAddress } from '../../core/address.ts';
import { errorText } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { runCommand } from '../command.ts';
import type { DatabaseReport, StoreTarget } from './store-report.ts';

const shape = /^\d+(?:\.\d+)*$/;

/**
 * Whether a version is at least as new as another, number by number: 0.10 is newer than 0.9, and 1.0 is 1.
 * Undefined where one of them is no version.
 */
export function isAtLeast(found: string, expected: string): boolean | undefined {
  if (!shape.test(found) || !shape.test(expected)) return undefined;
  const [one, other] = [found, expected].map((version) => version.split('.').map(BigInt)) as [
    bigint[],
    bigint[],
  ];
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const [ours, theirs] = [one[index] ?? 0n, other[index] ?? 0n];
    if (ours !== theirs) return ours > theirs;
  }
  return true;
}

/** Two or three numbers with dots between them that are not part of an address, a date or a time. */
const version = /(?<![\w.:/-])v?(\d+\.\d+(?:\.\d+)?)(?![\w:/-]|\.\d)/;

/** The first version in what a schema tool prints; a number without dots counts only if nothing else is printed. */
export function versionIn(output: string): string | undefined {
  const alone = /^\s*v?(\d+)\s*$/.exec(output)?.[1];
  return alone ?? version.exec(output)?.[1];
}

const mostOutputBytes = 65_536;

/** Runs a program that prints the schema's version. What it does not tell is unknown: the store itself may be fine. */
export async function versionByCommand(
  command: readonly string[],
  { address, timeoutMs }: StoreTarget,
  database: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Pick<DatabaseReport, 'schemaVersion' | 'schemaUnknown'>> {
  const values: Readonly<Partial<Record<string, string>>> = {
    endpoint: formatAddress(address),
    keyspace: database,
    database,
  };
  const filled = command.map((part) => part.replace(/\{([a-z]+)\}/g, (whole, name) => values[name] ?? whole));
  const late = new AbortController();
  // The store's own answers must not be lost with a program that hangs.
  const cancel = clock.after(timeoutMs / 2, () => late.abort());
  try {
    const limits = { signal: AbortSignal.any([signal, late.signal]), maxBytes: mostOutputBytes };
    const found = versionIn((await runCommand(filled, limits)).stdout);
    return found === undefined
      ? { schemaUnknown: `${command[0]} printed no version` }
      : { schemaVersion: found };
  } catch (thrown) {
    return { schemaUnknown: errorText(thrown) };
  } finally {
    cancel();
  }
}
