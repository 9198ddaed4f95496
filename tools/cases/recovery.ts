import {
  type Extra,
  fires,
  type HandWritten,
  type Plan,
  type Series,
  series,
  silent,
  state,
  within,
} from './case.ts';

const backup = 'backup="nightly", store="main", database="persistence", backup_type="full"';
const nightly = { backup: 'nightly', store: 'main', database: 'persistence', backup_type: 'full' };
const at = 'cluster="dc1", instance="a"';
const success = 'svc_backup_last_success_timestamp_seconds';
const failure = 'svc_backup_last_failure_timestamp_seconds';
const configured = 'svc_backup_configured';
const outcome = (failed: string, succeeded: string): Series => ({
  [`${failure}{${backup}}`]: failed,
  [`${success}{${backup}}`]: succeeded,
});
/** The series of a node of a wide-column store and its agent. */
const node = (instance: string, name: string, values: string, labels = backup): Series => ({
  [`svc_store_up{cluster="dc1", instance="${instance}", store="main", kind="widecolumn", database="persistence"}`]:
    '1x400',
  [`${name}{cluster="dc1", instance="${instance}", ${labels}}`]: values,
});

/** The case of two nodes that have backups with the same name: the backup of node b is bad. */
const ofOneNode = (bad: Series, good: Series, at: number, firing: Extra['fires'][0]): Extra => ({
  shows: 'the good backup of one node hides no other node',
  series: { ...good, ...bad },
  at,
  fires: [{ ...firing, labels: { cluster: 'dc1', instance: 'b', ...firing.labels } }],
});

/** The plans for alerts that take a day; they are evaluated every five minutes. */
export const dayLongPlans: readonly Plan[] = [
  {
    alert: 'SvcBackupNeverSucceeded',
    at: 1520,
    every: 5,
    bad: { [`${configured}{${backup}}`]: '1x320' },
    good: { [`${configured}{${backup}}`]: '1x320', [`${success}{${backup}}`]: '_x200 60000x120' },
    edge: { [`${configured}{${backup}}`]: '1x320' },
    edgeAt: 1495,
    reset: { [`${configured}{${backup}}`]: '1x100 stale _x20 1x220' },
    labels: nightly,
    value: '1',
    ending: { afterMinutes: 70 },
    more: [
      ofOneNode(
        node('b', configured, '1x320'),
        { ...node('a', configured, '1x320'), ...node('a', success, '0x320') },
        1520,
        { labels: nightly, value: '1' },
      ),
    ],
  },
];
/** The plans for alerts on backups: src/monitoring/alerts/recovery.ts. */
export const backupPlans: readonly Plan[] = [
  {
    alert: 'SvcBackupAge',
    at: 20,
    bad: { [`${success}{${backup}}`]: '-90000x20' },
    good: { [`${success}{${backup}}`]: '-80000x20' },
    edge: { [`${success}{${backup}}`]: '-88800x20' },
    reset: { [`${success}{${backup}}`]: '-95000x5 300x20' },
    labels: nightly,
    value: '1d 1h 20m 0s',
    ending: { afterMinutes: 100, value: '1d 3h 0m 0s' },
    silent: {
      'the newest that any agent knows counts': {
        [`${success}{${at}, ${backup}}`]: '-90000x20',
        [`${success}{cluster="dc1", instance="b", ${backup}}`]: '-80000x20',
      },
      'configuration is backed up on change': {
        [`${success}{${at}, backup="files", backup_type="config"}`]: '-900000x20',
      },
    },
    more: [
      {
        ...ofOneNode(node('b', success, '-90000x20'), node('a', success, '-80000x20'), 20, {
          labels: nightly,
          value: '1d 1h 20m 0s',
        }),
      },
      fires('a fresh incremental hides no old full backup', '1d 1h 20m 0s', {
        [`${success}{${at}, ${backup}}`]: '-90000x20',
        [`${success}{${at}, backup="hourly", store="main", database="persistence", backup_type="incremental"}`]:
          '0x20',
      }),
    ],
  },
  {
    alert: 'SvcBackupFailures',
    at: 20,
    bad: outcome('300x20', '60x20'),
    good: outcome('60x20', '300x20'),
    edge: outcome('300x20', '300x20'),
    reset: outcome('300x20', '60x10 600x20'),
    agentsDiffer: 'is silent',
    labels: nightly,
    value: '1970-01-01 00:05:00 +0000 UTC',
    ending: { afterMinutes: 100, value: '1970-01-01 00:05:00 +0000 UTC' },
    more: [
      fires('a failure that only one of two agents has seen', '1970-01-01 00:05:00 +0000 UTC', {
        [`${failure}{${at}, ${backup}}`]: '300x20',
        [`${failure}{cluster="dc1", instance="b", ${backup}}`]: '60x20',
        [`${success}{${at}, ${backup}}`]: '120x20',
      }),
      fires('the first failure, before any success', '1970-01-01 00:10:00 +0000 UTC', {
        [`${failure}{${at}, ${backup}}`]: '_x10 600x20',
      }),
    ],
  },
  {
    ...state('SvcBackupIntegrity', series('svc_backup_integrity_ok', `${backup}, level="full"`), 5, {
      ...nightly,
      level: 'full',
    }),
    more: [
      ofOneNode(
        node('b', 'svc_backup_integrity_ok', '0x40', `${backup}, level="full"`),
        node('a', 'svc_backup_integrity_ok', '1x40', `${backup}, level="full"`),
        20,
        { labels: { ...nightly, level: 'full' }, value: '0' },
      ),
    ],
  },
  {
    alert: 'SvcBackupOffsiteAge',
    at: 20,
    bad: { [`svc_backup_offsite_last_success_timestamp_seconds{${backup}}`]: '-90000x20' },
    good: { [`svc_backup_offsite_last_success_timestamp_seconds{${backup}}`]: '-80000x20' },
    edge: { [`svc_backup_offsite_last_success_timestamp_seconds{${backup}}`]: '-88800x20' },
    reset: { [`svc_backup_offsite_last_success_timestamp_seconds{${backup}}`]: '-95000x5 300x20' },
    agentsDiffer: 'is silent',
    labels: nightly,
    value: '1d 1h 20m 0s',
    ending: { afterMinutes: 100, value: '1d 3h 0m 0s' },
    silent: {
      'configuration is backed up on change': {
        [`svc_backup_offsite_last_success_timestamp_seconds{${at}, backup="files", backup_type="config"}`]:
          '-900000x20',
      },
    },
  },
  state('SvcBackupRetention', series('svc_backup_retention_compliant', backup), 60, nightly),
  {
    alert: 'SvcBackupClockSkew',
    at: 20,
    bad: { [`${success}{${backup}}`]: '1800x20' },
    good: { [`${success}{${backup}}`]: '60x20' },
    edge: { [`${success}{${backup}}`]: '300+60x20' },
    reset: { [`${success}{${backup}}`]: '60x11 1800x3 60 1800x20' },
    agentsDiffer: 'fires',
    labels: nightly,
    value: '10m 0s',
  },
];
const ready = 'store="main", database="persistence"';
const store = 'store="main", kind="postgres", database="persistence"';
const main = { store: 'main', kind: 'postgres', database: 'persistence' };
const wal = series('svc_store_wal_oldest_unarchived_timestamp_seconds', store);
const failingCheck = (check: string) => ({
  [`svc_store_check_ok{${at}, ${store}, check="${check}"}`]: '0x60',
});

const neverAlert = (checks: readonly string[]): readonly Extra[] =>
  checks.map((check) =>
    silent(`check ${check} is of another severity or has another alert`, failingCheck(check)),
  );

/** The cases of a check on which backups of a type depend: the check alerts if the store has such backups. */
function needsBackup(check: string, type: string): readonly Extra[] {
  const having = (cluster: string, of: string, backupType: string): Series => ({
    [`svc_backup_configured{cluster="${cluster}", instance="z", backup="b", store="${of}", database="visibility", backup_type="${backupType}"}`]:
      '1x60',
  });
  const quiet = (shows: string, backups: Series): Extra =>
    silent(`check ${check} ${shows}`, { ...failingCheck(check), ...backups });
  return [
    quiet('of a store without backups is the decision of its owner', {}),
    quiet('of a store with full backups only', having('dc1', 'main', 'full')),
    quiet('that another agent sees hold', {
      ...having('dc1', 'main', type),
      [`svc_store_check_ok{cluster="dc1", instance="b", ${store}, check="${check}"}`]: '1x60',
    }),
    quiet('where another store has such backups', having('dc1', 'other', type)),
    quiet('where the store of another cluster has such backups', having('dc2', 'main', type)),
    fires(
      `check ${check} of a store with ${type} backups, which another agent reports`,
      [{ labels: { ...main, cluster: 'dc1', check }, value: '0' }],
      { ...failingCheck(check), ...having('dc1', 'main', type) },
    ),
  ];
}

/**
 * The plan for an alert on the checks of one severity: it fires for the check `one`, and not for `others`, the checks of other
 * severities.
 */
const check = (alert: string, one: string, others: readonly string[]): Plan => ({
  ...state(alert, series('svc_store_check_ok', `${store}, check="${one}"`), 15, { ...main, check: one }),
  more: neverAlert(others),
});

const seenBy = (instance: string, name: string, values: string, labels: string): Series => ({
  [`${name}{cluster="dc1", instance="${instance}", ${labels}}`]: values,
});
const isKnown = seenBy('a', 'svc_recovery_ready', '0x60', ready);
const isConfigured = seenBy('a', configured, '1x60', backup);
const isUnknown: Extra['fires'] = [{ labels: { cluster: 'dc1', store: 'main' }, value: '1' }];
/** The cases in which nothing says whether a store with backups could be recovered. */
const unknownRecovery: HandWritten = {
  alert: 'SvcRecoveryUnknown',
  at: 20,
  silent: {
    healthy: { ...isConfigured, ...seenBy('a', 'svc_recovery_ready', '1x60', ready) },
    'it could not be recovered: another alert says so': { ...isConfigured, ...isKnown },
    'another agent knows': { ...isConfigured, ...seenBy('b', 'svc_recovery_ready', '1x60', ready) },
    'configuration belongs to no store': seenBy(
      'a',
      configured,
      '1x60',
      'backup="files", store="", database="", backup_type="config"',
    ),
  },
  cases: [
    fires('fires', isUnknown, isConfigured),
    fires('two clusters of which one fails: what is known there is not known here', isUnknown, {
      ...isConfigured,
      [`svc_recovery_ready{cluster="dc2", instance="c", ${ready}}`]: '1x60',
    }),
    fires(
      'two environments of the same names, of which one fails',
      [{ labels: { environment: 'prod', cluster: 'dc1', store: 'main' }, value: '1' }],
      {
        ...within('prod', isConfigured),
        ...within('stage', { ...isConfigured, ...seenBy('a', 'svc_recovery_ready', '1x60', ready) }),
      },
    ),
    fires('two agents that report the same fire once', isUnknown, {
      ...isConfigured,
      ...seenBy('b', configured, '1x60', backup),
    }),
    { shows: 'exactly on the threshold', series: isConfigured, at: 14, fires: [] },
    {
      shows: 'counter reset or interruption',
      series: { ...isConfigured, ...seenBy('a', 'svc_recovery_ready', '_x10 1 _x60', ready) },
      at: 28,
      fires: [],
    },
    {
      shows: 'series missing',
      series: seenBy('a', configured, '1x5 stale', backup),
      at: 90,
      fires: [],
    },
    fires(
      'the knowledge of one node is not that of another node',
      [{ labels: { cluster: 'dc1', store: 'main', instance: 'b' }, value: '1' }],
      {
        ...node('a', configured, '1x60'),
        ...node('a', 'svc_recovery_ready', '1x60', ready),
        ...node('b', configured, '1x60'),
      },
    ),
  ],
};

const schemaUnread = (up: string, unread: string): Series => ({
  [`svc_store_up{${store}}`]: up,
  'svc_incident{cause="schema_unread", subject="main/persistence"}': unread,
});
const unread = `svc_incident{${at}, cause="schema_unread", subject="main/persistence"}`;
/** The cases in which a schema version is expected and cannot be read. */
const unknownSchema: Plan = {
  alert: 'SvcSchemaUnknown',
  at: 60,
  bad: schemaUnread('1x99', '_x20 1x99'),
  good: schemaUnread('1x99', '0x99'),
  edge: schemaUnread('1x99', '_x46 1x99'),
  reset: schemaUnread('1x99', '_x20 1x10 0x18 1x99'),
  agentsDiffer: 'fires',
  labels: main,
  value: '1',
  more: [
    silent('no schema is expected, or none any more', {
      [`svc_store_up{${at}, ${store}}`]: '1x99',
      [unread]: '1x30 stale',
      [`svc_store_schema_compatible{${at}, ${store}}`]: '1x20 stale',
    }),
    silent('the schema is known to be wrong: another alert says so', {
      [`svc_store_up{${at}, ${store}}`]: '1x99',
      [`svc_store_schema_compatible{${at}, ${store}}`]: '0x99',
      [unread]: '0x99',
    }),
    silent('the agent of another host can read it', {
      [`svc_store_up{${at}, ${store}}`]: '1x99',
      [unread]: '1x99',
      [`svc_store_schema_compatible{cluster="dc1", instance="b", ${store}}`]: '1x99',
    }),
    silent('the store is down', {
      [`svc_store_up{${at}, ${store}}`]: '1x20 0x99',
      [unread]: '1x99',
    }),
    fires('the agent of another host does not reach the store', '1', {
      [`svc_store_up{${at}, ${store}}`]: '1x99',
      [`svc_store_up{cluster="dc1", instance="b", ${store}}`]: '0x99',
      [unread]: '1x99',
    }),
    silent('it is the schema of another database', {
      [`svc_store_up{${at}, ${store}}`]: '1x99',
      [unread.replace('persistence', 'visibility')]: '1x99',
    }),
    silent('it is another problem of the database', {
      [`svc_store_up{${at}, ${store}}`]: '1x99',
      [unread.replace('schema_unread', 'connections')]: '1x99',
    }),
  ],
};

export const storePlans: readonly (Plan | HandWritten)[] = [
  { ...state('SvcStoreDown', series('svc_store_up', store), 2, main), more: withoutAgent() },
  state('SvcSchemaMismatch', series('svc_store_schema_compatible', store), 5, main),
  unknownSchema,
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
      [`svc_store_connections{${store}, state="active"}`]: '5x5 95x3 0 95x20',
      [`svc_store_connections_max{${store}}`]: '100x20',
    },
    agentsDiffer: 'fires',
    labels: main,
    value: '95%',
  },
  state('SvcStoreLockWaits', series('svc_store_check_ok', `${store}, check="lock_waits"`), 2, main),
  check('SvcStoreDataAtRisk', 'checksum_failures', ['archive_mode', 'data_checksums']),
  {
    ...check('SvcStoreRecoveryWeak', 'slots', []),
    more: [
      ...neverAlert(['wraparound', 'data_checksums', 'uptime', 'connections', 'lock_waits']),
      ...needsBackup('archive_mode', 'log'),
      ...needsBackup('log_bin', 'log'),
      ...needsBackup('incremental_backups', 'incremental'),
    ],
  },
  {
    alert: 'SvcWalArchivingStalled',
    at: 20,
    bad: wal('-600+60x40'),
    good: wal('-10+60x40'),
    edge: wal('-300+60x40'),
    reset: wal('-10+60x17 0 1130 0x20'),
    agentsDiffer: 'is silent',
    labels: main,
    value: '10m 0s',
  },
  {
    ...state('SvcRecoveryObjectiveMissed', series('svc_recovery_ready', ready), 5, {
      store: 'main',
      database: 'persistence',
    }),
    more: [
      ofOneNode(
        node('b', 'svc_recovery_ready', '0x40', ready),
        node('a', 'svc_recovery_ready', '1x40', ready),
        20,
        { labels: { store: 'main', database: 'persistence' }, value: '0' },
      ),
    ],
  },
  {
    ...state(
      'SvcRecoveryNotProven',
      series('svc_recovery_proven', 'store="main", database="persistence"'),
      15,
      {
        store: 'main',
        database: 'persistence',
      },
    ),
    // A rehearsal that no agent reports any more is missing.
    ending: { afterMinutes: 20, value: '0' },
    more: [
      {
        shows: 'a proof that is not reported any more',
        series: {
          [`svc_recovery_proven{${at}, store="main", database="persistence"}`]: '1x20 stale',
        },
        at: 40,
        fires: [{ labels: { cluster: 'dc1', store: 'main', database: 'persistence' }, value: '0' }],
      },
    ],
  },
  unknownRecovery,
];

/** The cases for a store whose agent is down. */
function withoutAgent(): Plan['more'] {
  const seenBy = (instance: string, values: string): Series => ({
    [`svc_store_up{cluster="dc1", instance="${instance}", ${store}}`]: values,
  });
  const agent = (values: string, instance = 'a'): Series => ({
    [`up{job="svc-agent", cluster="dc1", instance="${instance}"}`]: values,
  });
  const ended = seenBy('a', '1 0x10 stale');
  const isDown = { ...ended, ...agent('1x11 0x99') };
  const wasWell = { ...seenBy('a', '1x11 stale'), ...agent('1x11 0x99') };
  const secondSawItWell = { ...isDown, ...seenBy('b', '1x11 stale'), ...agent('1x11 0x99', 'b') };
  return [
    { shows: 'the agent is gone, too: the outage goes on', series: isDown, at: 40, fires: '0' },
    silent('the agent has been gone for more than an hour', isDown, 90),
    silent('the agent is gone, the store was well', wasWell, 40),
    silent('the agent is gone, another one sees the store', { ...isDown, ...seenBy('b', '1x99') }, 40),
    silent('two agents are gone, of which one saw the store well', secondSawItWell, 40),
    silent('the store is no longer configured', { ...ended, ...agent('1x99') }, 40),
    silent(
      'the agent is back, and so is the store',
      { ...seenBy('a', '1 0x10 stale _x20 1x60'), ...agent('1x11 0x20 1x60') },
      45,
    ),
  ];
}
