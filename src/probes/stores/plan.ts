import { createHash } from 'node:crypto';
import { storeFailureReasons } from '../../core/reasons.ts';

import type { ProbeRow, Shown } from '../probe.ts';
import { storeKindRows } from './kinds.ts';
import { type StoreOptions, type StoreRole, storeRoles } from './options.ts';

/** One row for each database of each store; a store of which none is named is looked at as such. */
export function planStores({ stores }: { stores: readonly StoreOptions[] }): ProbeRow[] {
  return stores.flatMap((store) => {
    const named = storeRoles.filter((role) => store.databases[role] !== undefined);
    return (named.length === 0 ? ([''] as const) : named).map((role) => rowOf(store, role));
  });
}

function rowOf(store: StoreOptions, role: StoreRole | ''): ProbeRow {
  const { name, kind, address, intervalMs, timeoutMs } = store;
  const database = role === '' ? undefined : store.databases[role];
  return {
    name: role === '' ? `store/${name}` : `store/${name}/${role}`,
    kind: 'store',
    target: `${kind}://${address}${database === undefined ? '' : `/${database}`}`,
    service: '',
    schedule: { intervalMs, timeoutMs },
    shows: shownOf(store, role),
    reasons: storeFailureReasons,
    lane: `store/${name}`,
    key: keyOf(store, role),
    async open(deps) {
      const { createStoreProbe } = await import('./store-probe.ts');
      return createStoreProbe(store, role, await storeKindRows[kind].row(), deps);
    },
  };
}

function shownOf({ name, kind }: StoreOptions, role: StoreRole | ''): Shown {
  const labels = { store: name, kind, database: role };
  return {
    up: { name: 'svc_store_up', labels },
    duration: { name: 'svc_store_probe_duration_seconds', labels },
    failures: { name: 'svc_store_failures_total', labels },
  };
}

/** A digest, for a password may stand in the options. */
function keyOf(store: StoreOptions, role: string): string {
  return createHash('sha256')
    .update(JSON.stringify([role, store]))
    .digest('hex');
}
