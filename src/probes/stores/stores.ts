import { createHash } from 'node:crypto';
import type { Clock } from '../../core/ports.ts';
import { storeFailureReasons } from '../../core/reasons.ts';
import type { ProbeRow, ShownSeries } from '../probe.ts';
import { createStoreServer, type StoreServer } from './store-connections.ts';
import { type StoreKindName, type StoreOptions, type StoreRole, storeRoles } from './store-options.ts';
import type { LogArchive } from './store-probe.ts';
import type { StoreKind } from './store-report.ts';

/** The kinds of stores. A driver is loaded only for a kind that is configured. */
const kinds: Readonly<Record<StoreKindName, () => Promise<StoreKind>>> = {
  postgres: async () => (await import('./postgres-poll.ts')).postgres,
  mysql: async () => (await import('./mysql-poll.ts')).mysql,
  widecolumn: async () => (await import('./cassandra-poll.ts')).cassandra,
};

/** One row for each database of each store; a store without databases has one row for itself. */
export function planStores({
  stores,
  archivesOf = () => [],
}: {
  stores: readonly StoreOptions[];
  /** The places of a store's archived log segments, by the name of the store. */
  archivesOf?: (store: string) => readonly LogArchive[];
}): ProbeRow[] {
  return stores.flatMap((store) => {
    const named = storeRoles.filter((role) => store.databases[role] !== undefined);
    const server = shareServer(store);
    const archives = archivesOf(store.name);
    return (named.length === 0 ? ([''] as const) : named).map((role) => rowOf(store, role, server, archives));
  });
}

/** Returns the server of a store, which all its rows share. It is created for the first row that opens. */
type SharedServer = (kind: StoreKind, clock: Clock) => StoreServer;

function shareServer(store: StoreOptions): SharedServer {
  let server: StoreServer | undefined;
  return (kind, clock) => {
    server ??= createStoreServer(store, kind, clock);
    return server;
  };
}

function rowOf(
  store: StoreOptions,
  role: StoreRole | '',
  server: SharedServer,
  archives: readonly LogArchive[],
): ProbeRow {
  const { name, kind, address, intervalMs, timeoutMs } = store;
  const database = role === '' ? undefined : store.databases[role];
  return {
    name: role === '' ? `store/${name}` : `store/${name}/${role}`,
    kind: 'store',
    target: `${kind}://${address}${database === undefined ? '' : `/${database}`}`,
    service: '',
    schedule: { intervalMs, timeoutMs },
    reasons: storeFailureReasons,
    shows: shownOf(store, role),
    lane: `store/${name}`,
    key: keyOf(store, role, archives),
    async open(deps) {
      const [{ createStoreProbe }, storeKind] = await Promise.all([
        import('./store-probe.ts'),
        kinds[kind](),
      ]);
      return createStoreProbe(store, role, {
        ...deps,
        kind: storeKind,
        server: server(storeKind, deps.clock),
        archives,
      });
    },
  };
}

function shownOf({ name, kind }: StoreOptions, role: StoreRole | ''): ShownSeries {
  const labels = { store: name, kind, database: role };
  return {
    up: { name: 'svc_store_up', labels },
    duration: { name: 'svc_store_probe_duration_seconds', labels },
    failures: { name: 'svc_store_failures_total', labels },
  };
}

/** The key is a digest, because the options may contain a password. */
function keyOf(store: StoreOptions, role: string, archives: readonly LogArchive[]): string {
  return createHash('sha256')
    .update(JSON.stringify([role, store, archives]))
    .digest('hex');
}
