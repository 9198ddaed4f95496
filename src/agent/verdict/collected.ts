import { agentMetrics } from '../../core/agent-metrics.ts';
import { slowByDesign } from '../../monitoring/alerts/requests.ts';
import { canaryDomains } from '../../monitoring/alerts/workflows.ts';
import { limitOf } from './kinds.ts';
import type { Tracks } from './tracks.ts';

/** One series with its newest value. */
export interface Row {
  service: string;
  labels: Readonly<Record<string, string>>;
  /** The value; for a histogram, its count. */
  value: number;
  /** Cumulative counts by upper bound, for a histogram. */
  buckets?: readonly (readonly [bound: number, count: number])[];
  /** The sum, for a histogram that has it. */
  sum?: number;
}

/** The series of a family; empty if there are none. */
export type Rows = (family: string) => readonly Row[];

/** The labels that say what a value belongs to. */
export type About = Readonly<Record<string, string>>;

/** Sums rows with equal labels `about`; a row for which `about` is undefined is left out. */
function summed(
  rows: readonly Row[],
  aboutOf: (row: Row) => About | undefined,
  numberOf = (row: Row): number => row.value,
): Map<string, { value: number; service: string }> {
  const sums = new Map<string, { value: number; service: string }>();
  for (const row of rows) {
    const about = aboutOf(row);
    if (!about) continue;
    const key = JSON.stringify(about);
    const known = sums.get(key);
    if (known) known.value += numberOf(row);
    else sums.set(key, { value: numberOf(row), service: row.service });
  }
  return sums;
}

const byRole = ({ service }: Row): About => ({ role: service });
const byDomain = ({ labels: { domain } }: Row): About | undefined =>
  domain === undefined || domain === 'all' ? undefined : { domain };
/** Matches the canary's domains: a canary starts workflows all the time, and some of them fail or time out on purpose. */
const canary = new RegExp(`^(?:${canaryDomains})$`);
export const isCanary = (domain = ''): boolean => canary.test(domain);
const byList = ({ labels: { domain, tasklist } }: Row): About | undefined =>
  tasklist === undefined ? undefined : { domain: domain ?? '', tasklist };
const byStore = ({ labels: { store = '', database = '' } }: Row): About => ({ store, database });

/** The number of observations that took longer than a limit, which is a bound of the histogram or lies above a bound. */
function slower({ value, buckets = [] }: Row, limit: number): number {
  let within = 0;
  for (const [bound, count] of buckets) if (bound <= limit) within = Math.max(within, count);
  return value - within;
}

const byDesign = new RegExp(/"(.*)"/.exec(slowByDesign)![1]!);
const isQuick = ({ labels: { operation = '' } }: Row) => !byDesign.test(operation);

const isPoll = ({ labels: { operation = '' } }: Row) => operation.includes('Poll');
/** The queue of an active task; undefined for standby tasks, which wait by design. */
const byQueue = ({ service, labels: { operation = '' } }: Row): About | undefined => {
  const [, queue] = /^(Transfer|Timer)ActiveTask/.exec(operation) ?? [];
  return queue === undefined ? undefined : { role: service, queue: queue.toLowerCase() };
};

/** The callees of requests, as the catalog names them. */
const callees = ['frontend', 'history', 'matching'] as const;

/** A rule for one value that is stored of each sample: the family, the labels that it belongs to, and the value. */
interface Collected {
  track: string;
  family: string;
  about(row: Row): About | undefined;
  value?(row: Row): number;
  /** Whether the sum of everything that was counted is stored, including what was counted before a restart of the role. */
  isSum?: true;
  /** Whether the value changes although the role does nothing. */
  isState?: true;
}

const outcomes = ['completed', 'failed', 'canceled', 'continued_as_new', 'timeout'];

/** All values that are stored. Rows with the same track and labels are added up. */
const collected: readonly Collected[] = [
  { track: 'persistence errors', family: 'svc_persistence_errors', about: byRole },
  { track: 'persistence requests', family: 'svc_persistence_requests', about: byRole },
  { track: 'persistence logged', family: 'svc_log_persistence_errors_total', about: byRole },
  {
    track: 'persistence calls',
    family: 'svc_persistence_latency',
    about: ({ service, labels: { operation = '' } }) => ({ role: service, operation }),
  },
  {
    track: 'persistence slow',
    family: 'svc_persistence_latency',
    about: ({ service, labels: { operation = '' } }) => ({ role: service, operation }),
    value: (row) => slower(row, limitOf('SvcPersistenceLatency')),
  },
  {
    track: 'frontend calls',
    family: 'svc_frontend_client_latency',
    about: (row) => (isQuick(row) ? {} : undefined),
  },
  {
    track: 'frontend slow',
    family: 'svc_frontend_client_latency',
    about: (row) => (isQuick(row) ? {} : undefined),
    value: (row) => slower(row, limitOf('SvcFrontendLatency')),
  },
  ...callees.flatMap((callee) =>
    ['errors', 'requests'].map(
      (what): Collected => ({
        track: `request ${what}`,
        family: `svc_${callee}_client_${what}`,
        about: ({ service }) => ({ role: service, callee }),
      }),
    ),
  ),
  // The role's own count of its errors. A role with such a count distinguishes its faults from answers such as "already started".
  // Polls are left out because workers cancel them.
  {
    track: 'served errors',
    family: 'svc_served_errors',
    about: (row) => (isPoll(row) ? undefined : byRole(row)),
  },
  {
    track: 'served quick',
    family: 'svc_served_requests',
    about: (row) => (isPoll(row) ? undefined : byRole(row)),
  },
  { track: 'served requests', family: 'svc_served_requests', about: byRole },
  ...callees.map(
    (callee): Collected => ({
      track: 'asked',
      family: `svc_${callee}_client_requests`,
      about: () => ({ role: callee }),
    }),
  ),
  { track: 'shards closed', family: 'svc_history_shard_context_closed', about: byRole },
  ...(['calls', 'late'] as const).map(
    (what): Collected => ({
      track: `task ${what}`,
      family: 'svc_history_task_queue_latency',
      about: byQueue,
      ...(what === 'late' && { value: (row) => slower(row, limitOf('SvcHistoryTaskLatency')) }),
    }),
  ),
  { track: 'backlog', family: 'svc_matching_tasklist_backlog', about: byList, isState: true },
  { track: 'pollers', family: 'svc_matching_pollers', about: byList, isState: true },
  { track: 'handed', family: 'svc_matching_tasks_dispatched', about: byList },
  { track: 'handed', family: 'svc_matching_poll_success', about: byList },
  { track: 'polls', family: 'svc_matching_poll_success', about: byList },
  { track: 'polls', family: 'svc_matching_poll_timeout', about: byList },
  // Shows whether the product counts polls at all.
  { track: 'any polls', family: 'svc_matching_poll_success', about: () => ({}) },
  { track: 'any polls', family: 'svc_matching_poll_timeout', about: () => ({}) },
  { track: 'timeouts', family: 'svc_workflow_timeout', about: byDomain },
  { track: 'failures', family: 'svc_workflow_failed', about: byDomain },
  {
    track: 'canary timeouts',
    family: 'svc_workflow_timeout',
    about: (row) => (isCanary(row.labels.domain) ? {} : undefined),
  },
  {
    track: 'canary completed',
    family: 'svc_workflow_completed',
    about: (row) =>
      isCanary(row.labels.domain) && !row.labels.domain!.includes('archival') ? byDomain(row) : undefined,
    isSum: true,
  },
  ...outcomes.flatMap((outcome): Collected[] => [
    { track: 'closed', family: `svc_workflow_${outcome}`, about: byDomain },
    {
      track: 'canary closed',
      family: `svc_workflow_${outcome}`,
      about: (row) => (isCanary(row.labels.domain) ? {} : undefined),
    },
  ]),
  { track: 'completed', family: 'svc_workflow_completed', about: () => ({}) },
  { track: 'heap', family: 'svc_memory_heap', about: byRole, isState: true },
  {
    track: 'gc',
    family: 'svc_memory_gc_pause_ms',
    // The family is a counter of ms, or a timer whose sum is in seconds. The quantiles of a summary are left out.
    about: (row) => ('quantile' in row.labels ? undefined : byRole(row)),
    value: ({ value, sum }) => (sum === undefined ? value : sum * 1e3),
    isState: true,
  },
  {
    track: 'fatal',
    family: 'svc_log_entries_total',
    about: (row) => (row.labels.level === 'fatal' ? byRole(row) : undefined),
  },
  { track: 'restarts', family: 'svc_role_restarts_total', about: byRole },
  { track: 'log bytes', family: 'svc_log_bytes_total', about: byRole },
  { track: 'role up', family: 'svc_role_up', about: byRole },
  { track: 'role up', family: 'svc_role_scrape_up', about: byRole },
  { track: 'read', family: 'svc_role_scrape_up', about: byRole },
  {
    track: 'log lost',
    family: 'svc_log_skipped_bytes_total',
    about: (row) => (row.labels.reason === 'start_at_end' ? undefined : byRole(row)),
  },
  {
    track: 'dropped',
    family: 'svc_agent_dropped_total',
    about: ({ labels: { component = '', reason = '' } }) => ({ component, reason }),
  },
  {
    track: 'replication failures',
    family: 'svc_replication_task_failures_total',
    about: ({ labels: { source_cluster: source = '', target_cluster: target = '' } }) => ({ source, target }),
  },
  {
    track: 'wal oldest',
    family: 'svc_store_wal_oldest_unarchived_timestamp_seconds',
    about: byStore,
  },
  {
    track: 'archived',
    family: 'svc_archival_newest_object_timestamp_seconds',
    about: ({ labels: { archive = '', scheme = '' } }) => ({ archive, scheme }),
  },
  {
    track: 'retention',
    family: 'svc_domain_retention_seconds',
    about: byDomain,
  },
  {
    track: 'archiving',
    family: 'svc_domain_archival_enabled',
    about: ({ labels: { domain = '', archive = '' } }) => ({ domain, archive }),
  },
  {
    track: 'refused',
    family: 'svc_agent_series_refused_total',
    // The other refusals are conflicts of names, which the status lists by name.
    about: ({ labels: { family = '', reason = '' } }) =>
      reason.startsWith('limit_') ? { family, reason } : undefined,
  },
  {
    track: 'backup end',
    family: 'svc_backup_last_success_timestamp_seconds',
    about: ({ labels: { backup = '' } }) => ({ backup }),
  },
];

/** The families that are read; a view contains no others. */
export const familiesRead: readonly string[] = [
  ...new Set([...collected.map(({ family }) => family), 'build_information']),
];

/** The counters that stop when the log stops. All other counters of the agent go on. */
const fromLogs = /^svc_log_(?:entries|persistence_errors|bytes)_total$/;
const own: ReadonlySet<string> = new Set(agentMetrics.map(({ name }) => name));

/** Where a family is read from, as `unread.ts` names it; undefined for families that the agent produces itself. */
function sourceOf(family: string): 'log' | 'page' | undefined {
  if (fromLogs.test(family)) return 'log';
  return own.has(family) ? undefined : 'page';
}

/** The track with the total count of each source. While it does not change, the source is silent. */
export const countedTrack = 'counted';

/** By track, all sources that its values were ever read from. */
export type Origins = Map<string, Set<string>>;

/** Stores the values of a new sample. `before` are the services that had values in the previous sample. */
export function collect(
  rows: Rows,
  tracks: Tracks,
  before: ReadonlySet<string>,
  origins: Origins,
): ReadonlySet<string> {
  const seen = new Set<string>();
  const sums = new Map<string, Map<string, { value: number; service: string }>>();
  const counted = new Map<string, number>();
  for (const { track, family, about, value, isState } of collected) {
    const found = rows(family);
    const services = new Set(found.map(({ service }) => service));
    const source = sourceOf(family);
    const from = origins.get(track) ?? new Set();
    origins.set(track, from);
    for (const service of services) {
      seen.add(service);
      if (source !== undefined && service !== '') from.add(`${source}/${service}`);
    }
    if (source !== undefined && !isState)
      for (const row of found) {
        const of = `${source}/${row.service}`;
        counted.set(of, (counted.get(of) ?? 0) + row.value);
      }
    const into = sums.get(track) ?? new Map<string, { value: number; service: string }>();
    sums.set(track, into);
    for (const [key, one] of summed(found, about, value)) {
      const known = into.get(key);
      into.set(key, { value: one.value + (known?.value ?? 0), service: one.service });
    }
  }
  for (const [of, value] of counted) tracks.set(countedTrack, of, value);
  const waiting = sums.get('backlog')!;
  for (const [track, values] of sums) {
    if (sumTracks.has(track)) {
      tracks.accumulate(track, new Map([...values].map(([key, { value }]) => [key, value])));
      continue;
    }
    for (const [key, { value, service }] of values) {
      // Most lists have no backlog, and a list without a backlog is not judged.
      if (listTracks.has(track) && !((waiting.get(key)?.value ?? 0) > 0)) continue;
      tracks.set(track, key, value, !listTracks.has(track) && before.has(service));
    }
  }
  return seen;
}

const sumTracks: ReadonlySet<string> = new Set(
  collected.filter(({ isSum }) => isSum).map(({ track }) => track),
);
const listTracks: ReadonlySet<string> = new Set(['backlog', 'pollers', 'handed', 'polls']);
