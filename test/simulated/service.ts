import { type CatalogMetric, catalog } from '../../src/core/catalog.ts';
import { frontendCallers } from '../../src/monitoring/dashboards/queries.ts';
import type { Simulated, Tags } from './series.ts';
import { bump, wave } from './time.ts';

/** The origin of a series: an instance of a role, with the labels of its target. */
interface Origin {
  cluster: string;
  role: string;
  instance: string;
}

const operations: Readonly<Record<string, readonly string[]>> = {
  Persistence: ['PersistenceUpdateWorkflowExecution', 'PersistenceGetTasks', 'PersistenceReadHistoryBranch'],
  'Frontend client': [
    'StartWorkflowExecution',
    'RespondDecisionTaskCompleted',
    'PollForDecisionTask',
    'ListOpen',
  ],
  'History client': ['RecordDecisionTaskStarted', 'GetMutableState'],
  'Matching client': ['AddDecisionTask', 'PollForActivityTask'],
};
const values: Readonly<Record<string, readonly string[]>> = {
  domain: ['orders', 'billing'],
  caller: ['shop', 'batch'],
  tasklist: ['main', 'slow'],
  workflow_type: ['Checkout', 'Refund'],
  activity_type: ['charge-card', 'send-mail'],
};
const bounds = [0.01, 0.05, 0.1, 0.5, 1, 5];

/** Every combination of values for the tags. */
export function combinations(tags: readonly string[], of: (tag: string) => readonly string[]): Tags[] {
  return tags.reduce<Tags[]>(
    (made, tag) => made.flatMap((tags) => of(tag).map((value) => ({ ...tags, [tag]: value }))),
    [{}],
  );
}

const isIll = ({ cluster }: Origin) => cluster === 'dc1';
/** How much the store of dc1 fails and is slow, which lasts a quarter of an hour. */
const storeTrouble = (origin: Origin, minute: number) => (isIll(origin) ? bump(minute, 28, 44) : 0);
/** How much the pollers of dc1 are gone, which lasts a while. */
const pollersGone = (origin: Origin, minute: number) => (isIll(origin) ? bump(minute, 15, 32) : 0);

/** Everything that one instance of a role sends of the catalog. */
export function serviceSeries(origin: Origin): Simulated[] {
  const callers = frontendCallers.map(({ tags, ...metric }) => ({
    ...metric,
    tags: tags.filter((tag) => tag !== 'svc_service'),
    roles: ['frontend'],
  }));
  return [...catalog, ...callers]
    .filter(({ roles }) => (roles as readonly string[]).includes(origin.role))
    .flatMap((metric) =>
      combinations(metric.tags, (tag) => operations[metric.group] ?? values[tag] ?? ['other']).flatMap(
        (tags) => metricSeries(metric, origin, tags),
      ),
    );
}

type SentMetric = Pick<CatalogMetric, 'name' | 'kind'> & { group: string };

function metricSeries(metric: SentMetric, origin: Origin, own: Tags): Simulated[] {
  const { cluster, role, instance } = origin;
  const tags = { cluster, job: role, instance, svc_service: role, ...own };
  const restartsAt = isIll(origin) && role === 'history' && instance.startsWith('dc1-a') ? 25 : undefined;
  const series = { name: metric.name, tags, restartsAt };
  if (metric.kind === 'histogram') return histogram(metric, origin, own, series);
  if (metric.kind === 'counter') return [{ ...series, perSecond: (at) => rateOf(metric, origin, own, at) }];
  return [{ ...series, gauge: (at) => gaugeOf(metric, origin, own, at) }];
}

function callsOf(origin: Origin, own: Tags, minute: number): number {
  return 12 * wave(JSON.stringify([origin, own]), minute);
}

function rateOf({ name, group }: SentMetric, origin: Origin, own: Tags, minute: number): number {
  const calls = callsOf(origin, own, minute);
  if (name === 'svc_restarts') return 0;
  if (name === 'svc_memory_gc_pause_ms')
    return 4 * wave(origin.instance, minute) + 140 * heapTrouble(origin, minute);
  if (name === 'svc_memory_num_gc') return 0.3;
  if (name === 'svc_history_shard_context_closed') return 0.01 + 0.4 * bump(minute, 24, 28);
  if (name.endsWith('_errors'))
    return calls * (0.004 + (group === 'Persistence' ? 0.3 : 0.1) * storeTrouble(origin, minute));
  if (name === 'svc_matching_tasks_dispatched') return calls * (1 - 0.9 * pollersGone(origin, minute));
  if (name === 'svc_matching_poll_success') return calls * (1 - 0.9 * pollersGone(origin, minute));
  const shares: Readonly<Record<string, number>> = {
    svc_workflow_failed: 0.02,
    svc_workflow_timeout: 0.005 + 0.4 * storeTrouble(origin, minute),
    svc_workflow_canceled: 0.01,
    svc_workflow_continued_as_new: 0.05,
    svc_workflow_completed: 0.9,
    svc_matching_poll_timeout: 0.4,
    svc_frontend_domain_throttled: own.caller === 'batch' ? 0.02 : 0,
  };
  return calls * (shares[name] ?? 1);
}

const heapTrouble = ({ cluster, role }: Origin, minute: number) =>
  cluster === 'dc1' && role === 'matching' ? bump(minute, 20, 60) : 0;

function gaugeOf({ name }: SentMetric, origin: Origin, own: Tags, minute: number): number {
  const around = wave(JSON.stringify([origin, own, name]), minute);
  const gigabytes = 1.5 + 8 * heapTrouble(origin, minute);
  const sizes: Readonly<Record<string, number>> = {
    svc_num_goroutines: 900,
    svc_gomaxprocs: 4 / around,
    svc_memory_heap: 1e9 * gigabytes,
    svc_memory_heapinuse: 0.7e9 * gigabytes,
    svc_memory_heapidle: 0.3e9 * gigabytes,
    svc_memory_allocated: 0.6e9 * gigabytes,
    svc_memory_stack: 2e7,
    svc_matching_tasklist_backlog: 40 + (own.domain === 'orders' ? 90_000 * pollersGone(origin, minute) : 0),
  };
  return Math.round(sizes[name]! * around);
}

function histogram(metric: SentMetric, origin: Origin, own: Tags, series: Simulated): Simulated[] {
  const isPoll = /Poll/.test(own.operation ?? '');
  const usual = metric.group === 'Persistence' ? 0.01 : 0.04;
  const seconds = (minute: number) => (isPoll ? 3 : usual * (1 + 40 * storeTrouble(origin, minute)));
  const rate = (minute: number) => callsOf(origin, own, minute);
  const bucket = (le: number): Simulated => ({
    ...series,
    name: `${metric.name}_bucket`,
    tags: { ...series.tags, le: Number.isFinite(le) ? String(le) : '+Inf' },
    perSecond: (minute) => rate(minute) * (1 - Math.exp(-le / seconds(minute))),
  });
  return [
    ...[...bounds, Number.POSITIVE_INFINITY].map(bucket),
    { ...series, name: `${metric.name}_count`, perSecond: rate },
    { ...series, name: `${metric.name}_sum`, perSecond: (minute) => rate(minute) * seconds(minute) },
  ];
}
