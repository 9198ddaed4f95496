import { storeKindRows } from './kinds.ts';
import { type StoreOptions, storeRoles, usualStoreUser } from './options.ts';

/** For each store the exact statements that give the agent's user what the checks need and no more. */
export async function printGrants(stores: readonly StoreOptions[]): Promise<string> {
  const parts = await Promise.all(stores.map(grantsOf));
  return parts.map((lines) => lines.map((line) => `${line}\n`).join('')).join('\n');
}

async function grantsOf(store: StoreOptions): Promise<string[]> {
  const { name, kind, address, user = usualStoreUser, credentials } = store;
  const { comment, client, grants } = storeKindRows[kind];
  const head = `${comment} Store ${oneLine(name)}: ${kind} at ${address}`;
  if (credentials === 'service')
    return [`${head}. The agent takes the service’s own user ${oneLine(user)}: nothing to do.`];
  const named = storeRoles.flatMap((role) => store.databases[role] ?? []);
  const statements = (await grants())(user, [...new Set(named)]);
  return [`${head}; for ${client}. Put a password in place of <password>.`, ...statements];
}

/** A comment ends with its line. */
const oneLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ');
