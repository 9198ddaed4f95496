import { at, column, type Dashboard, type PanelRow, table, timeline, timeseries } from '../dashboard.ts';
import { instance, type Queries, role } from '../queries.ts';

const own = 'svc_service, instance';
const healthAndRestarts = ({ grownOnce, highest, rate, s }: Queries): PanelRow => ({
  title: 'Health and restarts',
  panels: [
    timeline('Health', 'Result of the health check of each instance.', 'up', highest('svc_role_up', own), {
      width: 8,
      height: 8,
      runbooks: ['SvcHealthFailing', 'SvcRoleUnhealthy'],
    }),
    timeline(
      'Metrics',
      'Whether the last scrape of the role by its agent succeeded.',
      'up',
      highest('svc_role_scrape_up', own),
      { width: 8, height: 8 },
    ),
    timeseries(
      'Restarts by role',
      'Restarts of all instances of a role, as the agents saw them.',
      'perSecond',
      rate('svc_role_restarts_total', 'svc_service'),
      { limits: at('SvcHighRestartRate') },
    ),
    table(
      'Restarts in the shown range',
      'By instance: seen by the agent, counted by the process, and resets of its garbage collection counter.',
      { cluster: 'Cluster', svc_service: 'Role', instance: 'Instance' },
      [
        column('Seen', 'count', grownOnce('svc_role_restarts_total', own), {
          anyIs: 'orange',
        }),
        column('Counted by the process', 'count', grownOnce('svc_restarts', own)),
        column(
          'Counter resets',
          'count',
          `max by (cluster, ${own}) (resets(${s('svc_memory_num_gc')}[$__range]))`,
        ),
      ],
      { width: 12, height: 8, sortBy: 'Seen', runbooks: ['SvcCrashLooping'] },
    ),
    timeseries(
      'Failed health checks',
      'Failed health checks by reason.',
      'perSecond',
      rate('svc_role_health_failures_total', 'svc_service, reason'),
      { width: 12, runbooks: ['SvcHealthFailing'] },
    ),
    timeseries(
      'Changes of health',
      'How often instances became healthy or unhealthy. Many changes: they flap.',
      'perSecond',
      rate('svc_role_health_transitions_total', 'svc_service, to'),
    ),
    timeseries(
      'Duration of the health check',
      'Duration of the last health check.',
      'seconds',
      highest('svc_role_health_check_duration_seconds', own),
    ),
    timeseries(
      'Goroutines',
      'Goroutines grow with the load. If they grow without it, something leaks.',
      'count',
      highest('svc_num_goroutines', own),
    ),
  ],
});

const heap = ({ highest }: Queries): PanelRow => ({
  title: 'Memory',
  panels: [
    timeseries('Heap', 'Heap obtained from the operating system.', 'bytes', highest('svc_memory_heap', own), {
      limits: at('SvcHeapMemory'),
    }),
    timeseries(
      'Heap in use',
      'Spans with at least one object.',
      'bytes',
      highest('svc_memory_heapinuse', own),
    ),
    timeseries(
      'Heap idle',
      'Spans without objects, which the process keeps.',
      'bytes',
      highest('svc_memory_heapidle', own),
    ),
    timeseries(
      'Allocated',
      'Memory that is allocated and not yet freed.',
      'bytes',
      highest('svc_memory_allocated', own),
    ),
    timeseries(
      'Stacks',
      'Stack memory; it grows with the goroutines.',
      'bytes',
      highest('svc_memory_stack', own),
    ),
    timeseries(
      'GOMAXPROCS',
      'Threads that may run at the same time. It should be the number of cores of the container.',
      'count',
      highest('svc_gomaxprocs', own),
    ),
  ],
});

const collections = ({ rate, s }: Queries): PanelRow => ({
  title: 'Garbage collection',
  panels: [
    timeseries(
      'Pauses',
      'Milliseconds of each second for which the process pauses.',
      'msPerSecond',
      `max by (cluster, ${own}) (rate(${s('svc_memory_gc_pause_ms{quantile=""}')}[$__rate_interval])` +
        ` or 1000 * rate(${s('svc_memory_gc_pause_ms_sum')}[$__rate_interval]))`,
      { width: 12, limits: at('SvcGCPause') },
    ),
    timeseries('Collections', 'Garbage collections completed.', 'perSecond', rate('svc_memory_num_gc', own), {
      width: 12,
    }),
  ],
});

export const processes: Dashboard = {
  name: 'process',
  title: 'Process and memory',
  description: 'The processes of the roles: health, restarts, memory and garbage collection.',
  choices: [role, instance],
  rows: (queries) => [healthAndRestarts(queries), heap(queries), collections(queries)],
};
