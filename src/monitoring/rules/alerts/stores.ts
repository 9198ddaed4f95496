import type { RuleGroup } from '../alert.ts';

const identity = 'cluster, store, kind, database';
const named = '{{ $labels.kind }} store {{ $labels.store }}/{{ $labels.database }}';

/** Stores, and whether what they keep could be brought back. */
export const stores: RuleGroup = {
  name: 'svc-stores',
  alerts: [
    {
      name: 'SvcStoreDown',
      severity: 'critical',
      expr: `max by (${identity}) (svc_store_up) == 0`,
      for: '2m',
      summary: 'A store does not answer.',
      description: `The ${named} does not answer: svc_store_up is {{ $value }}.`,
      dashboard: 'persistence',
    },
    {
      name: 'SvcSchemaMismatch',
      severity: 'critical',
      expr: `max by (${identity}) (svc_store_schema_compatible) == 0`,
      for: '5m',
      summary: 'A store has another schema than it must have.',
      description: `The ${named} has not the schema that is asked for: svc_store_schema_compatible is {{ $value }}.`,
      dashboard: 'persistence',
    },
    {
      name: 'SvcStoreReadOnly',
      severity: 'critical',
      expr: `max by (${identity}) (svc_store_read_only) == 1`,
      for: '2m',
      summary: 'A store refuses writes.',
      description: `The ${named} refuses writes: svc_store_read_only is {{ $value }}.`,
      dashboard: 'persistence',
    },
    {
      name: 'SvcStoreConnections',
      severity: 'warning',
      expr:
        `sum by (${identity}) (max by (${identity}, state) (svc_store_connections))` +
        ` / max by (${identity}) (svc_store_connections_max) > $threshold`,
      threshold: 0.9,
      for: '5m',
      summary: 'A store has hardly a connection left.',
      description: `{{ $value | humanizePercentage }} of the connections of the ${named} are taken, above $threshold.`,
      dashboard: 'persistence',
    },
    {
      name: 'SvcStoreCheckFailing',
      severity: 'warning',
      // That a store was started again is told by its check for an hour, and is no set-up.
      expr: `max by (${identity}, check) (svc_store_check_ok{check!="uptime"}) == 0`,
      for: '15m',
      summary: 'A store is not set up as recovery needs it.',
      description: `Check {{ $labels.check }} of the ${named} does not hold: svc_store_check_ok is {{ $value }}.`,
      dashboard: 'dr',
    },
    {
      name: 'SvcWalArchivingStalled',
      severity: 'critical',
      expr: `time() - max by (${identity}) (svc_store_wal_oldest_unarchived_timestamp_seconds) > $threshold`,
      threshold: 300,
      for: '1m',
      summary: 'Closed log segments are not archived.',
      description: `The ${named} has waited {{ $value | humanizeDuration }} for its oldest log segment to be archived, above $threshold s.`,
      dashboard: 'dr',
    },
    {
      name: 'SvcRecoveryObjectiveMissed',
      severity: 'critical',
      expr: 'max by (cluster, store, database) (svc_recovery_ready) == 0',
      for: '5m',
      summary: 'A store could not be recovered within its objectives.',
      description:
        'By the evidence at hand, {{ $labels.store }}/{{ $labels.database }} does not meet its recovery objectives: svc_recovery_ready is {{ $value }}.',
      dashboard: 'dr',
    },
  ],
};
