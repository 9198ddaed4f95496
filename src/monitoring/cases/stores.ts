import type { Plan } from './plan.ts';
import { series, state } from './state.ts';

const store = 'store="main", kind="postgres", database="persistence"';
const main = { store: 'main', kind: 'postgres', database: 'persistence' };
const wal = series('svc_store_wal_oldest_unarchived_timestamp_seconds', store);

/** Of src/monitoring/rules/alerts/stores.ts. */
export const storePlans: readonly Plan[] = [
  state('SvcStoreDown', series('svc_store_up', store), 2, main),
  state('SvcSchemaMismatch', series('svc_store_schema_compatible', store), 5, main),
  state('SvcStoreReadOnly', series('svc_store_read_only', store), 2, main, 1),
  {
    alert: 'SvcStoreConnections',
    at: 15,
    bad: {
      [`svc_store_connections{${store}, state="active"}`]: '55x20',
      [`svc_store_connections{${store}, state="idle"}`]: '40x20',
      [`svc_store_connections_max{${store}}`]: '100x20',
    },
    good: {
      [`svc_store_connections{${store}, state="active"}`]: '5x20',
      [`svc_store_connections_max{${store}}`]: '100x20',
    },
    edge: {
      [`svc_store_connections{${store}, state="active"}`]: '50x20',
      [`svc_store_connections{${store}, state="idle"}`]: '40x20',
      [`svc_store_connections_max{${store}}`]: '100x20',
    },
    reset: {
      [`svc_store_connections{${store}, state="active"}`]: '95x12 0 95x20',
      [`svc_store_connections_max{${store}}`]: '100x20',
    },
    agentsDiffer: 'fires',
    labels: main,
    value: '95%',
  },
  {
    ...state('SvcStoreCheckFailing', series('svc_store_check_ok', `${store}, check="archive_mode"`), 15, {
      ...main,
      check: 'archive_mode',
    }),
    more: [
      {
        shows: 'a store that was started again',
        series: { [`svc_store_check_ok{cluster="dc1", instance="a", ${store}, check="uptime"}`]: '0x60' },
        at: 25,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcWalArchivingStalled',
    at: 20,
    bad: wal('-600+60x40'),
    good: wal('-10+60x40'),
    edge: wal('-300+60x40'),
    reset: wal('0x19 1190x20'),
    agentsDiffer: 'is silent',
    labels: main,
    value: '10m 0s',
  },
  state(
    'SvcRecoveryObjectiveMissed',
    series('svc_recovery_ready', 'store="main", database="persistence"'),
    5,
    {
      store: 'main',
      database: 'persistence',
    },
  ),
];
