import { compareText } from '../../core/registry/labels.ts';
import type { Change, Incident } from '../report.ts';
import { isKind, kinds, processFaults } from './kinds.ts';
import { overTextOf, storeOf } from './sentence.ts';

/** A stored incident. The text about its end is made when it is read, by the version of the agent that reads it. */
export type KeptIncident = Omit<Incident, 'over'>;

/** A restart belongs to an incident if it was seen this much before its start, or after its end: pages are read late. */
const restartWithinMs = 60_000;

/** Kinds of incidents that may be nothing but a restart of the role. A crash loop says itself that the role restarts. */
const ofProcess: ReadonlySet<string> = new Set(processFaults.filter((kind) => kind !== 'crash_loop'));

interface Restart {
  role: string | undefined;
  atMs: number;
}

const hasRestarted = (
  { cause, subject, start, end }: KeptIncident,
  restarts: readonly Restart[],
): boolean => {
  if (!ofProcess.has(cause)) return false;
  const fromMs = Date.parse(start) - restartWithinMs;
  const untilMs = Date.parse(end) + restartWithinMs;
  return restarts.some(({ role, atMs }) => role === subject && atMs >= fromMs && atMs <= untilMs);
};

/** What an incident is about for people, if its subject is only a part: the store of a database, or the role that others call. */
function wholeOf({ cause, subject }: KeptIncident): string | undefined {
  if (!isKind(cause)) return undefined;
  if (kinds[cause].noun === 'store') return storeOf(subject);
  return cause === 'request_errors' ? subject.replace(/^.* to /, 'several roles to ') : undefined;
}

/** Whether two incidents are one fault: of two databases of a store, or of a role that two other roles call. */
const isOneFault = (one: KeptIncident, other: KeptIncident): boolean =>
  one.cause === other.cause &&
  one.subject !== other.subject &&
  wholeOf(one) !== undefined &&
  wholeOf(one) === wholeOf(other) &&
  one.start <= other.end &&
  other.start <= one.end;

/** One incident for two parts that were affected at the same time. The texts are those of the longer incident. */
function merged(one: KeptIncident, other: KeptIncident): KeptIncident {
  const whole = wholeOf(one)!;
  const longer = one.durationSeconds >= other.durationSeconds ? one : other;
  const [start, end] = [
    [one.start, other.start].sort(compareText)[0]!,
    [one.end, other.end].sort(compareText)[1]!,
  ];
  const spanOf = (from: string, until: string) => Math.round((Date.parse(until) - Date.parse(from)) / 1e3);
  // The wall clock may have jumped.
  const jumpedSeconds = spanOf(longer.start, longer.end) - longer.durationSeconds;
  return {
    ...longer,
    id: `${longer.cause}/${whole}`,
    subject: whole,
    what: longer.what.replace(longer.subject, whole),
    start,
    end,
    durationSeconds: Math.max(0, spanOf(start, end) - jumpedSeconds),
  };
}

/**
 * The incidents as people read them, newest first. An outage of a store is one incident, however many of its databases are
 * checked, and so is a role that fails the requests of several others. The text about the end says whether the role restarted.
 */
export function incidentsShown(kept: readonly KeptIncident[], changes: readonly Change[]): Incident[] {
  const shown: KeptIncident[] = [];
  for (const one of kept) {
    const at = shown.findIndex((other) => isOneFault(one, other));
    if (at < 0) shown.push(one);
    else shown[at] = merged(shown[at]!, one);
  }
  const restarts = changes
    .filter(({ kind }) => kind === 'restart')
    .map(({ role, at }): Restart => ({ role, atMs: Date.parse(at) }));
  return shown
    .sort((a, b) => compareText(b.end, a.end))
    .map((one) => ({ ...one, over: overTextOf(one.cause, one.subject, hasRestarted(one, restarts)) }));
}
