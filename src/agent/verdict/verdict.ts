import type { Durable } from '../../core/ports.ts';
import type { MaintenanceWindow } from '../config/types.ts';
import {
  type Change,
  type ChangeKind,
  changeText,
  type Problem,
  type StatusFacts,
  type StatusReport,
  type Verdict,
} from '../report.ts';
import { createAftermath } from './aftermath.ts';
import { createIncidentBook } from './book.ts';
import { type Explained, explained, isEarlyEnough } from './causes.ts';
import { createChangeFinder } from './changes.ts';
import { untilBack } from './downtime.ts';
import { isPageDown, problemsIn } from './evidence.ts';
import {
  type Begun,
  type ExplainedBy,
  type Found,
  idOf,
  lineOf,
  type OpenProblem,
  reasonSinceMs,
  severityOf,
} from './found.ts';
import { alertNamed, kinds } from './kinds.ts';
import { onceOf } from './named.ts';
import { type PlannedWork, plannedWorkAt } from './planned-work.ts';
import {
  consequencesText,
  doubtfulIn,
  overSentence,
  timeText,
  verdictWithoutProblems,
  whatOf,
  wrongSentence,
} from './sentence.ts';
import { startsInOrder } from './starts.ts';
import { createSilence, sourcesOf } from './unread.ts';

/** The result of judging: the present verdict, and the past. */
type Judgement = Pick<
  StatusReport,
  'verdict' | 'incidents' | 'changes' | 'maintenance' | 'maintenanceReason'
>;

/** Draws conclusions from facts, and remembers when problems began, which problems are over, and what changed. */
export interface Judge {
  /** Judges the facts. `monotonicMs` distinguishes a jump of the wall clock from time that has passed. */
  judge(facts: StatusFacts, nowMs: number, monotonicMs?: number): Judgement;
  /** Adds a change that was announced, such as a deploy. */
  announce(change: Change): void;
  readonly durable: Durable;
}

/** A change this long before a problem may have caused it. */
const changedBeforeMs = 30 * 60_000;
const mostChanges = 5;

/** What failed with a reason: the probe, or else the line of the problem. */
const checkedBy = (found: Found): string => found.about.probe ?? lineOf(found);

/**
 * When a check failed for the first time, by reason. `before` has these times from the last report; undefined if the check
 * succeeded then.
 */
function reasonsOf({ reason }: Found, before: Begun['reasonsMs'], nowMs: number): Begun['reasonsMs'] {
  if (reason === undefined) return undefined;
  if (before?.[reason] !== undefined) return before;
  return { ...before, [reason]: before ? nowMs : 0 };
}

/** Kinds of problems that may be the end of a process. */
const endings: ReadonlySet<string> = new Set([
  'crash_loop',
  'role_down',
  'role_failing',
  'scrape_down',
  'fatal',
]);
/** The end of a process belongs to a problem that began this much before or after it: checks run half a minute apart. */
const exitWithinMs = 10 * 60_000;

/** The problem of a role, with how its process ended last, if that was announced. */
function withExit(found: Begun, changes: readonly Change[]): Begun {
  if (!endings.has(found.kind)) return found;
  const exit = changes.find(
    ({ kind, role, at }) =>
      kind === 'exit' && role === found.about.role && Date.parse(at) >= found.sinceMs - exitWithinMs,
  );
  if (!exit) return found;
  const evidence = { source: 'exit', text: exit.what, at: exit.at } as const;
  return { ...found, evidence: [...found.evidence, evidence] };
}

/** The times of changes, ms. They are computed once, because thousands of problems ask for the times of hundreds of changes. */
const timesOf = onceOf((changes: readonly Change[]) => changes.map(({ at }) => Date.parse(at)));

/**
 * The changes shortly before a moment, newest first. If several changes are equal, such as restarts, only the newest is listed.
 */
function changesBefore(atMs: number, changes: readonly Change[]): Change[] {
  const times = timesOf(changes);
  const recent = changes.filter((_, i) => times[i]! <= atMs && atMs - times[i]! <= changedBeforeMs);
  const texts = recent.map(({ what }) => what);
  return recent.filter(({ what }, i) => texts.indexOf(what) === i).slice(0, mostChanges);
}

function problemOf(
  { found, causedBy }: Explained,
  consequences: readonly string[],
  changes: readonly Change[],
): Problem {
  const { kind, subject, fix, firstSteps, evidence, sinceMs, unread } = found;
  const { alerts, blocks } = kinds[kind];
  const reasonMs = reasonSinceMs(found);
  const before = causedBy === undefined ? changesBefore(sinceMs, changes) : [];
  return {
    id: idOf(found),
    kind,
    subject,
    severity: severityOf(found),
    what: whatOf(found),
    ...(fix !== undefined && { fix }),
    firstSteps: firstSteps ?? alertNamed(alerts[0]!).firstSteps,
    since: new Date(sinceMs).toISOString(),
    ...(reasonMs !== undefined && { reasonSince: new Date(reasonMs).toISOString() }),
    ...(unread?.wasCause && { unreadSince: new Date(unread.sinceMs).toISOString() }),
    evidence,
    ...(causedBy !== undefined && { causedBy }),
    consequences,
    ...(before.length > 0 && { changes: before }),
    blocks,
    runbook: alerts[0],
  };
}

/** The problems that each cause explains, by the id of the cause; those that nothing explains are under an empty id. */
function consequencesOf(all: readonly Explained[]): Map<string, Explained[]> {
  const byCause = new Map<string, Explained[]>();
  for (const one of all) {
    const { causedBy = '' } = one;
    const known = byCause.get(causedBy);
    if (known) known.push(one);
    else byCause.set(causedBy, [one]);
  }
  return byCause;
}

/** What the incident book stores about a problem. A problem that no other problem explains becomes an incident. */
function openOf(
  { found, causedBy }: Explained,
  problem: Problem,
  effects: readonly Explained[],
  cause: Begun | undefined,
): OpenProblem {
  const { id, severity, kind, subject, what, changes } = problem;
  const { about, predicate, detail } = found;
  const consequences = consequencesText(
    effects.map((one) => one.found),
    [found],
  );
  return {
    line: lineOf(found),
    sinceMs: found.sinceMs,
    ...(found.lastMs !== undefined && { lastMs: found.lastMs }),
    ...(found.down && { down: found.down }),
    from: sourcesOf(found),
    reason: found.reason,
    reasonMs: reasonSinceMs(found),
    ...(kind === 'role_down' && { isDown: true }),
    ...(cause && !isEarlyEnough(cause, found.sinceMs) && { isOlder: true }),
    ...(causedBy === undefined && {
      cause: {
        ...{ id, severity, kind, subject, what, consequences, affected: effects.length, changes },
        ...{ about, predicate, detail },
      },
    }),
  };
}

/** The verdict if no problem is known. `over` are causes that ended while some evidence still looks back at them. */
function calmVerdict(over: readonly ExplainedBy[], facts: StatusFacts): Verdict {
  const { level, headline } =
    over.length > 0
      ? ({ level: 'unknown', headline: overSentence(over) } as const)
      : verdictWithoutProblems(facts);
  return { ok: level === 'ok', level, headline, sentence: `${headline}.`, problems: [] };
}

/** The problem as it was when the subject was down, if a new agent has seen only one failed check since. */
const stillDown = (found: Found, down: ReadonlySet<string>): Found =>
  down.has(lineOf(found)) ? { ...found, kind: 'role_down' } : found;

const worstOf = (problems: readonly Problem[]): Problem['severity'] =>
  problems.some(({ severity }) => severity === 'critical') ? 'critical' : 'warning';

function verdictOf(all: readonly Explained[], problems: readonly Problem[], nowMs: number): Verdict {
  const doubtful = doubtfulIn(all);
  const sure = all.findIndex((one) => !doubtful.has(one));
  const first = problems[Math.max(0, sure)]!;
  const { id, kind, subject, what, since, changes = [] } = first;
  const { headline, sentence } = wrongSentence(all, nowMs);
  const change = changes.find((one) => !followed.has(one.kind));
  return {
    ok: false,
    level: sure >= 0 ? worstOf(problems) : 'unknown',
    headline,
    sentence: change ? `${sentence} ${beforeText(change, nowMs)}` : sentence,
    cause: { id, kind, subject, what, since },
    problems,
  };
}

/** Kinds of changes that are as often the effect of a problem as its cause. */
const followed: ReadonlySet<ChangeKind> = new Set(['restart', 'exit', 'maintenance']);
const beforeText = (change: Change, nowMs: number): string =>
  `Shortly before, at ${timeText(Date.parse(change.at), nowMs)}: ${changeText(change)}.`;

const workText = ({ until, reason }: PlannedWork, nowMs: number): string =>
  `Planned work until ${timeText(Date.parse(until), nowMs)}: ${reason}.`;

/** A smaller jump is only an adjustment of the clock. */
const leastJumpMs = 1_000;

/** Creates a judge. `windows` returns the weekly maintenance windows of the current configuration. */
export function createJudge(windows: () => readonly MaintenanceWindow[] = () => []): Judge {
  const book = createIncidentBook();
  const findChanges = createChangeFinder();
  const aftermath = createAftermath();
  const silence = createSilence();
  let before: readonly Begun[] = [];
  let clockAheadMs: number | undefined;

  /** Corrects recorded times after a jump. `aheadMs` is how far the wall clock is ahead of the monotonic clock. */
  const noteJump = (nowMs: number, monotonicMs: number) => {
    const aheadMs = nowMs - monotonicMs;
    const jumpMs = aheadMs - (clockAheadMs ?? aheadMs);
    clockAheadMs = aheadMs;
    if (Math.abs(jumpMs) < leastJumpMs) return;
    book.clockJumped(jumpMs, nowMs);
    aftermath.clockJumped(jumpMs);
  };
  /** When a problem that the last report did not have was back. */
  const backOf = (line: string, seenMs: number, last: Begun | undefined): Pick<Begun, 'backMs'> => {
    const backMs = last ? last.backMs : book.goesOn(line) ? seenMs : undefined;
    return backMs === undefined ? {} : { backMs };
  };
  const begun = (
    found: Found,
    nowMs: number,
    reasonsBefore: Begun['reasonsMs'],
    last: Begun | undefined,
  ): Begun => {
    const reasonsMs = reasonsOf(found, reasonsBefore, nowMs);
    const seenMs = Math.min(found.sinceMs ?? nowMs, nowMs);
    // A check that failed before this reason appeared failed for another reason.
    const sinceMs = Math.max(seenMs, reasonsMs?.[found.reason ?? ''] ?? 0);
    const line = lineOf(found);
    const back = backOf(line, seenMs, last);
    return { ...found, ...back, sinceMs: book.start({ ...found, line, sinceMs }, nowMs), reasonsMs };
  };

  return {
    judge(facts, nowMs, monotonicMs = nowMs) {
      noteJump(nowMs, monotonicMs);
      for (const change of findChanges(facts)) book.changed(change);
      const down = new Set(book.lasting().flatMap(({ line, isDown }) => (isDown ? [line] : [])));
      const found = problemsIn(facts, nowMs)
        .filter((one) => !one.onlyGoesOn || book.goesOn(lineOf(one)))
        .map((one) => (book.goesOn(lineOf(one)) ? aftermath.apart(stillDown(one, down)) : one));
      const known = new Set(found.map(lineOf).filter(book.goesOn));
      const changes = book.changes(nowMs);
      const unread = silence.of(before, found, book.lasting(), { facts, nowMs, monotonicMs });
      const isUnknown = (line: string) => silence.isUnread(line) || isPageDown(line, facts);
      const reasonsBefore = new Map(
        before.flatMap((one) => (one.reasonsMs ? [[checkedBy(one), one.reasonsMs] as const] : [])),
      );
      const last = new Map(before.map((one) => [lineOf(one), one]));
      before = [...found, ...unread].map((one) => {
        const earlier = last.get(lineOf(one));
        const present = untilBack(one, found, earlier, { facts, nowMs });
        return withExit(begun(present, nowMs, reasonsBefore.get(checkedBy(one)), earlier), changes);
      });
      const moment = { nowMs, facts, isUnknown, goesOn: book.goesOn };
      const isInTime = aftermath.timesOf(before, moment);
      const isNew = (line: string) => !known.has(line) && !silence.isUnread(line);
      const all = startsInOrder(explained(before, facts, isInTime), isNew, facts);
      const { left, over, explainedBy, explainedLate } = aftermath.of(all, moment);
      const lasting = all.filter((one) => !left.has(one));
      const seen = new Set(all.map((one) => lineOf(one.found)));
      const effects = consequencesOf(lasting);
      const effectsOf = ({ found: one }: Explained) => effects.get(idOf(one)) ?? [];
      const problems = lasting.map((one) =>
        problemOf(
          one,
          effectsOf(one).map((effect) => idOf(effect.found)),
          changes,
        ),
      );
      // A problem that a cause leaves behind has begun, but becomes no incident of its own.
      const causes = new Map(lasting.map(({ found: one }) => [idOf(one), one]));
      const kept = new Map(book.lasting().map((one) => [one.line, one]));
      /** What the incident book has about a problem that cannot be read, with the downtime that its check shows all the same. */
      const recorded = (one: Begun): OpenProblem[] => {
        const known = kept.get(lineOf(one));
        return known ? [{ ...known, lastMs: one.lastMs, down: one.down }] : [];
      };
      const open: OpenProblem[] = [
        ...lasting.flatMap((one, i) =>
          one.found.unread
            ? recorded(one.found)
            : [openOf(one, problems[i]!, effectsOf(one), causes.get(one.causedBy ?? ''))],
        ),
        // The page of a role that is down is no incident beside the incident of the role.
        ...[...kept.values()]
          .filter(({ line }) => isPageDown(line, facts) && !seen.has(line))
          .map(({ line, sinceMs }) => ({ line, sinceMs })),
        ...[...left].map(({ found: { sinceMs, lastMs, down }, found: one }) => ({
          line: lineOf(one),
          sinceMs,
          lastMs,
          down,
        })),
      ].map((one) => ({ ...one, explainedBy: explainedBy.get(one.line) }));
      book.update(open, nowMs, isUnknown);
      book.explained(explainedLate);
      const work = plannedWorkAt(nowMs, changes, windows());
      const verdict = problems.length > 0 ? verdictOf(lasting, problems, nowMs) : calmVerdict(over, facts);
      return {
        verdict: work ? { ...verdict, sentence: `${verdict.sentence} ${workText(work, nowMs)}` } : verdict,
        incidents: book.incidents(nowMs),
        changes,
        ...(work && { maintenance: work.until, maintenanceReason: work.reason }),
      };
    },
    announce: (change) => book.changed(change),
    durable: {
      ...book.durable,
      restore(bytes) {
        book.durable.restore(bytes);
        aftermath.restore(book.lasting());
        before = silence.restore(book.lasting());
      },
    },
  };
}
