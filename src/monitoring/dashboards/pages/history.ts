import { at } from '../alerts.ts';
import { domain, instance, operation, role } from '../choices.ts';
import { quantile, rate, share, top } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { percentiles, timeseries } from '../panels.ts';
import { callPanels } from './calls.ts';

const closing = ['completed', 'failed', 'timeout', 'canceled', 'continued_as_new'];
const closedBy = (outcome: string) =>
  `(${rate(`svc_workflow_${outcome}`, 'domain')} or 0 * ${rate('svc_workflow_started', 'domain')})`;
const timeoutShare = `${rate('svc_workflow_timeout', 'domain')} / (${closing.map(closedBy).join(' + ')} > 0)`;

const workflows: Row = {
  title: 'Workflows',
  panels: [
    timeseries(
      'Started and closed',
      'Workflow executions by what became of them. Fewer closed than started: they pile up.',
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
      'Share timed out',
      'Share of the closed workflow executions of a domain that timed out; the 20 worst.',
      'share',
      top(20, timeoutShare),
      { limits: at('SvcWorkflowTimeoutShare') },
    ),
    timeseries(
      'Failed by type',
      'Workflow executions that failed; the 20 worst types.',
      'perSecond',
      top(20, rate('svc_workflow_failed', 'domain, workflow_type')),
    ),
  ],
};

const cache: Row = {
  title: 'Cache, shards and replication',
  panels: [
    timeseries('Cache look-ups', 'Look-ups in the history cache and those that failed.', 'perSecond', [
      { name: 'look-ups', expr: rate('svc_history_cache_requests') },
      { name: 'failed', expr: rate('svc_history_cache_errors') },
    ]),
    timeseries(
      'Share of failed look-ups',
      'Share of the look-ups in the history cache that failed, by instance.',
      'share',
      share('svc_history_cache_errors', 'svc_history_cache_requests', 'instance'),
    ),
    timeseries(
      'Latency of the cache',
      'Percentiles of look-ups in the history cache. Slow look-ups wait for a lock of the same workflow.',
      'seconds',
      percentiles((q) => quantile(q, 'svc_history_cache_latency')),
    ),
    timeseries(
      'Shards given up',
      'Shards that an instance gave up. A few at each start or stop of an instance are usual; without end they are not.',
      'perSecond',
      rate('svc_history_shard_context_closed', 'instance'),
      { width: 12 },
    ),
    timeseries(
      'Replication tasks applied',
      'Tasks from other clusters that were applied here. 0 beside a growing lag: replication stands still.',
      'perSecond',
      rate('svc_history_replication_tasks_applied', 'instance'),
      { width: 12, runbooks: ['SvcReplicationLag'] },
    ),
  ],
};

export const history: Dashboard = {
  name: 'history',
  title: 'History',
  description: 'Workflow executions and the role that keeps their state.',
  choices: [role, instance, domain('svc_workflow_started'), operation('svc_history_client_requests')],
  rows: [workflows, cache, { title: 'Calls to history', panels: callPanels('history') }],
};
