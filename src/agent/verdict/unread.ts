import type { ProbeStatus, StatusFacts } from '../report.ts';
import { leastPauseMs } from './condition.ts';
import { longestPauseMs, settlingMs } from './conditions.ts';
import {
  type Begun,
  dependentReasons,
  type Found,
  idOf,
  lineOf,
  type OpenProblem,
  type Unread,
} from './found.ts';
import { isKind, type KindOfProblem, logFaults, processFaults } from './kinds.ts';
import { checkSource, isCheckRead } from './store-evidence.ts';
import { silentIn } from './value-evidence.ts';

/**
 * A source that a problem is read from. While one of its sources cannot be read, nobody knows whether the problem lasts: it
 * stays, and it ends when the source can be read again and says so.
 *
 * - `page/ROLE`: the metrics of a role; `log/ROLE`: what it logs
 * - `result/PROBE`: what a probe finds; `target/PROBE`: what only a successful check shows
 * - `targets/KIND`: what only the checks of all probes of a kind show together
 * - `check/PROBE CHECK`: what one check of a store shows, which is unknown for example without the rights that it needs
 * - `clusters/PROBE`: what the clusters together say about a domain, which takes an answer from each cluster
 * - `readiness/PROBE`: whether a domain can fail over, which takes for example the lag of its standby
 * - `backup/PROBE`: what is wrong with a backup, which only a check that could read it tells
 * - `evidence/PROBE`: whether a run of a backup failed, which only readable evidence tells
 * - `lag/SOURCE to TARGET`: the lag between two clusters
 */
type Source = string;

/** Problems that a probe cannot see while its target is down. */
const seenInside: ReadonlySet<KindOfProblem> = new Set([
  ...(['disk_full', 'locks', 'connections', 'read_only', 'schema', 'data_at_risk', 'recovery_weak'] as const),
  ...(['schema_unread', 'certificate', 'disagreement', 'failover'] as const),
]);
/** Problems of a backup that could be read. */
const ofReadBackup: ReadonlySet<KindOfProblem> = new Set([
  'backup_missing',
  'backup_gone',
  'backup_late',
  'backup_damaged',
  'backup_offsite',
  'backup_retention',
] as const);
/** For kinds that need more than a successful check, the sources that show them. */
const measured: Partial<Record<KindOfProblem, (found: Found) => readonly string[]>> = {
  wal_stalled: ({ subject }) => [`target/store/${subject}`, checkSource(`store/${subject}`, 'wal_backlog')],
  archival_stalled: ({ about }) => [`target/archive/${about.archive}`],
  retention_unarchived: ({ about }) => [`target/archive/${about.archive}`, 'targets/domain'],
  replication_failures: ({ about }) =>
    (about.clusters ?? []).map((cluster) => `target/replication/${cluster}`),
  replication_lag: ({ subject }) => [`lag/${subject}`],
  disagreement: ({ about }) => [`clusters/${about.probe}`],
  failover: ({ about }) => [`readiness/${about.probe}`],
};

/** All sources of a problem. */
export function sourcesOf(found: Found): readonly Source[] {
  const { kind, about, from = [] } = found;
  const probe = about.probe !== undefined && kind !== 'stale' ? [`result/${about.probe}`] : [];
  const inside = seenInside.has(kind) ? [`target/${about.probe}`] : [];
  const backup = ofReadBackup.has(kind) ? [`backup/${about.probe}`] : [];
  const run = kind === 'backup_failed' ? [`evidence/${about.probe}`] : [];
  return [...from, ...probe, ...inside, ...backup, ...run, ...(measured[kind]?.(found) ?? [])];
}

/** The kind of a source, and the name of what it belongs to. */
function partsOf(source: Source): [kind: string, of: string] {
  const end = source.indexOf('/');
  return [source.slice(0, end), source.slice(end + 1)];
}

/**
 * Whether the problems that a source shows never silence it. A role that stops does not serve its page, and a probe without
 * results finds nothing.
 */
export const isIndependent = (source: Source): boolean => /^(?:page|log|result)\//.test(source);

/** Whether a problem is the reason why a source cannot be read. */
export function isWhy({ kind, about }: Found, source: Source): boolean {
  const [by, of] = partsOf(source);
  switch (by) {
    case 'page':
      return about.role === of && isOf(processFaults, kind);
    case 'log':
      return about.role === of && (isOf(processFaults, kind) || isOf(logFaults, kind));
    case 'lag':
      return (
        kind === 'replication' || (kind === 'cluster_down' && of.split(' to ').includes(about.clusters![0]!))
      );
    case 'result':
      return kind === 'stale' && about.probe === of;
    case 'backup':
      return (kind === 'backup_unread' || kind === 'backup_failed') && about.probe === of;
    case 'evidence':
      return kind === 'backup_unread' && about.probe === of;
    case 'check':
      return kind === 'schema_unread' && of === `${about.probe} schema`;
    case 'targets':
      return about.probe?.startsWith(`${of}/`) ?? false;
    default:
      return about.probe === of;
  }
}

const isOf = (group: readonly KindOfProblem[], kind: KindOfProblem): boolean => group.includes(kind);

type IsRead = (source: Source) => boolean;

/** What a probe of a domain found, as far as problems depend on it. */
interface DomainDetails {
  failover?: { ready?: boolean };
  /** The clusters of the domain that did not describe it. */
  notAnswered?: readonly string[];
}
const domainDetailsOf = (probe: ProbeStatus | undefined): DomainDetails => probe?.last?.details ?? {};

const isUnanswered = (probe: ProbeStatus | undefined): boolean =>
  (domainDetailsOf(probe).notAnswered ?? []).length > 0;

/** Whether it is unknown if a domain can fail over. A local domain never fails over, and has no readiness. */
function isReadinessUnknown(probe: ProbeStatus | undefined): boolean {
  const { failover } = domainDetailsOf(probe);
  return failover !== undefined && failover.ready === undefined;
}

/** Tells which sources can be read now. A source that is not watched any more hides nothing. */
function readerOf({ scrapes, probes, replication }: StatusFacts, now: readonly Found[]): IsRead {
  const byName = new Map(probes.map((probe) => [probe.name, probe]));
  const failed = (name: string) => byName.get(name)?.last?.ok === false;
  const page = (role: string) => scrapes.find(({ service }) => service === role);
  const runs = (role: string): boolean => {
    if (page(role)?.up) return true;
    const last = byName.get(`health/${role}`)?.last;
    return last ? last.ok || dependentReasons.has(last.reason ?? '') : !page(role);
  };
  return (source) => {
    const [by, of] = partsOf(source);
    switch (by) {
      case 'page':
        return page(of)?.up ?? runs(of);
      case 'log':
        return runs(of) && !now.some(({ kind, about }) => about.role === of && isOf(logFaults, kind));
      case 'lag':
        return (
          replication.some((one) => of === `${one.source} to ${one.target}`) ||
          !of
            .split(' to ')
            .every((name) => byName.has(`replication/${name}`) || byName.has(`cluster/${name}`))
        );
      case 'result':
      case 'backup':
      case 'evidence':
        return !now.some((one) => isWhy(one, source));
      case 'check':
        return isCheckRead(of, (name) => byName.get(name));
      case 'clusters':
        return !isUnanswered(byName.get(of));
      case 'readiness':
        return !isReadinessUnknown(byName.get(of));
      case 'targets':
        return !probes.some(({ kind, last }) => kind === of && last?.ok === false);
      default:
        return !failed(of);
    }
  };
}

/** An open line of problems from the incident book. */
interface Line {
  line: string;
  from?: readonly Source[];
  lastMs?: number;
  /** Set if no other problem explains the line. */
  cause?: object;
}

/** Tracks problems for which it is not known whether they last. */
interface Silence {
  /**
   * The problems of the last report that nothing shows now, although nothing says that they are over. `open` includes problems
   * that were seen before a restart of the agent.
   */
  of(before: readonly Begun[], now: readonly Found[], open: readonly Line[], at: Moment): readonly Begun[];
  /** Whether nothing can be said about a line. */
  isUnread(line: string): boolean;
  /**
   * Restores the problems that lasted when the previous agent ended. Returns those that no other problem explained: a check
   * takes seconds to show them again, and values take minutes.
   */
  restore(open: readonly OpenProblem[]): readonly Begun[];
}

interface Moment {
  facts: StatusFacts;
  nowMs: number;
  monotonicMs: number;
}

/**
 * For a problem that only an earlier agent has seen, the sources that say nothing about whether it lasts. Such a source is silent
 * and has counted nothing since values could show the problem. What it counted before that may be from before the restart, such
 * as lines of a log that were not read yet, or from before the role hung. The page of a role says more than its log, so the log
 * counts only without a page.
 */
function uncounted({ line, from = [] }: Line, facts: StatusFacts, nowMs: number): Source[] {
  const { counted, scrapes, statsd, logs } = facts;
  const roles = [...scrapes, ...statsd].map(({ service }) => `page/${service}`);
  const watched = new Set([...roles, ...logs.flatMap(({ services }) => services.map((one) => `log/${one}`))]);
  const all = from.filter((source) => watched.has(source));
  const pages = all.filter((source) => source.startsWith('page/'));
  return (pages.length > 0 ? pages : all).filter((source) => {
    const lastMs = Date.parse(counted[source] ?? '');
    return !(lastMs >= nowMs - leastPauseMs || lastMs >= settledMs(line, facts));
  });
}

const kindOf = (line: string): string => line.slice(0, line.indexOf('/'));

/** Kinds that an agent knows about itself as soon as it has started. */
const knownAtOnce: ReadonlySet<string> = new Set(['state', 'reload']);
/** For this long after a start of the agent, a problem that it cannot see does not count as over. */
const settleMs = 60_000;

/** When the values of a line have had the time that they need after a start of the agent. */
const settledMs = (line: string, { startedAt }: StatusFacts): number =>
  Date.parse(startedAt) + Math.max(settlingMs(kindOf(line)), settleMs);

/** Whether this agent has delivered something with the reporter. */
const delivers = (
  { block, kind, lastSuccess }: StatusFacts['reporters'][number],
  subject: string,
  { startedAt }: StatusFacts,
): boolean => subject === `${block}.${kind}` && Date.parse(lastSuccess ?? '') >= Date.parse(startedAt);

/** Whether nothing can be said yet about a line that an earlier agent has seen. */
function isUnknownYet({ line, lastMs = 0 }: Line, facts: StatusFacts, nowMs: number): boolean {
  const probe = facts.probes.find(
    ({ name }) => line === `probe/${name}` || line.startsWith(`probe/${name} `),
  );
  if (probe) return probe.last === undefined;
  const kind = kindOf(line);
  if (knownAtOnce.has(kind)) return false;
  const subject = line.slice(kind.length + 1);
  if (kind === 'stale' && facts.probes.some(({ name, last }) => name === subject && last)) return false;
  if (kind === 'report' && facts.reporters.some((one) => delivers(one, subject, facts))) return false;
  return nowMs < Math.max(settledMs(line, facts), lastMs + longestPauseMs(kind));
}

export function createSilence(): Silence {
  /** The lines that cannot be read; `readMs` is the monotonic time when a source last could not be read. */
  let unread: ReadonlyMap<string, Unread & { readMs?: number }> = new Map();
  /** Lines that an earlier agent has seen and this agent has not. */
  const earlier = new Set<string>();

  return {
    of(before, now, open, { facts, nowMs, monotonicMs }) {
      const isRead = readerOf(facts, now);
      const silent = silentIn(facts);
      const seen = new Set(now.flatMap((one) => [idOf(one), lineOf(one)]));
      const next = new Map<string, Unread & { readMs?: number }>();
      for (const line of seen) earlier.delete(line);
      for (const problem of open) {
        const { line, from = [], cause } = problem;
        if (seen.has(line)) continue;
        const known = unread.get(line);
        const quiet = earlier.has(line) ? uncounted(problem, facts, nowMs) : (silent.get(line) ?? []);
        const sources = from.filter((source) => !isRead(source) || quiet.includes(source));
        const one = { sinceMs: known?.sinceMs ?? nowMs, sources, wasCause: cause !== undefined };
        const readMs = sources.length > 0 ? monotonicMs : known?.readMs;
        // After a source is back, it needs as long to show a problem as after a start of the agent.
        const isSettling = monotonicMs - (readMs ?? Number.NEGATIVE_INFINITY) < settlingMs(kindOf(line));
        const isToCome = earlier.has(line) && isUnknownYet(problem, facts, nowMs);
        if (sources.length > 0 || isSettling || isToCome) next.set(line, { ...one, readMs });
      }
      const missing = before.filter((one) => !seen.has(idOf(one)) && !seen.has(lineOf(one)));
      unread = next;
      return missing.flatMap((one) => {
        const known = next.get(lineOf(one));
        return known ? [{ ...one, unread: known }] : [];
      });
    },
    isUnread: (line) => unread.has(line),
    restore(open) {
      earlier.clear();
      for (const { line } of open) earlier.add(line);
      return open.flatMap(({ line, sinceMs, lastMs, down, from, cause, reason, reasonMs }): Begun[] => {
        // The kind may be from another version of the agent.
        if (!cause || !isKind(cause.kind)) return [];
        const { kind, subject, about, predicate, detail } = cause;
        const reasonsMs = reason !== undefined && reasonMs !== undefined ? { [reason]: reasonMs } : undefined;
        return [
          {
            ...{ kind, subject, about, predicate, detail, reason, line },
            ...{ sinceMs, lastMs, down, reasonsMs, from, evidence: [] },
          },
        ];
      });
    },
  };
}
