import { AgentError } from '../../core/errors.ts';
import type { Durable } from '../../core/ports.ts';
import { type Change, changeKinds, type Incident } from '../report.ts';
import { type Found, isAnotherReason, type OpenProblem } from './found.ts';
import { incidentsShown, type KeptIncident } from './incident-list.ts';

/** What the start of a problem depends on. */
type Seen = Pick<Found, 'pause' | 'quietSinceMs' | 'reason'> & { line: string; sinceMs: number };

/** The starts of problems, the incidents that are over, and changes. All of it survives restarts of the agent. */
interface IncidentBook {
  /**
   * The start of a problem that is seen now: the recorded start, or `sinceMs` for a new problem. A recorded problem that began
   * before the `pause` or a quiet time ended then. A problem that was over is a new problem if its check fails for another
   * reason, such as credentials, or a store that is missing after the role itself was, or if its cause is over.
   */
  start(found: Seen, nowMs: number): number;
  /**
   * Records the problems that last now. A problem that is missing has ended, unless `isUnknown` says that nothing can be said
   * about it yet, for example after a restart of the agent.
   */
  update(lasting: readonly OpenProblem[], nowMs: number, isUnknown: (line: string) => boolean): void;
  /** Records that other problems explain these problems, which ended a short time ago. They do not become incidents. */
  explained(lines: readonly string[]): void;
  /**
   * Corrects what depends on the time that passes after the wall clock jumped: the durations of open problems, and the end of
   * planned work. No change stays in the future. `nowMs`: the wall clock after the jump.
   */
  clockJumped(byMs: number, nowMs: number): void;
  /** The problems that lasted at the last update, or when the restored state was written. */
  lasting(): readonly OpenProblem[];
  /** Whether a problem that is seen now is not new: it lasted at the last update, or until a short pause ago. */
  goesOn(line: string): boolean;
  /** Adds a change, unless it was added before. */
  changed(change: Change): void;
  /** The incidents, newest first. */
  incidents(nowMs: number): readonly Incident[];
  changes(nowMs: number): readonly Change[];
  readonly durable: Durable;
}

const keptMs = 30 * 86_400_000;
/** Bounds the section of the state: 300 incidents of some 400 bytes, and starts of some 100 bytes. */
const mostIncidents = 300;
const mostOpen = 1_000;
const mostChanges = 300;
/** How many changes about planned work that lasts are stored beside the newest changes. */
const mostLasting = 50;
const longestText = 300;
/** A problem that is back within this time is the same problem. */
const pauseMs = 60_000;

const sectionName = 'incidents';
const version = 1;

interface Section {
  version: number;
  open: OpenProblem[];
  incidents: KeptIncident[];
  changes: Change[];
}

const cut = (text: string): string =>
  text.length > longestText ? `${text.slice(0, longestText - 1)}…` : text;

function unreadable(what: string, cause?: unknown): AgentError {
  return new AgentError('state_unreadable', { where: `state: section ${sectionName}`, what }, cause);
}

function decode(bytes: Uint8Array): Section {
  let section: Partial<Section> | null;
  try {
    section = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Partial<Section> | null;
  } catch (thrown) {
    throw unreadable('not JSON', thrown);
  }
  if (section?.version !== version) throw unreadable('unknown version');
  const { open, incidents, changes } = section;
  if (!Array.isArray(open) || !Array.isArray(incidents) || !Array.isArray(changes))
    throw unreadable('a list is missing');
  return section as Section;
}

const inOrder = (changes: readonly Change[]): Change[] =>
  changes.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));

const moved = (change: Change, byMs: number): Change => {
  const later = (time: string) => new Date(Date.parse(time) + byMs).toISOString();
  const { at, until } = change;
  return { ...change, at: later(at), ...(until !== undefined && { until: later(until) }) };
};

/** The newest changes, and planned work before them that lasts: it does not end because other changes follow. Oldest first. */
function bounded(changes: readonly Change[]): Change[] {
  const nowMs = Date.parse(changes.at(-1)?.at ?? '');
  const older = changes.slice(0, -mostChanges);
  const ended = older.findLastIndex(({ at, until }) => at === until);
  const lasting = older.slice(ended + 1).filter(({ until = '' }) => Date.parse(until) > nowMs);
  return [...lasting.slice(-mostLasting), ...changes.slice(-mostChanges)];
}

const incidentOf = (
  { sinceMs, jumpedMs = 0, cause }: OpenProblem & { cause: NonNullable<OpenProblem['cause']> },
  endMs: number,
): KeptIncident => {
  const { id, severity, kind, subject, what, consequences, changes } = cause;
  return {
    id,
    severity,
    cause: kind,
    subject: cut(subject),
    what: cut(what),
    start: new Date(sinceMs).toISOString(),
    end: new Date(Math.max(sinceMs, endMs)).toISOString(),
    durationSeconds: Math.max(0, Math.round((endMs - sinceMs - jumpedMs) / 1e3)),
    ...(consequences && { consequences }),
    ...(changes && changes.length > 0 && { changes }),
  };
};

/** Whether two problems are equal for the state, which then need not be written again. Numbers in their texts may differ. */
const isAlike = (one: OpenProblem | undefined, other: OpenProblem): boolean => keyOf(one) === keyOf(other);
const keyOf = (one: OpenProblem | undefined): string =>
  JSON.stringify(
    one && [
      one.sinceMs,
      one.isDown,
      one.reason,
      one.reasonMs,
      one.lastMs,
      one.cause?.id,
      one.cause?.consequences,
      one.explainedBy?.line,
      one.explainedBy?.endMs,
    ],
  );

/** The pause of a problem that was over before this agent could see it: its events began again after a quiet time. */
function quietOf({ quietSinceMs, sinceMs }: Seen, known: OpenProblem | undefined): Found['pause'] {
  const { lastMs = Number.POSITIVE_INFINITY } = known ?? {};
  // Other events of the problem were counted in that time.
  if (quietSinceMs === undefined || lastMs > quietSinceMs) return undefined;
  return { fromMs: quietSinceMs, untilMs: sinceMs };
}

/** A problem with what the last update recorded about it. */
function continued(one: OpenProblem, before: OpenProblem | undefined): OpenProblem {
  const isOlder = one.cause ? undefined : (one.isOlder ?? before?.isOlder);
  const cause = one.cause ?? (isOlder ? before?.cause : undefined);
  return worst({ ...one, isOlder, jumpedMs: before?.jumpedMs, ...(cause && { cause }) }, before);
}

/** The end of a problem that is not seen any more. `next`: the problems that last. */
function endOf({ lastMs, down }: OpenProblem, next: ReadonlyMap<string, unknown>, nowMs: number): number {
  if (lastMs === undefined) return nowMs;
  // If the role is still down, that is a problem of its own by now.
  return down && next.has(down.line) ? down.lastMs : lastMs;
}

/** Consequences end one by one before their cause does, so the worst consequences are remembered. */
function worst(one: OpenProblem, before: OpenProblem | undefined): OpenProblem {
  const { cause } = one;
  const known = before?.cause;
  if (!cause || known?.id !== cause.id || (known.affected ?? 0) <= (cause.affected ?? 0)) return one;
  return { ...one, cause: { ...cause, consequences: known.consequences, affected: known.affected } };
}

export function createIncidentBook(): IncidentBook {
  let open = new Map<string, OpenProblem>();
  /** Problems that ended a short time ago and may be back soon. */
  let paused = new Map<string, { problem: OpenProblem; endMs: number }>();
  /** Incidents, oldest first. */
  let incidents: KeptIncident[] = [];
  let changes: Change[] = [];
  let frozen: Uint8Array | undefined;

  const close = ({ cause, ...rest }: OpenProblem, endMs: number) => {
    frozen = undefined;
    if (!cause) return;
    incidents = [...incidents, incidentOf({ ...rest, cause }, endMs)].slice(-mostIncidents);
  };
  /**
   * Whether a check passed that had failed because of another problem, and that problem is over, too. If the check fails again,
   * it fails without that cause. Only checks tell this: a value may have been within its limit only for a moment.
   */
  const hasLostCause = ({ cause, explainedBy, reason }: OpenProblem): boolean =>
    reason !== undefined && !cause && explainedBy !== undefined && !open.has(explainedBy.line);
  /** Closes the problems that have been over for longer than a pause. */
  const settle = (nowMs: number) => {
    for (const [line, { problem, endMs }] of paused) {
      // The wall clock may have been set back.
      if (Math.abs(nowMs - endMs) < pauseMs) continue;
      paused.delete(line);
      close(problem, endMs);
    }
  };
  const recent = <T>(all: readonly T[], timeOf: (one: T) => string, nowMs: number): T[] =>
    all.filter((one) => nowMs - Date.parse(timeOf(one)) < keptMs);
  /** The incidents, including paused problems, which are shown as over. */
  const ended = () => [
    ...incidents,
    ...[...paused.values()].flatMap(({ problem: { cause, ...rest }, endMs }) =>
      cause ? [incidentOf({ ...rest, cause }, endMs)] : [],
    ),
  ];

  return {
    start(seen, nowMs) {
      const { line, sinceMs, reason } = seen;
      settle(nowMs);
      const over = paused.get(line);
      if (over && (isAnotherReason(over.problem.reason, reason) || hasLostCause(over.problem))) {
        paused.delete(line);
        close(over.problem, over.endMs);
      }
      const known = open.get(line) ?? paused.get(line)?.problem;
      const startMs = known?.sinceMs ?? sinceMs;
      const pause = seen.pause ?? quietOf(seen, known);
      if (!pause || startMs >= pause.fromMs) return startMs;
      if (known) close(known, Math.min(known.lastMs ?? pause.fromMs, pause.fromMs));
      open.delete(line);
      paused.delete(line);
      return pause.untilMs;
    },
    update(lasting, nowMs, isUnknown) {
      const next = new Map(
        lasting
          .slice(0, mostOpen)
          .map((one) => [one.line, continued(one, open.get(one.line) ?? paused.get(one.line)?.problem)]),
      );
      for (const [line, problem] of open) {
        if (next.has(line)) continue;
        if (isUnknown(line)) next.set(line, problem);
        else paused.set(line, { problem, endMs: endOf(problem, next, nowMs) });
      }
      for (const line of next.keys()) paused.delete(line);
      settle(nowMs);
      const isSame =
        next.size === open.size && [...next].every(([line, one]) => isAlike(open.get(line), one));
      open = next;
      if (!isSame) frozen = undefined;
    },
    explained(lines) {
      for (const line of lines) {
        const { problem, endMs } = paused.get(line) ?? {};
        if (!problem?.cause) continue;
        paused.set(line, { problem: { ...problem, cause: undefined }, endMs: endMs! });
        frozen = undefined;
      }
    },
    clockJumped(byMs, nowMs) {
      const isAffected = ({ at, until = at }: Change) =>
        Date.parse(at) > nowMs || Date.parse(until) > nowMs - byMs;
      changes = inOrder(changes.map((one) => (isAffected(one) ? moved(one, byMs) : one)));
      for (const [line, one] of open) open.set(line, { ...one, jumpedMs: (one.jumpedMs ?? 0) + byMs });
      frozen = undefined;
    },
    goesOn: (line) => open.has(line) || paused.has(line),
    changed(change) {
      const { at, kind } = change;
      const what = cut(change.what);
      if (changes.some((known) => known.kind === kind && known.what === what && known.at === at)) return;
      changes = bounded(inOrder([...changes, { ...change, what }]));
      frozen = undefined;
    },
    incidents: (nowMs) =>
      incidentsShown(
        recent(ended(), ({ end }) => end, nowMs),
        changes,
      ),
    changes: (nowMs) => recent(changes, ({ at }) => at, nowMs).reverse(),
    lasting: () => [...open.values()],
    durable: {
      name: sectionName,
      freeze() {
        const section: Section = { version, open: [...open.values()], incidents: ended(), changes };
        frozen ??= new TextEncoder().encode(JSON.stringify(section));
        return frozen;
      },
      restore(bytes) {
        const section = decode(bytes);
        open = new Map(section.open.map((one) => [one.line, one]));
        incidents = section.incidents.slice(-mostIncidents);
        changes = bounded(section.changes.filter(({ kind }) => changeKinds.includes(kind)));
        paused = new Map();
        frozen = undefined;
      },
    },
  };
}
