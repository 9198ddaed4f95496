import type { StoreCheck } from '../../core/check-severity.ts';
import { type Finding, timeText } from '../probe.ts';
import type {
  ArchivedLog,
  CheckResult,
  LogState,
  ServerReport,
  StorageDirectory,
  StoreReport,
} from './store-report.ts';

/** How long a change is shown: long enough for a person who checks from time to time. */
const changeShownMs = 3_600_000;

/** The greatest difference between two equal start times that were computed from an uptime in whole seconds. */
const sameStartMs = 3000;

const watched = ['identity', 'timeline', 'uptime'] as const;
type Watched = (typeof watched)[number];

interface Change {
  atMs: number;
  found: string;
}

/** What is remembered about a store between polls, as JSON. */
interface RememberedStore {
  identity?: string;
  timeline?: number;
  node?: string;
  startedAtMs?: number;
  log?: StillLog;
  changes: Partial<Record<Watched, Change>>;
}

/** The position of the next entry of the log, and what is known about the time since the last entry was written. */
interface StillLog {
  position: string;
  /** For how long it is known that nothing was written, ms. */
  idleMs: number;
  /** How many runs the process that closes segments had made when it had nothing to wait for any more. */
  passes?: number;
  /** Whether that process has run again since then. */
  isClosed?: boolean;
}

interface Noticed {
  remember: RememberedStore;
  checks: readonly CheckResult[];
  /** Changes that this poll has found and that were not shown before. */
  news: readonly { check: Watched; found: string }[];
}

/** What an earlier poll remembered, as far as it is valid. */
export function readRemembered(recalled: unknown): RememberedStore {
  const { identity, timeline, node, startedAtMs, log, changes } = recordOf(recalled);
  const { position, idleMs, passes, isClosed } = recordOf(log);
  const kept = watched.flatMap((check) => {
    const { atMs, found } = recordOf(recordOf(changes)[check]);
    return typeof atMs === 'number' && typeof found === 'string' ? [[check, { atMs, found }] as const] : [];
  });
  return {
    ...(typeof identity === 'string' && { identity }),
    ...(typeof timeline === 'number' && { timeline }),
    ...(typeof node === 'string' && { node }),
    ...(typeof startedAtMs === 'number' && { startedAtMs }),
    ...(typeof position === 'string' &&
      typeof idleMs === 'number' && {
        log: {
          ...{ position, idleMs, isClosed: isClosed === true },
          ...(typeof passes === 'number' && { passes }),
        },
      }),
    changes: Object.fromEntries(kept),
  };
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** The directories that an earlier poll remembered, as far as they are valid. */
export function readDirectories(recalled: unknown): StorageDirectory[] | undefined {
  const { directories } = recordOf(recalled);
  if (!Array.isArray(directories)) return undefined;
  return directories.flatMap((one) => {
    const { holds, path } = recordOf(one);
    return typeof holds === 'string' && typeof path === 'string' ? [{ holds, path }] : [];
  });
}

/**
 * Compares a report with what earlier polls remembered. The last of these polls was `elapsedMs` ago; 0 if another process of the
 * agent made it.
 */
export function noticeChanges(
  before: RememberedStore,
  report: ServerReport,
  nowMs: number,
  elapsedMs = 0,
): Noticed {
  const fresh = changesOf(before, report);
  const changes = { ...stillShown(before.changes, nowMs) };
  const news = [];
  for (const [check, found] of Object.entries(fresh) as [Watched, string][]) {
    if (changes[check] === undefined) news.push({ check, found });
    changes[check] = { atMs: nowMs, found };
  }
  const { identity = before.identity, timeline = before.timeline } = report;
  const { node = before.node, startedAtMs = before.startedAtMs } = report;
  const log = stillAt(before, report, elapsedMs);
  return {
    remember: { identity, timeline, node, startedAtMs, ...(log && { log }), changes },
    checks: checksOf(report, changes),
    news,
  };
}

/**
 * The position of the log, and for how long it has been the same. No wall clock measures this time: after a jump ahead, an entry
 * that was written a moment ago would count as archived.
 */
function stillAt(
  before: RememberedStore,
  { log, identity }: ServerReport,
  elapsedMs: number,
): RememberedStore['log'] {
  if (log?.position === undefined) return undefined;
  const { position, closes } = log;
  const isStill = before.log?.position === position && before.identity === identity;
  if (!isStill) return { position, idleMs: 0 };
  const { idleMs: idleBeforeMs, passes: passesBefore, isClosed } = before.log!;
  const idleMs = idleBeforeMs + elapsedMs;
  if (isClosed || closes === undefined || idleMs <= closes.afterMs) return { ...before.log!, idleMs };
  // The count begins again at 0 if the statistics are reset.
  const passes = Math.min(passesBefore ?? closes.passes, closes.passes);
  return { position, idleMs, passes, isClosed: closes.passes > passes };
}

/**
 * The changes since the last poll. The start and the timeline of another server, and the start of another node, are not compared
 * with the current values.
 */
function changesOf(before: RememberedStore, report: ServerReport): Partial<Record<Watched, string>> {
  const { identity, timeline, node, startedAtMs, startTimeIsExact } = report;
  if (before.identity !== undefined && identity !== undefined && identity !== before.identity)
    return { identity: `${identity}, it was ${before.identity}` };
  const isOther = before.timeline !== undefined && timeline !== undefined && timeline !== before.timeline;
  const isLater =
    before.node === node &&
    before.startedAtMs !== undefined &&
    startedAtMs !== undefined &&
    startedAtMs > before.startedAtMs + (startTimeIsExact ? 0 : sameStartMs);
  return {
    ...(isOther && { timeline: `timeline ${timeline}, it was ${before.timeline}` }),
    ...(isLater && { uptime: `started again at ${timeText(startedAtMs)}` }),
  };
}

/** The changes that are still shown. A change in the future, after the clock was set back, is shown from now on. */
function stillShown(changes: RememberedStore['changes'], nowMs: number): RememberedStore['changes'] {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([check, { atMs, found }]) =>
      nowMs - atMs >= changeShownMs ? [] : [[check, { atMs: Math.min(atMs, nowMs), found }]],
    ),
  );
}

function checksOf(
  { identity, timeline, startedAtMs }: ServerReport,
  changes: RememberedStore['changes'],
): CheckResult[] {
  const now = {
    identity,
    timeline: timeline === undefined ? undefined : `timeline ${timeline}`,
    uptime: startedAtMs === undefined ? undefined : `started at ${timeText(startedAtMs)}`,
  };
  return watched.flatMap((check): CheckResult[] => {
    const change = changes[check];
    if (change) return [{ check, holds: false, found: change.found }];
    return now[check] === undefined ? [] : [{ check, holds: true, found: now[check] }];
  });
}

/**
 * How far a log is archived at the time of a poll. If nothing was written for as long as archiving takes, everything is archived.
 */
export function archivedLog(
  { isArchivedWhole, empties, closes, ...log }: LogState,
  { log: still }: RememberedStore,
  askedMs: number,
): ArchivedLog {
  const isEmpty = empties !== undefined && still !== undefined && still.idleMs > empties.afterMs;
  const isClosed = closes !== undefined && still?.isClosed === true;
  return { ...log, askedMs, ...((isArchivedWhole || isEmpty || isClosed) && { wholeUntilMs: askedMs }) };
}

/** The log in the finding of a store's probe. */
export const archivedLogOf = (finding: Finding | undefined): ArchivedLog | undefined =>
  finding?.details?.log as ArchivedLog | undefined;

/** The identity of the store's data according to a poll, or to the polls before it. */
export const identityOf = (finding: Finding | undefined): string | undefined =>
  finding?.details?.identity as string | undefined;

/** How far the clock of the store is ahead according to a poll, ms. */
export const clockAheadOf = (finding: Finding | undefined): number | undefined =>
  finding?.details?.clockAheadMs as number | undefined;

/** Whether a poll found that a check holds; undefined for a check that the poll could not make. */
export function checkOf(finding: Finding | undefined, check: StoreCheck): boolean | undefined {
  const checks = (finding?.details?.checks ?? []) as { check: string; holds: unknown }[];
  const holds = checks.find((each) => each.check === check)?.holds;
  return typeof holds === 'boolean' ? holds : undefined;
}

/** The tables of the database in the finding of a store's probe, or the tables that are not in the log. */
export const tablesOf = (
  finding: Finding | undefined,
  which: 'tables' | 'unlogged' = 'tables',
): readonly string[] | undefined => finding?.details?.[which] as readonly string[] | undefined;

/** Since when each failing check has failed, by check, ms since the epoch; `readOnly` is since when writes are refused. */
export type FailingSince = Readonly<Partial<Record<string, number>>>;

/** What an earlier poll remembered, as far as it is valid. */
export function readFailingSince(recalled: unknown): FailingSince {
  const { failing } = (recalled ?? {}) as { failing?: unknown };
  if (typeof failing !== 'object' || failing === null) return {};
  return Object.fromEntries(Object.entries(failing).filter(([, atMs]) => typeof atMs === 'number'));
}

/**
 * Since when the checks of a poll have failed: since the first poll that failed, or earlier if the server knows. A check that is
 * unknown for a while, because a right is missing, counts as failed all the time if it fails before and after. A time in the
 * future, after the clock was set back, counts as now.
 */
export function failingSince(
  before: FailingSince,
  { readOnly, replica }: Pick<StoreReport, 'readOnly' | 'replica'>,
  checks: readonly CheckResult[],
  nowMs: number,
): FailingSince {
  const isRefusing = readOnly === true && replica !== true;
  const writes: Pick<CheckResult, 'holds' | 'lastsS'> & { check: string } = {
    check: 'readOnly',
    holds: !isRefusing,
  };
  const all = [...checks, writes];
  const last = all.flatMap(({ check, holds, lastsS = 0 }) => {
    const knownMs = before[check];
    if (holds === true || (holds === 'unknown' && knownMs === undefined)) return [];
    return [[check, Math.min(knownMs ?? nowMs - Math.round(lastsS * 1000), nowMs)]];
  });
  return Object.fromEntries(last);
}
