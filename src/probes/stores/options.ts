import type { ClientTls, Secret } from '../../core/access.ts';

export const storeKinds = ['widecolumn', 'mysql', 'postgres'] as const;
export type StoreKind = (typeof storeKinds)[number];

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
  /** Versions the schemas must have at least; compared number by number. */
  schema: { persistence?: string; visibility?: string };
  intervalMs: number;
  timeoutMs: number;
}
