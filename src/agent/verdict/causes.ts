import { compareText } from '../../core/registry/labels.ts';
import type { StatusFacts } from '../report.ts';
import { type Related, rules, saysFatal } from './cause-rules.ts';
import { leastPauseMs } from './condition.ts';
import { type Begun, dependentReasons, idOf, shownSinceMs } from './found.ts';
import { type KindOfProblem, kinds, placeOf, processFaults } from './kinds.ts';
import { probeNamed } from './named.ts';
import { isIndependent, isWhy } from './unread.ts';

/** A problem and the cause that it is listed under. */
export interface Explained {
  found: Begun;
  /** The id of the problem that explains this one; undefined for a cause. */
  causedBy?: string;
}

/** A problem may be seen this much earlier than its cause: probes run half a minute apart, and rates need two results. */
const toleranceMs = 180_000;

/** Whether a cause began early enough for a problem that began at a moment. */
export const isEarlyEnough = ({ sinceMs }: Pick<Begun, 'sinceMs'>, startMs: number): boolean =>
  sinceMs <= startMs + toleranceMs;

/**
 * Whether a cause lasted when a problem began at a moment. A problem that began after the cause became unknown does not show that
 * the cause lasts.
 */
export const isCauseAt = (cause: Begun, startMs: number): boolean =>
  isEarlyEnough(cause, startMs) && (!cause.unread || startMs <= cause.unread.sinceMs + toleranceMs);

/** Whether the times of two problems allow that the first is the cause of the second. */
export type IsInTime = (cause: Begun, effect: Begun) => boolean;
const byStart: IsInTime = (cause, effect) => isCauseAt(cause, shownSinceMs(effect));

/** The order of roles within one kind of problem: a caller comes after the roles that it calls. */
const roleRanks = ['history', 'matching', 'frontend', 'worker'];
const rankOf = ({ about: { role = '' } }: Begun): number => roleRanks.indexOf(role);

/** Whether a problem may be the cause of another by the order of kinds and, within a kind, of roles. */
function isBefore(cause: Begun, effect: Begun): boolean {
  const order =
    placeOf(cause.kind) - placeOf(effect.kind) ||
    rankOf(cause) - rankOf(effect) ||
    compareText(cause.subject, effect.subject);
  // Perhaps only the page of a role that others call is known. The kind of that problem comes after the kinds of the callers'
  // problems.
  return order < 0 || (cause.kind === 'scrape_down' && rankOf(cause) < rankOf(effect));
}

/** The relations by effect and cause. They are indexed because thousands of problems are compared. */
const relations = new Map<KindOfProblem, Map<KindOfProblem, Related[]>>();
for (const { causes, effects, related } of rules)
  for (const effect of effects) {
    const byCause = relations.get(effect) ?? new Map<KindOfProblem, Related[]>();
    relations.set(effect, byCause);
    for (const cause of causes) byCause.set(cause, [...(byCause.get(cause) ?? []), related]);
  }

/** Whether a problem of one kind can explain a problem of another kind, if the two are related. */
export const canCause = (cause: KindOfProblem, effect: KindOfProblem): boolean =>
  relations.get(effect)?.has(cause) ?? false;

/** How late a check may notice something beside its interval and its timeout. */
const checkDelayMs = 15_000;

/** Problems that a check of their own shows, as soon as the cause is there. */
const shownAtOnce: ReadonlySet<KindOfProblem> = new Set(['role_down', 'role_failing', 'recovery_weak']);

/**
 * Whether the check of a cause passed after a role or a standby had failed its own check, and the role does not say that it lacks
 * anything. Then the effect has a cause of its own: a standby lagged before its primary was gone. A role that blames another part
 * may notice the faults of that part long before a check does.
 */
function wasWell(cause: Begun, effect: Begun, facts: StatusFacts): boolean {
  if (!shownAtOnce.has(effect.kind)) return false;
  const check = probeNamed(facts, cause.about.probe);
  if (!check || dependentReasons.has(effect.reason ?? '') || saysFatal(effect)) return false;
  const lateMs = check.intervalMs + check.timeoutMs + checkDelayMs;
  return shownSinceMs(effect) + lateMs < cause.sinceMs;
}

const isOfProcess: ReadonlySet<KindOfProblem> = new Set(processFaults);

/**
 * Whether a cause that consists of events, such as restarts, was over when an effect began. The process of the role may have
 * ended again, and that end is counted only when the next process starts.
 */
function hadEnded({ lastMs, about }: Begun, effect: Begun): boolean {
  if (lastMs === undefined) return false;
  const isOwn = isOfProcess.has(effect.kind) && effect.about.role === about.role;
  if (isOwn && !dependentReasons.has(effect.reason ?? '')) return false;
  return (effect.newSinceMs ?? shownSinceMs(effect)) >= lastMs + leastPauseMs;
}

/** What is asked of most pairs comes first. */
const followsFrom = (effect: Begun, cause: Begun, facts: StatusFacts, isInTime: IsInTime): boolean =>
  canCause(cause.kind, effect.kind) &&
  isBefore(cause, effect) &&
  relations
    .get(effect.kind)!
    .get(cause.kind)!
    .some((related) => related(cause, effect, facts)) &&
  !hadEnded(cause, effect) &&
  !wasWell(cause, effect, facts) &&
  isInTime(cause, effect);

function explains(cause: Begun, effect: Begun, facts: StatusFacts, isInTime: IsInTime): boolean {
  const follows = (one: Begun, of: Begun) => followsFrom(one, of, facts, isInTime);
  // What a role said about itself ended with the role, and what a probe found ended with its results. What a probe saw of a
  // target may be the reason why the target is down.
  const silences = (one: Begun, of: Begun): boolean =>
    one.unread === undefined &&
    of.unread?.sources.some(
      (source) => isWhy(one, source) && (isIndependent(source) || !follows(one, of)),
    ) === true;
  return silences(cause, effect) || (follows(effect, cause) && !silences(effect, cause));
}

/** Whether one problem would explain another problem if both were seen now. */
export const wouldExplain = (cause: Begun, effect: Begun, facts: StatusFacts): boolean =>
  explains(cause, effect, facts, byStart) && !explains(effect, cause, facts, byStart);

const severities = { critical: 0, warning: 1 } as const;

/** How many problems are considered as causes: thousands of problems have few causes. */
export const mostCauses = 200;

/**
 * Lists the problems that a cause explains behind it, and orders causes: critical causes first, then by what can cause what, then
 * by their start. A cause is as severe as the worst problem that it explains.
 */
export function explained(
  all: readonly Begun[],
  facts: StatusFacts,
  isInTime: IsInTime = byStart,
): Explained[] {
  const inOrder = [...all].sort((a, b) => placeOf(a.kind) - placeOf(b.kind) || a.sinceMs - b.sinceMs);
  const candidates = inOrder.slice(0, mostCauses);
  const roots: Begun[] = [];
  const folded = new Map<Begun, Begun[]>();
  for (const effect of inOrder) {
    const cause = rootOf(effect, candidates, (cause, of) => explains(cause, of, facts, isInTime));
    const effects = folded.get(cause) ?? [];
    folded.set(cause, effects);
    if (cause === effect) roots.push(effect);
    else effects.push(effect);
  }
  const worst = new Map(
    roots.map((root) => [
      root,
      Math.min(...[root, ...folded.get(root)!].map(({ kind }) => severities[kinds[kind].severity])),
    ]),
  );
  roots.sort((a, b) => worst.get(a)! - worst.get(b)!);
  return roots.flatMap((root) => {
    const causedBy = idOf(root);
    return [{ found: root }, ...folded.get(root)!.map((found) => ({ found, causedBy }))];
  });
}

/**
 * The root cause of a problem: follows the causes up to a problem that nothing explains. Causes may form a circle: a large heap
 * explains pauses, they explain that the role is down, and that explains why the heap cannot be read. Of a circle the first
 * problem that can be read is the cause.
 */
function rootOf(
  effect: Begun,
  candidates: readonly Begun[],
  isExplainedBy: (cause: Begun, effect: Begun) => boolean,
): Begun {
  const chain = [effect];
  for (;;) {
    const at = chain.at(-1)!;
    const cause = candidates.find((one) => isExplainedBy(one, at));
    if (!cause) return at;
    const start = chain.indexOf(cause);
    if (start >= 0) {
      const circle = candidates.filter((one) => chain.indexOf(one) >= start);
      return circle.find(({ unread }) => !unread) ?? circle[0]!;
    }
    chain.push(cause);
  }
}
