import { onSignals } from '../signals.ts';
import { answerOf, type Check, type CheckAnswer, lineOf } from './check.ts';
import { shellText } from './commands.ts';
import {
  hasBegun,
  type JournalLine,
  openJournal,
  type RunSubject,
  type UnfinishedRun,
  unfinishedRun,
} from './journal.ts';
import type { Operator } from './operator.ts';
import { type Refusal, refusal, refusalsUpFront } from './preflight.ts';
import type { Leaves, RecoveryStep } from './procedures.ts';
import { runStepCommand } from './step-command.ts';
import type { SubjectLock } from './subject-lock.ts';
import type { Chosen } from './target.ts';

/**
 * Goes through the steps of a procedure. Every step is written to a journal before and after it, so that an interrupted run
 * resumes at the unfinished step, and an overridden refusal stays on record.
 */

interface SessionOptions {
  procedure: string;
  subject: RunSubject;
  /** What is restored, for a later run that continues this one. */
  chosen?: Chosen;
  steps: readonly RecoveryStep[];
  journal: string;
  lock: Omit<SubjectLock, 'release'>;
  /** Whether the session runs the commands; otherwise it shows each command, and the operator confirms when it is done. */
  execute: boolean;
  /** Whether to start over after an interrupted run. */
  restart?: boolean;
  /** The reason for overriding refusals that can be overridden. */
  force?: string;
  /** Where the output of commands is written; with stderr, stdout has only JSON. */
  commandOutput?: 'stdout' | 'stderr';
  /** Waits between two attempts of a check after a step. */
  pause?: (ms: number) => Promise<void>;
  /** The interval of messages that a command still runs, ms. */
  noticeMs?: number;
}

interface SessionResult {
  ok: boolean;
  startMs: number;
  /** Checks after steps that had no result. */
  notProved: readonly string[];
  /** What a run that stopped leaves behind, such as services that are down. */
  left: readonly Leaves[];
  msg: string;
}

/** Runs the steps. Throws `internal` if the journal cannot be used, after printing what is left behind. */
export async function runSession(options: SessionOptions, operator: Operator): Promise<SessionResult> {
  const { steps, subject, procedure, chosen } = options;
  const unfinished = unfinishedRun(options.journal);
  const leftBefore = leftBy(unfinished, steps);
  if (unfinished) printLeft(leftBefore, operator);
  const before = await resumed(unfinished, options, operator);
  if (before?.fault !== undefined)
    return { ok: false, startMs: Date.now(), notProved: [], left: leftBefore, msg: before.fault };
  const startMs = before?.startMs ?? Date.now();
  const notProved = [...(before?.notProved ?? [])];
  const begun = new Set(before?.begun);
  const done = new Set(before?.done);
  // A run that starts over has not undone the steps of the run before it.
  if (!before) for (const step of unfinished?.begun ?? []) begun.add(step);
  const startLine = {
    event: 'started' as const,
    atMs: startMs,
    procedure,
    subject,
    chosen,
    before: [...begun],
  };
  const journal = openJournal(options.journal);
  const interruption = watchInterruption();
  const write = (line: JournalLine) => {
    if (hasBegun(line)) begun.add(line.step);
    journal.write(line);
  };
  const stop = (msg: string): SessionResult => {
    const left = leftBehind(steps, begun, done);
    write({ event: 'stopped', atMs: Date.now(), msg });
    return { ok: false, startMs, notProved, left, msg };
  };
  try {
    if (!before) write(startLine);
    const todo = steps.filter(({ id }) => !done.has(id));
    const refusals = await Promise.race([refusalsUpFront(todo, options, operator), interruption.came]);
    if (refusals === undefined) return stop(interruptedFault);
    const refused = unforced(refusals, { options, operator, write });
    if (refused !== undefined) return stop(refused);
    for (const [index, step] of steps.entries()) {
      operator.print(`\nStep ${index + 1} of ${steps.length}: ${step.title}\n${step.text}`);
      if (done.has(step.id)) {
        operator.print('Done in the earlier run.');
        continue;
      }
      const result = await runStep(step, {
        ...{ options, operator, write, interruption, succeeded: before?.succeeded ?? [] },
      });
      if (result.fault !== undefined) return stop(`${step.title}: ${result.fault}`);
      notProved.push(...result.notProved);
      write({ event: 'step_done', atMs: Date.now(), step: step.id, notProved: result.notProved });
      done.add(step.id);
    }
    write({ event: 'done', atMs: Date.now(), notProved });
    return { ok: true, startMs, notProved, left: [], msg: 'all steps are done' };
  } catch (thrown) {
    printLeft(leftBehind(steps, begun, done), operator);
    throw thrown;
  } finally {
    interruption.undo();
    journal.close();
  }
}

/**
 * What the run leaves behind: the leftovers of each step that has begun, unless another step has cleared them, or has begun to
 * clear them and states its own leftovers; and what is missing until later steps are done.
 */
function leftBehind(
  steps: readonly RecoveryStep[],
  begun: ReadonlySet<string>,
  done: ReadonlySet<string>,
): Leaves[] {
  const cleared = new Set(
    steps.flatMap(({ id, clears = [], leaves }) => {
      if (done.has(id)) return clears;
      return leaves && begun.has(id) ? clears.filter((other) => other !== id) : [];
    }),
  );
  return steps.flatMap(({ id, leaves, owes }) => {
    if (leaves && begun.has(id) && !cleared.has(id)) return [leaves];
    return owes && begun.size > 0 && !done.has(id) ? [owes] : [];
  });
}

/** What a run that was not finished leaves behind. */
export const leftBy = (run: UnfinishedRun | undefined, steps: readonly RecoveryStep[]): Leaves[] =>
  run ? leftBehind(steps, run.begun, run.done) : [];

/** Prints what is left behind, for the operator of a run that ended early. */
export function printLeft(left: readonly Leaves[], operator: Pick<Operator, 'print'>): void {
  for (const { what, undo } of left) operator.print(`${what} ${undo}`);
}

/** The first refusal that no reason can override. The others are recorded in the journal. */
function unforced(
  refusals: readonly Refusal[],
  { options, operator, write }: Pick<SessionContext, 'options' | 'operator' | 'write'>,
): string | undefined {
  for (const { msg, overridable } of refusals) {
    if (overridable === undefined) return `refused before anything was changed: ${msg}`;
    if (options.force === undefined)
      return `refused before anything was changed: ${msg}; --force REASON overrides this`;
    operator.print(`  overridden: ${options.force}`);
    write({ event: 'forced', atMs: Date.now(), ...overridable, msg, reason: options.force });
  }
  return undefined;
}

/** After this long, what an interrupted run did may no longer be valid, so the operator decides. */
const staleMs = 24 * 36e5;

/** The run to resume; undefined if a new run starts; a fault if the operator must decide. */
async function resumed(
  left: UnfinishedRun | undefined,
  { subject, steps, restart }: SessionOptions,
  operator: Operator,
): Promise<(UnfinishedRun & { fault?: undefined }) | { fault: string } | undefined> {
  if (left === undefined || restart) return undefined;
  if (left.hasStopped && left.begun.size + left.done.size === 0) return undefined;
  const stopped = `the run of ${new Date(left.startMs).toISOString()}, which stopped after ${left.done.size} of ${steps.length} steps`;
  if (!isSame(left.subject, subject)) {
    operator.print(`Starts over: ${stopped}, was for ${JSON.stringify(left.subject)}.`);
    return undefined;
  }
  operator.print(`Resumes ${stopped}; --restart starts over.`);
  const silentMs = Math.abs(Date.now() - left.lastMs);
  if (silentMs > staleMs) {
    const what = `Its last step was ${Math.round(silentMs / 36e5)} h ago`;
    if (operator.isAway) return { fault: `${what}: resume it without --yes, or start over with --restart` };
    if (!(await operator.ask(`${what}. Resume it?`))) return { fault: 'not resumed; --restart starts over' };
  }
  if (left.interrupted) {
    const { command, atMs } = left.interrupted;
    operator.print(
      `It ended during this command, whose result is unknown; started at ${new Date(atMs).toISOString()}:\n  ${shellText(command)}`,
    );
  }
  return left;
}

/**
 * Whether two runs have the same subject. If a backup is named only after the run has begun, it differs from the backup of the
 * completed steps.
 */
const isSame = (one: RunSubject, other: RunSubject): boolean =>
  JSON.stringify(one.target) === JSON.stringify(other.target) &&
  (other.backup === undefined || other.backup === one.backup);

/**
 * A signal between two commands ends the run in the same way as an operator's `no`, so that the run says what it leaves behind.
 */
interface Interruption {
  /** Resolves with the signal. */
  came: Promise<void>;
  hasCome(): boolean;
  undo(): void;
}

function watchInterruption(): Interruption {
  let hasCome = false;
  let tell = () => {};
  const came = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const come = () => {
    hasCome = true;
    tell();
  };
  return { came, hasCome: () => hasCome, undo: onSignals({ stop: come, reload: come }) };
}

const interruptedFault = 'interrupted by a signal';

interface SessionContext {
  interruption: Interruption;
  options: SessionOptions;
  operator: Operator;
  write(line: JournalLine): void;
  /** Commands that succeeded in a run that ended before the checks after them. */
  succeeded: readonly (readonly string[])[];
}

/** Why a step is not done, or which checks after it had no result. */
type StepResult = { fault: string } | { fault?: undefined; notProved: readonly string[] };

async function runStep(step: RecoveryStep, around: SessionContext): Promise<StepResult> {
  const { operator, write } = around;
  const why = await refused(step, around);
  if (why !== undefined) return { fault: why };
  const isDone = step.isDone && (await answerOf(step.isDone));
  if (isDone?.holds === true) {
    operator.print(`  Nothing to run: ${isDone.msg}.`);
    return proofs(step, around);
  }
  if (isIn(around.succeeded, step.commands)) {
    operator.print('  Nothing to run: the commands succeeded in the earlier run.');
    return proofs(step, around);
  }
  showWork(step, around);
  if (step.confirm !== undefined && !(await operator.confirmName('This cannot be undone', step.confirm))) {
    return { fault: `${step.confirm} was not confirmed` };
  }
  const byHand = (step.commands !== undefined && around.options.execute) || !step.byHand ? undefined : true;
  write({ event: 'step_started', atMs: Date.now(), step: step.id, byHand });
  const watched = watch(step, around.options);
  const fault = await act(step, around);
  const disturbed = await watched.end();
  if (fault !== undefined) return { fault };
  if (disturbed === undefined) return proofs(step, around);
  if (around.options.force === undefined) return { fault: disturbed.msg };
  operator.print(`  overridden: ${disturbed.msg}`);
  const forced = { step: step.id, ...disturbed, reason: around.options.force };
  write({ event: 'forced', atMs: Date.now(), ...forced });
  return proofs(step, around);
}

/** Repeats a check while the step is done. `end` waits for the last answer and resolves with the failure, if there was one. */
function watch({ watches }: RecoveryStep, { pause = wait }: SessionOptions) {
  let disturbed: { check: string; msg: string } | undefined;
  let hasEnded = false;
  let wake = () => {};
  const ended = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const ask = async (check: Check) => {
    for (let isLast = false; disturbed === undefined && !isLast; ) {
      isLast = hasEnded;
      const { holds, msg } = await answerOf(check);
      const what = `the check "${check.text}" failed while the step was running, so the step has to be done again`;
      if (holds === false) disturbed = { check: check.id, msg: `${what}: ${msg}` };
      else if (!isLast) await Promise.race([pause(watchMs), ended]);
    }
  };
  const asking = watches && ask(watches);
  return {
    async end() {
      hasEnded = true;
      wake();
      await asking;
      return disturbed;
    },
  };
}

/** Whether there are commands, and all of them are in the list. */
const isIn = (list: readonly (readonly string[])[], commands: RecoveryStep['commands']): boolean => {
  const texts = list.map(shellText);
  return commands?.every((command) => texts.includes(shellText(command))) ?? false;
};

async function refused(
  step: RecoveryStep,
  { options, operator, write, interruption }: SessionContext,
): Promise<string | undefined> {
  for (const check of step.requires ?? []) {
    const isAwaited = check.comesTrue && options.force === undefined;
    const answer = await (isAwaited ? awaited(check, options, interruption) : answerOf(check));
    if (interruption.hasCome()) return interruptedFault;
    const msg = refusal(check, answer, operator);
    if (msg === undefined) continue;
    if (options.force === undefined) return `refused: ${msg}; --force REASON overrides this`;
    operator.print(`  overridden: ${options.force}`);
    write({ event: 'forced', atMs: Date.now(), step: step.id, check: check.id, msg, reason: options.force });
  }
  return undefined;
}

/** Shows what the step is about to do, before anything is asked. Without prompts each command is shown when it runs. */
function showWork(
  { commands, byHand }: RecoveryStep,
  { options, operator }: Pick<SessionContext, 'options' | 'operator'>,
): void {
  if (!commands && byHand !== undefined) operator.print(`  By hand: ${byHand}`);
  if (options.execute && operator.isAway) return;
  for (const command of commands ?? []) operator.print(`  $ ${shellText(command)}`);
}

async function act(
  step: RecoveryStep,
  { options, operator, write }: SessionContext,
): Promise<string | undefined> {
  const { commands } = step;
  if (!commands) {
    if (step.byHand === undefined) return undefined;
    if (operator.isAway) return 'it has to be done by hand; continue without --yes once it is done';
    return (await operator.ask('Is it done?')) ? undefined : 'not done';
  }
  if (!options.execute) {
    if (operator.isAway) return 'it has to be done by hand; add --execute, or continue without --yes';
    return (await operator.ask('Is it done?')) ? undefined : 'not done';
  }
  for (const [index, command] of commands.entries()) {
    if (operator.isAway) operator.print(`  $ ${shellText(command)}`);
    const which = commands.length === 1 ? 'it' : `command ${index + 1} of ${commands.length}`;
    if (!(await operator.ask(`Run ${which}?`))) return 'not run';
    const line = { step: step.id, command };
    write({ event: 'command_started', atMs: Date.now(), ...line });
    const fault = await runStepCommand(command, {
      ...{ lock: options.lock, isDestructive: step.confirm !== undefined, print: operator.print },
      ...{ output: options.commandOutput ?? 'stdout', noticeMs: options.noticeMs },
    });
    write({ event: 'command_ended', atMs: Date.now(), ...line, fault });
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** How often a check is repeated: services need a while to start and to stop. */
const tries = 30;
const pauseMs = 2_000;
/** The interval of the watched check: a supervisor may start a role again at any moment. */
const watchMs = 1_000;

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** The answer of a check once it does not fail any more, or else the answer of the last attempt. */
async function awaited(
  check: Check,
  { pause = wait }: SessionOptions,
  { came, hasCome }: Interruption,
): Promise<CheckAnswer> {
  let answer = await answerOf(check);
  for (let left = tries; answer.holds === false && left > 0 && !hasCome(); left--) {
    await Promise.race([pause(pauseMs), came]);
    answer = await answerOf(check);
  }
  return answer;
}

async function proofs(
  step: RecoveryStep,
  { options, operator, interruption }: SessionContext,
): Promise<StepResult> {
  const notProved: string[] = [];
  for (const check of step.proves ?? []) {
    const answer = await awaited(check, options, interruption);
    if (interruption.hasCome()) return { fault: interruptedFault };
    operator.print(lineOf(check, answer));
    if (answer.holds === true) continue;
    const msg = `${check.text}: ${answer.msg}`;
    if (answer.holds === 'unknown' || check.isAdvisory) notProved.push(msg);
    else return { fault: `the check "${check.text}" failed: ${answer.msg}` };
  }
  return { notProved };
}
