import type { ClientTls, Secret } from '../../core/access.ts';
import type { StoreCheck } from '../../core/reasons.ts';

export const storeKinds = ['widecolumn', 'mysql', 'postgres'] as const;
export type StoreKind = (typeof storeKinds)[number];

/** What a store's databases are for; label `database`. */
export const storeRoles = ['persistence', 'visibility'] as const;
export type StoreRole = (typeof storeRoles)[number];

/** Who asks where the configuration names nobody. */
export const usualStoreUser = 'svc_agent';

/** What a schema command may name: where the store is, and the database or keyspace, by either word. */
export const schemaPlaceholders = ['endpoint', 'keyspace', 'database'] as const;

/** One entry of `stores`, defaults filled in. */
export interface StoreOptions {
  name: string;
  kind: StoreKind;
  /** host:port; of a wide-column store the first to be dialled. */
  address: string;
  user?: string;
  password?: Secret;
  tls?: ClientTls;
  /** Whose credentials: the agent's own, or those of the service's files, which then stand in `user` and `password`. */
  credentials: 'own' | 'service';
  /** Names of the databases or keyspaces. */
  databases: { persistence?: string; visibility?: string };
  schema: {
    /** Versions the schemas must have at least; compared number by number. */
    persistence?: string;
    visibility?: string;
    /** Statement that gives the version in its first column; `{database}` stands for the quoted name. */
    query?: string;
    /** Program that prints the version; `{endpoint}` and `{keyspace}` or `{database}` stand for where and what. */
    command?: readonly string[];
  };
  /** Checks whose failure the owner accepts, each with the reason: they are shown, and neither exported nor counted. */
  accept: Readonly<Partial<Record<StoreCheck, string>>>;
  intervalMs: number;
  timeoutMs: number;
}
