import { findMetric } from '../src/core/catalog.ts';
import { parseable } from './grafana.ts';
import { parse, selectorsOf } from './promql.ts';

/** Whether a query of a dashboard reads metrics that the service itself sends. */
export const readsService = (expr: string): boolean =>
  selectorsOf(parse(parseable(expr))).some(
    ({ name = '' }) => findMetric(name.replace(/_(bucket|sum|count)$/, '')) !== undefined,
  );

const failures = 'Counters of failures appear with the first failure; while nothing fails there are none.';
const twoClusters = 'The server sends it once the service has a second cluster.';
const workersCalls =
  'The worker role calls the frontend through the client library, which counts under names of its own. The dashboard Frontend shows all calls to the frontend.';

/**
 * Queries of the dashboards that have no data with a Cadence server, in the order of the dashboards: each is `dashboard: panel`,
 * with the legend if a panel has more than one query. test/e2e/recorded-dashboards.long.test.ts compares the list with recorded
 * pages.
 */
export const unfedPanels: readonly { panel: string; why: string }[] = [
  { panel: 'overview: Persistence errors', why: failures },
  { panel: 'frontend: Failed calls by operation', why: failures },
  {
    panel: 'history: Shards closed',
    why: 'The counter appears with the first shard that is closed, in a restart or when hosts join or leave.',
  },
  { panel: 'history: Replication tasks applied', why: twoClusters },
  ...['Calls of the workers', 'Share of failed calls of the workers'].map((title) => ({
    panel: `worker: ${title} (frontend)`,
    why: workersCalls,
  })),
  ...['p50', 'p95', 'p99'].map((quantile) => ({
    panel: `worker: Latency of the frontend for the workers (${quantile})`,
    why: workersCalls,
  })),
  ...['Failed calls by role', 'Failed calls by operation'].map((title) => ({
    panel: `persistence: ${title}`,
    why: failures,
  })),
  { panel: 'dr: Tasks applied', why: twoClusters },
];
