import type { ClientTls, Secret } from '../../core/access.ts';
import type { StoreCheck } from '../../core/check-severity.ts';

export const storeKinds = ['widecolumn', 'mysql', 'postgres'] as const;
export type StoreKindName = (typeof storeKinds)[number];

/** The roles of a store's databases, which are values of the label `database`. */
export const storeRoles = ['persistence', 'visibility'] as const;
export type StoreRole = (typeof storeRoles)[number];

/** The user if the configuration names none. */
export const usualStoreUser = 'svc_agent';

/** The placeholders of a schema command: the store's address, and the database or keyspace by either word. */
export const schemaPlaceholders = ['endpoint', 'keyspace', 'database'] as const;

/** The options of one entry of `stores`, with defaults filled in. */
export interface StoreOptions {
  name: string;
  kind: StoreKindName;
  /** host:port; for a wide-column store the address of the node that is polled. */
  address: string;
  user?: string;
  password?: Secret;
  tls?: ClientTls;
  /** Whose credentials `user` and `password` are: the agent's own, or those in the service's files. */
  credentials: 'own' | 'service';
  /** Names of the databases or keyspaces, by role. */
  databases: { persistence?: string; visibility?: string };
  schema: {
    /** The versions that the schemas must have at least; they are compared number by number. */
    persistence?: string;
    visibility?: string;
    /** Statement that returns the version in its first column; `{database}` stands for the quoted name. */
    query?: string;
    /** Program that prints the version; `{endpoint}` and `{keyspace}` or `{database}` are filled in. */
    command?: readonly string[];
  };
  /** Checks whose failure the owner accepts, each with the reason: /probes shows them, and they have no series. */
  accept: Readonly<Partial<Record<StoreCheck, string>>>;
  intervalMs: number;
  timeoutMs: number;
}
