import {
  at,
  column,
  type Dashboard,
  heatmap,
  type PanelRow,
  percentiles,
  table,
  timeline,
  timeseries,
} from '../dashboard.ts';
import { instance, operation, type Queries, role, store, top } from '../queries.ts';

const identity = 'store, kind, database';
const requests = 'svc_persistence_requests';
const errors = 'svc_persistence_errors';
const latency = 'svc_persistence_latency';

const calls = ({ distribution, quantile, rate, share }: Queries): PanelRow => ({
  title: 'Persistence calls',
  panels: [
    timeseries(
      'Failed calls by role',
      'Persistence calls that failed.',
      'perSecond',
      rate(errors, 'svc_service'),
      { limits: at('SvcPersistenceErrorRate') },
    ),
    timeseries(
      'Share of failed calls by role',
      'Share of the persistence calls that failed.',
      'share',
      share(errors, requests, 'svc_service'),
      { limits: at('SvcPersistenceErrorRatio') },
    ),
    timeseries(
      '99th percentile by operation',
      'The 20 slowest operations of a role.',
      'seconds',
      top(20, quantile(0.99, latency, 'svc_service, operation')),
      { limits: at('SvcPersistenceLatency') },
    ),
    timeseries(
      'Calls by operation',
      'Persistence calls; the 20 most frequent operations.',
      'requestsPerSecond',
      top(20, rate(requests, 'operation')),
    ),
    timeseries(
      'Failed calls by operation',
      'Persistence calls that failed; the 20 most frequent operations.',
      'perSecond',
      top(20, rate(errors, 'operation')),
    ),
    timeseries(
      'Persistence errors in the logs',
      'Failed calls that the roles log. Use them where the metrics are missing or incomplete.',
      'perSecond',
      top(20, rate('svc_log_persistence_errors_total', 'svc_service, operation')),
      { runbooks: ['SvcPersistenceErrorRate'] },
    ),
    timeseries(
      'Percentiles',
      '50%, 95% and 99% of the calls are faster than this.',
      'seconds',
      percentiles((q) => quantile(q, latency)),
    ),
    timeseries(
      'Calls by role',
      'Persistence calls of each role.',
      'requestsPerSecond',
      rate(requests, 'svc_service'),
    ),
    heatmap(
      'Latency over time',
      'Distribution of the calls over all chosen clusters.',
      distribution(latency),
      {
        width: 8,
      },
    ),
    table(
      'Operations',
      'Current numbers of each operation, by number of calls.',
      { cluster: 'Cluster', operation: 'Operation' },
      [
        column('Calls', 'requestsPerSecond', rate(requests, 'operation')),
        column('Failed', 'share', share(errors, requests, 'operation'), {
          limits: at('SvcPersistenceErrorRatio'),
        }),
        column('p50', 'seconds', quantile(0.5, latency, 'operation')),
        column('p99', 'seconds', quantile(0.99, latency, 'operation'), {
          limits: at('SvcPersistenceLatency'),
        }),
      ],
      { sortBy: 'Calls' },
    ),
  ],
});

const stores = ({ highest, rateOnce }: Queries): PanelRow => ({
  title: 'Stores',
  panels: [
    timeline('Stores', 'Whether each database answers.', 'up', highest('svc_store_up', identity), {
      width: 8,
      runbooks: ['SvcStoreDown', 'SvcStoreRecovering'],
    }),
    timeline(
      'Schema',
      'Whether the schema has the configured version.',
      'compatible',
      highest('svc_store_schema_compatible', identity),
      { width: 8, runbooks: ['SvcSchemaMismatch', 'SvcSchemaUnknown'] },
    ),
    timeline(
      'Writes',
      'Whether the store refuses writes, as a standby does.',
      'readOnly',
      highest('svc_store_read_only', identity),
      { width: 8, runbooks: ['SvcStoreReadOnly'] },
    ),
    timeseries(
      'Connections in use',
      'Open connections as a share of those that the store allows.',
      'share',
      `sum by (cluster, ${identity}) (${highest('svc_store_connections', `${identity}, state`)}) / ${highest('svc_store_connections_max', identity)}`,
      { limits: at('SvcStoreConnections') },
    ),
    timeseries(
      'Connections by state',
      'Open connections by state, and how many the store allows.',
      'count',
      [
        { expr: highest('svc_store_connections', `${identity}, state`) },
        { name: 'allowed', expr: highest('svc_store_connections_max', identity) },
      ],
      { runbooks: ['SvcStoreLockWaits'] },
    ),
    timeseries(
      'Duration of the probe',
      'Duration of the last probe of the store, from connecting to the last answer.',
      'seconds',
      highest('svc_store_probe_duration_seconds', identity),
    ),
    timeseries(
      'Failed probes',
      'Probes of the store that failed, by reason.',
      'perSecond',
      rateOnce('svc_store_failures_total', `${identity}, reason`),
      { width: 12, runbooks: ['SvcStoreDown'] },
    ),
    table(
      'Schema versions',
      'The schema version of each database.',
      { cluster: 'Cluster', store: 'Store', kind: 'Kind', database: 'Database', version: 'Version' },
      [
        column('Found', 'count', highest('svc_store_schema_version_info', `${identity}, version`), {
          state: 'yes',
        }),
      ],
      { width: 12, height: 8 },
    ),
  ],
});

export const persistence: Dashboard = {
  name: 'persistence',
  title: 'Persistence',
  description: 'Persistence calls of the roles, and the stores themselves.',
  choices: [role, instance, operation('svc_persistence_requests'), store('svc_store_up')],
  rows: (queries) => [calls(queries), stores(queries)],
};
