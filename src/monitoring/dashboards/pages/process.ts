import { at } from '../alerts.ts';
import { instance, role } from '../choices.ts';
import { grownOnce, highest, rate } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { column, table, timeline, timeseries } from '../panels.ts';

const own = 'svc_service, instance';
const pause =
  `max by (cluster, ${own}) (rate(svc_memory_gc_pause_ms{quantile=""}[$__rate_interval])` +
  ' or 1000 * rate(svc_memory_gc_pause_ms_sum[$__rate_interval]))';
const memory = (name: string) => highest(`svc_memory_${name}`, own);

const life: Row = {
  title: 'Health and restarts',
  panels: [
    timeline('Health', 'What the health check of each instance says.', 'up', highest('svc_role_up', own), {
      width: 8,
      height: 8,
      runbooks: ['SvcHealthFailing'],
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
      'All instances of a role together, as the agents saw them.',
      'perSecond',
      rate('svc_role_restarts_total', 'svc_service'),
      { limits: at('SvcHighRestartRate') },
    ),
    table(
      'Restarts in the shown range',
      'By instance: seen by the agent, counted by the process itself, and as its count of collections began again.',
      { cluster: 'Cluster', svc_service: 'Role', instance: 'Instance' },
      [
        column('Seen', 'count', grownOnce('svc_role_restarts_total', own), {
          anyIs: 'orange',
        }),
        column('Own count', 'count', grownOnce('svc_restarts', own)),
        column('Began again', 'count', `max by (cluster, ${own}) (resets(svc_memory_num_gc[$__range]))`),
      ],
      { width: 8, height: 8, sortBy: 'Seen', runbooks: ['SvcCrashLooping'] },
    ),
    timeseries(
      'Failed health checks',
      'By reason.',
      'perSecond',
      rate('svc_role_health_failures_total', 'svc_service, reason'),
      { runbooks: ['SvcHealthFailing'] },
    ),
    timeseries(
      'Changes of health',
      'How often an instance went up or down. Many: it flaps.',
      'perSecond',
      rate('svc_role_health_transitions_total', 'svc_service, to'),
    ),
    timeseries(
      'Duration of the health check',
      'How long the last health check took.',
      'seconds',
      highest('svc_role_health_check_duration_seconds', own),
      { width: 12 },
    ),
    timeseries(
      'Goroutines',
      'They grow with the work; where they grow without it, something leaks.',
      'count',
      highest('svc_num_goroutines', own),
      { width: 12 },
    ),
  ],
};

const heap: Row = {
  title: 'Memory',
  panels: [
    timeseries('Heap', 'Heap obtained from the operating system.', 'bytes', memory('heap'), {
      limits: at('SvcHeapMemory'),
    }),
    timeseries('Heap in use', 'Spans with at least one object.', 'bytes', memory('heapinuse')),
    timeseries('Heap idle', 'Spans without objects: held, and not needed now.', 'bytes', memory('heapidle')),
    timeseries('Allocated', 'Allocated and not yet freed.', 'bytes', memory('allocated')),
    timeseries('Stacks', 'Stacks in use; they grow with the goroutines.', 'bytes', memory('stack')),
    timeseries(
      'Threads that may run',
      'Threads that may run code at the same time. Below the cores that the container has, it is set wrong.',
      'count',
      highest('svc_gomaxprocs', own),
    ),
  ],
};

const collections: Row = {
  title: 'Garbage collection',
  panels: [
    timeseries(
      'Pauses',
      'How long the process stands still for collections, in each second.',
      'msPerSecond',
      pause,
      { width: 12, limits: at('SvcGCPause') },
    ),
    timeseries('Collections', 'Garbage collections completed.', 'perSecond', rate('svc_memory_num_gc', own), {
      width: 12,
    }),
  ],
};

export const processes: Dashboard = {
  name: 'process',
  title: 'Process and memory',
  description:
    'The processes of the roles: whether they live, how often they restart, what memory they hold.',
  choices: [role, instance],
  rows: [life, heap, collections],
};
