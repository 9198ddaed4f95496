import { at } from '../alerts.ts';
import { instance, operation, role, store } from '../choices.ts';
import { distribution, highest, quantile, rate, rateOnce, share, top } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { column, heatmap, percentiles, table, timeline, timeseries } from '../panels.ts';

const identity = 'store, kind, database';
const connections = `sum by (cluster, ${identity}) (${highest('svc_store_connections', `${identity}, state`)})`;
const requests = 'svc_persistence_requests';
const errors = 'svc_persistence_errors';
const latency = 'svc_persistence_latency';

const calls: Row = {
  title: 'Calls of the roles to the store',
  panels: [
    timeseries(
      'Failed calls by role',
      'Calls to the store that failed.',
      'perSecond',
      rate(errors, 'svc_service'),
      { limits: at('SvcPersistenceErrorRate') },
    ),
    timeseries(
      'Share of failed calls by role',
      'Share of the calls to the store that failed.',
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
      'Calls to the store; the 20 most frequent operations.',
      'requestsPerSecond',
      top(20, rate(requests, 'operation')),
    ),
    timeseries(
      'Failed calls by operation',
      'Calls to the store that failed; the 20 most frequent operations.',
      'perSecond',
      top(20, rate(errors, 'operation')),
    ),
    timeseries(
      'Persistence errors in the logs',
      'What the roles log of failed calls; where they send no metrics, this is what there is.',
      'perSecond',
      top(20, rate('svc_log_persistence_errors_total', 'svc_service, operation')),
    ),
    timeseries(
      'Percentiles',
      'How far the slowest calls are from the usual one.',
      'seconds',
      percentiles((q) => quantile(q, latency)),
    ),
    timeseries(
      'Calls by role',
      'Who asks the store most.',
      'requestsPerSecond',
      rate(requests, 'svc_service'),
    ),
    heatmap(
      'Latency over time',
      'How many calls took how long, over all chosen clusters.',
      distribution(latency),
      {
        width: 8,
      },
    ),
    table(
      'Operations',
      'Each operation now; the greatest number of calls first.',
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
};

const stores: Row = {
  title: 'The stores themselves, as the agents see them',
  panels: [
    timeline('Stores', 'Whether each database answers.', 'up', highest('svc_store_up', identity), {
      width: 8,
      runbooks: ['SvcStoreDown'],
    }),
    timeline(
      'Schema',
      'Whether the schema is what the configuration asks for.',
      'compatible',
      highest('svc_store_schema_compatible', identity),
      { width: 8, runbooks: ['SvcSchemaMismatch'] },
    ),
    timeline(
      'Writes',
      'Whether the store refuses writes. A standby does so by design.',
      'readOnly',
      highest('svc_store_read_only', identity),
      { width: 8, runbooks: ['SvcStoreReadOnly'] },
    ),
    timeseries(
      'Connections in use',
      'Share of the connections the store allows that are open.',
      'share',
      `${connections} / ${highest('svc_store_connections_max', identity)}`,
      { limits: at('SvcStoreConnections') },
    ),
    timeseries('Connections by state', 'Connections the store has open, and how many it allows.', 'count', [
      { expr: highest('svc_store_connections', `${identity}, state`) },
      { name: 'allowed', expr: highest('svc_store_connections_max', identity) },
    ]),
    timeseries(
      'Duration of the probe',
      'How long the last look at the store took, from connecting to the last answer.',
      'seconds',
      highest('svc_store_probe_duration_seconds', identity),
    ),
    timeseries(
      'Failed probes',
      'Looks at the store that failed, by reason.',
      'perSecond',
      rateOnce('svc_store_failures_total', `${identity}, reason`),
      { width: 12, runbooks: ['SvcStoreDown'] },
    ),
    table(
      'Schema versions',
      'The version that was found in each database.',
      { cluster: 'Cluster', store: 'Store', kind: 'Kind', database: 'Database', version: 'Version' },
      [
        column('Found', 'count', highest('svc_store_schema_version_info', `${identity}, version`), {
          state: 'yes',
        }),
      ],
      { width: 12, height: 8 },
    ),
  ],
};

export const persistence: Dashboard = {
  name: 'persistence',
  title: 'Persistence',
  description: 'Calls of the roles to their store, and the stores themselves.',
  choices: [role, instance, operation('svc_persistence_requests'), store('svc_store_up')],
  rows: [calls, stores],
};
