import { critical, type Fault, warning } from './fault.ts';

const main = { store: 'main', kind: 'postgres', database: 'persistence' };
const here = { cluster: 'dc1', ...main };

/** Faults of the store. */
export const storeFaults: readonly Fault[] = [
  {
    what: 'nothing listens where dc2 has its store',
    provoke: ({ storeGates }) => storeGates.dc2.shut(),
    undo: ({ storeGates }) => storeGates.dc2.open(),
    alerts: [
      critical('SvcStoreDown', { cluster: 'dc2', ...main }, /postgres store main\/persistence, .* is 0\./),
    ],
  },
  {
    what: 'the schema is of version 0.7',
    provoke: ({ store }) => store.setSchema('0.7'),
    undo: ({ store }) => store.setSchema('0.8'),
    alerts: [critical('SvcSchemaMismatch', here, /svc_store_schema_compatible is 0\./)],
  },
  {
    what: 'the store begins read-only transactions',
    provoke: ({ store }) => store.setReadOnly(true),
    undo: ({ store }) => store.setReadOnly(false),
    alerts: [critical('SvcStoreReadOnly', here, /svc_store_read_only is 1\./)],
  },
  {
    what: 'all but four of the store’s connections are taken',
    provoke: ({ store }) => store.crowd(),
    undo: ({ store }) => store.disperse(),
    alerts: [warning('SvcStoreConnections', here, /^[\d.]+% of the connections of the postgres store/)],
  },
  {
    what: 'a session waits for a lock that nobody will release',
    provoke: ({ store }) => store.block(),
    undo: ({ store }) => store.unblock(),
    alerts: [warning('SvcStoreLockWaits', here, /svc_store_check_ok is 0 for the check lock_waits\./)],
  },
  {
    what: 'the store acknowledges what it has not written',
    provoke: ({ store }) => store.setDurable(false),
    undo: ({ store }) => store.setDurable(true),
    alerts: [
      critical(
        'SvcStoreDataAtRisk',
        { ...here, check: 'durable_settings' },
        /^Check durable_settings .* svc_store_check_ok is 0\./,
      ),
    ],
  },
  {
    what: 'the store archives a segment only when it is full',
    provoke: ({ store }) => store.setArchiveTimeout(false),
    undo: ({ store }) => store.setArchiveTimeout(true),
    alerts: [
      warning(
        'SvcStoreRecoveryWeak',
        { ...here, check: 'archive_timeout' },
        /^Check archive_timeout .* svc_store_check_ok is 0\./,
      ),
    ],
  },
  {
    what: 'the store’s log cannot be archived',
    provoke: ({ store }) => store.clogArchive(),
    again: ({ store }) => store.clogArchive(),
    undo: ({ store }) => store.clearArchive(),
    alerts: [
      critical(
        'SvcWalArchivingStalled',
        here,
        /^The oldest closed log segment .* has waited 1\dm \d+s for archiving/,
      ),
    ],
  },
];
