import { at, type Dashboard, type PanelRow, percentiles, timeseries } from '../dashboard.ts';
import { domain, instance, operation, type Queries, role, top } from '../queries.ts';
import { callRow } from './shared.ts';

const closing = ['completed', 'failed', 'timeout', 'canceled', 'continued_as_new'];

/** The share of a domain's closed workflows that timed out. */
function timeoutShare({ rate }: Queries): string {
  const closed = closing.map(
    (outcome) =>
      `(${rate(`svc_workflow_${outcome}`, 'domain')} or 0 * ${rate('svc_workflow_started', 'domain')})`,
  );
  return `${rate('svc_workflow_timeout', 'domain')} / (${closed.join(' + ')} > 0)`;
}

const workflows = (queries: Queries, { rate } = queries): PanelRow => ({
  title: 'Workflows',
  panels: [
    timeseries(
      'Started and closed',
      'Workflow executions by outcome. If fewer close than start, they accumulate.',
      'perSecond',
      ['started', ...closing].map((outcome) => ({
        name: outcome.replaceAll('_', ' '),
        expr: rate(`svc_workflow_${outcome}`),
      })),
      { width: 12 },
    ),
    timeseries(
      'Started by domain',
      'The 20 busiest domains.',
      'perSecond',
      top(20, rate('svc_workflow_started', 'domain')),
      { width: 12 },
    ),
    timeseries(
      'Timed out by domain',
      'Workflow executions that timed out; the 20 worst domains.',
      'perSecond',
      top(20, rate('svc_workflow_timeout', 'domain')),
      { limits: at('SvcWorkflowTimeouts') },
    ),
    timeseries(
      'Share of timeouts',
      'Share of the closed workflow executions of a domain that timed out; the 20 worst.',
      'share',
      top(20, timeoutShare(queries)),
      { limits: at('SvcWorkflowTimeoutShare') },
    ),
    timeseries(
      'Failed by type',
      'Workflow executions that failed; the 20 worst types.',
      'perSecond',
      top(20, rate('svc_workflow_failed', 'domain, workflow_type')),
      { runbooks: ['SvcWorkflowFailures'] },
    ),
  ],
});

const cache = ({ quantile, rate, share }: Queries): PanelRow => ({
  title: 'Cache, shards and replication',
  panels: [
    timeseries('Cache lookups', 'Lookups in the history cache, and those that failed.', 'perSecond', [
      { name: 'lookups', expr: rate('svc_history_cache_requests') },
      { name: 'failed', expr: rate('svc_history_cache_errors') },
    ]),
    timeseries(
      'Share of failed lookups',
      'Share of the lookups in the history cache that failed, by instance.',
      'share',
      share('svc_history_cache_errors', 'svc_history_cache_requests', 'instance'),
    ),
    timeseries(
      'Latency of the cache',
      'Percentiles of lookups in the history cache. Slow lookups wait for the lock of a workflow.',
      'seconds',
      percentiles((q) => quantile(q, 'svc_history_cache_latency')),
    ),
    timeseries(
      'Shards closed',
      'Shards that an instance released. A few at each start or stop of an instance are usual; a constant rate is not.',
      'perSecond',
      rate('svc_history_shard_context_closed', 'instance'),
      { width: 12, runbooks: ['SvcShardMovement', 'SvcHistoryTaskLatency'] },
    ),
    timeseries(
      'Replication tasks applied',
      'Tasks from other clusters that were applied here. With 0 and a growing lag, replication is stalled.',
      'perSecond',
      rate('svc_history_replication_tasks_applied', 'instance'),
      { width: 12, runbooks: ['SvcReplicationLag'] },
    ),
  ],
});

export const history: Dashboard = {
  name: 'history',
  title: 'History',
  description: 'Workflow executions, and the role that keeps their state.',
  choices: [role, instance, domain('svc_workflow_started'), operation('svc_history_client_requests')],
  rows: (queries) => [workflows(queries), cache(queries), callRow('history', queries)],
};
