import { formatAddress } from '../../core/address.ts';
import { errorText } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { runCommand } from '../command.ts';
import { versionIn } from './schema-version.ts';
import type { StoreLook, StoreTarget } from './store.ts';

const mostOutputBytes = 65_536;

/** Asks a program for the schema's version. What it does not tell is unknown: the store itself may be well. */
export async function versionByCommand(
  command: readonly string[],
  { address, database = '', timeoutMs }: StoreTarget & { timeoutMs: number },
  clock: Clock,
  signal: AbortSignal,
): Promise<Pick<StoreLook, 'schemaVersion' | 'schemaUnknown'>> {
  const values: Readonly<Partial<Record<string, string>>> = {
    endpoint: formatAddress(address),
    keyspace: database,
    database,
  };
  const filled = command.map((part) => part.replace(/\{([a-z]+)\}/g, (whole, name) => values[name] ?? whole));
  const late = new AbortController();
  // What the store itself said is not to be lost with a program that hangs.
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
