import { answerOf, type Check, type CheckAnswer, lineOf } from './check.ts';
import type { Operator } from './operator.ts';
import type { RecoveryStep } from './procedures.ts';

/** A reason to refuse a run before it changes anything. */

export interface Refusal {
  msg: string;
  /** The check and its step, if the operator can override the refusal with a reason. */
  overridable?: { step: string; check: string };
}

/** All refusals of the steps that are not done yet; each check is asked once. Prints every answer. */
export async function refusalsUpFront(
  steps: readonly RecoveryStep[],
  options: { execute: boolean },
  operator: Operator,
): Promise<readonly Refusal[]> {
  const refusals: Refusal[] = [];
  const seen = new Set<string>();
  for (const { id, needs = [] } of steps) {
    for (const check of needs) {
      if (seen.has(check.id) || (check.isOfExecution && !options.execute)) continue;
      if (seen.size === 0) operator.print('\nBefore anything is changed:');
      seen.add(check.id);
      const msg = refusal(check, await answerOf(check), operator);
      if (msg === undefined) continue;
      const overridable = { step: id, check: check.id };
      refusals.push(check.isNeverForced ? { msg } : { msg, overridable });
    }
  }
  for (const step of steps) {
    const fault = await unattendedFault(step, options, operator);
    if (fault !== undefined) refusals.push({ msg: `${step.title}: ${fault}` });
  }
  return refusals;
}

/** Prints the answer. Returns why the check refuses; undefined if it does not. */
export function refusal(check: Check, answer: CheckAnswer, operator: Operator): string | undefined {
  operator.print(lineOf(check, answer));
  if (answer.holds === true || (answer.holds === 'unknown' && check.isAdvisory)) return undefined;
  return `${check.text}: ${answer.msg}`;
}

/** Why a step cannot be done without a person, if there is none. */
async function unattendedFault(
  step: RecoveryStep,
  { execute }: { execute: boolean },
  operator: Operator,
): Promise<string | undefined> {
  if (!operator.isAway) return undefined;
  const { commands, byHand, isDone, confirm } = step;
  if (commands === undefined && byHand === undefined) return undefined;
  if (isDone && (await answerOf(isDone)).holds === true) return undefined;
  if (commands === undefined)
    return `it has to be done by hand; continue without --yes. ${byHand?.split('\n')[0]}`;
  if (!execute) return 'it has to be done by hand; add --execute, or continue without --yes';
  if (confirm === undefined || (await operator.confirmName('This cannot be undone', confirm)))
    return undefined;
  return `${confirm} was not confirmed; add --confirm ${confirm}`;
}
