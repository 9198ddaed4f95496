import { probeOnce } from '../../probes/runner/runner.ts';
import { type StoreOptions, usualStoreUser } from '../../probes/stores/store-options.ts';
import { planStores } from '../../probes/stores/stores.ts';
import type { ServiceStore } from '../config/service-files/discover.ts';
import { keepAwake, plain } from './io.ts';
import { probeDeps } from './live-pages.ts';

/** The environment variable with the password of a store, as a starter configuration names it. */
export const starterPassword = 'SVC_AGENT_DB_PASSWORD';

/** A store of the service's files, as `init` describes it. */
export interface StarterStore {
  name: string;
  /** The kind, address and databases of the store, for a comment. */
  about: string;
  /** The present version of each schema in the store, by database. */
  schema: Readonly<Record<string, string>>;
  /** Why the version of a schema is not known; undefined if all are known. */
  unknown?: string;
}

/**
 * Asks each store once for the versions of its schemas, as the agent's own user, if the environment has the password
 * that the starter names. The service's own credentials are never used. Never rejects.
 */
export function starterStores(
  stores: readonly ServiceStore[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<StarterStore[]> {
  return Promise.all(
    stores.map(async (store) => {
      const names = Object.values(store.databases).map((database) => database.name);
      const about = `${store.kind} at ${store.address}, ${names.join(' and ')}`;
      return { name: store.name, about, ...(await schemasOf(store, env)) };
    }),
  );
}

async function schemasOf(
  { name, kind, address, databases }: ServiceStore,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Pick<StarterStore, 'schema' | 'unknown'>> {
  if (!env[starterPassword]) return { schema: {}, unknown: `${starterPassword} is not set` };
  const store: StoreOptions = {
    ...{ name, kind, address, user: usualStoreUser, password: { env: starterPassword }, credentials: 'own' },
    databases: { persistence: databases.persistence?.name, visibility: databases.visibility?.name },
    ...{ schema: {}, accept: {}, intervalMs: 30_000, timeoutMs: 5000 },
  };
  const sleep = keepAwake();
  const probed = await probeOnce(planStores({ stores: [store] }), probeDeps(env)).finally(sleep);
  const found = probed.flatMap(({ row, result }): [string, string][] => {
    const version = result.details?.schema;
    return typeof version === 'string' ? [[row.name.split('/').at(-1)!, version]] : [];
  });
  const unknown = probed.find(({ result }) => typeof result.details?.schema !== 'string')?.result;
  const reason = unknown?.details?.schemaMissing ?? unknown?.details?.schemaUnknown ?? unknown?.msg;
  return { schema: Object.fromEntries(found), ...(unknown && { unknown: plain(String(reason)) }) };
}
