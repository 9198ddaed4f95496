import { spawn } from 'node:child_process';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AgentError, errorText, systemCode } from '../../core/errors.ts';
import { onSignals } from '../cli/io.ts';
import { type Lock, takeLock } from '../state/lock.ts';
import type { Check, CheckAnswer } from './checks.ts';
import { type Subject, shellText } from './commands.ts';
import type { RecoveryStep } from './procedures.ts';

/**
 * Goes through the steps of a procedure. Every step is written to a journal before and after it, so that an interrupted
 * run resumes at the step that was not finished, and a refusal that was overridden stays on record.
 */

/** One line of the journal; JSON. */
export type JournalLine =
  | { event: 'started'; atMs: number; procedure: string; subject: object }
  | { event: 'step_started'; atMs: number; step: string }
  /** `pid` of the command, which may outlive the run. */
  | { event: 'command_started'; atMs: number; step: string; command: readonly string[]; pid?: number }
  | { event: 'step_done'; atMs: number; step: string; notProved?: readonly string[] }
  | { event: 'forced'; atMs: number; step: string; check: string; msg: string; reason: string }
  | { event: 'stopped'; atMs: number; msg: string }
  | { event: 'done'; atMs: number; notProved: readonly string[] };

export interface SessionOptions {
  procedure: string;
  subject: object;
  steps: readonly RecoveryStep[];
  /** File of the journal. */
  journal: string;
  /** Runs commands; otherwise each is shown, and the operator confirms when it is done. */
  execute: boolean;
  /** Starts over after an interrupted run. */
  restart?: boolean;
  /** Why refusals that can be overridden are. */
  force?: string;
  /** Where the output of commands goes; stderr keeps stdout free for JSON. */
  commandOutput?: 'stdout' | 'stderr';
}

/** Prompts and output of a session: a terminal, or a script with `--yes`. */
export interface Operator {
  /** There is no prompt: steps that need a person are not done. */
  isAway?: boolean;
  print(line: string): void;
  /** Whether to go on. */
  ask(question: string): Promise<boolean>;
  /** Whether the operator typed this very name. */
  confirmName(what: string, name: string): Promise<boolean>;
}

export interface SessionResult {
  ok: boolean;
  startMs: number;
  /** Checks after steps that had no result. */
  notProved: readonly string[];
  msg: string;
}

interface UnfinishedRun {
  startMs: number;
  done: Set<string>;
  notProved: string[];
  /** The last command that was started. */
  command?: { words: readonly string[]; pid?: number };
}

/** Lines of an unfinished run of the same procedure and subject; none after a run that was completed. */
function unfinishedRun(journal: string, subject: object): UnfinishedRun | undefined {
  let text: string;
  try {
    text = readFileSync(journal, 'utf8');
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
  let run: UnfinishedRun | undefined;
  for (const written of text.split('\n')) {
    const line = parsed(written);
    if (line?.event === 'started') {
      const isSame = JSON.stringify(line.subject) === JSON.stringify(subject);
      run = isSame ? { startMs: line.atMs, done: new Set(), notProved: [] } : undefined;
    } else if (line?.event === 'done') run = undefined;
    else if (run && line?.event === 'step_done') {
      run.done.add(line.step);
      run.notProved.push(...(line.notProved ?? []));
    } else if (run && line?.event === 'command_started') run.command = { words: line.command, pid: line.pid };
  }
  return run;
}

function parsed(line: string): JournalLine | undefined {
  try {
    return JSON.parse(line) as JournalLine;
  } catch {
    return undefined;
  }
}

/** A journal whose lines are on the disk before the next step begins. */
function openJournal(path: string): { write(line: JournalLine): void; close(): void } {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  const fd = openSync(path, 'a', 0o640);
  // A run that was killed may have left a line without its end.
  let lead = '\n';
  return {
    write(line) {
      writeSync(fd, `${lead}${JSON.stringify(line)}\n`);
      lead = '';
      fsyncSync(fd);
    },
    close: () => closeSync(fd),
  };
}

export async function runSession(options: SessionOptions, operator: Operator): Promise<SessionResult> {
  const { steps, subject, procedure } = options;
  const before = options.restart ? undefined : unfinishedRun(options.journal, subject);
  const startMs = before?.startMs ?? Date.now();
  const notProved = [...(before?.notProved ?? [])];
  const survivor = stillRunning(before?.command);
  if (survivor !== undefined) return { ok: false, startMs, notProved, msg: survivor };
  const journal = openJournal(options.journal);
  const write = (line: JournalLine) => journal.write(line);
  try {
    if (before) operator.print(resumedText(before, steps.length));
    else write({ event: 'started', atMs: startMs, procedure, subject });
    for (const [index, step] of steps.entries()) {
      operator.print(`\nStep ${index + 1} of ${steps.length}: ${step.title}\n${step.text}`);
      if (before?.done.has(step.id)) {
        operator.print('Done in the earlier run.');
        continue;
      }
      const result = await runStep(step, { options, operator, write });
      if (result.fault !== undefined) {
        const msg = `${step.title}: ${result.fault}`;
        write({ event: 'stopped', atMs: Date.now(), msg });
        return { ok: false, startMs, notProved, msg };
      }
      notProved.push(...result.notProved);
      write({ event: 'step_done', atMs: Date.now(), step: step.id, notProved: result.notProved });
    }
    write({ event: 'done', atMs: Date.now(), notProved });
    return { ok: true, startMs, notProved, msg: 'all steps are done' };
  } finally {
    journal.close();
  }
}

const resumedText = ({ startMs, done }: UnfinishedRun, steps: number): string =>
  `Resumes the run of ${new Date(startMs).toISOString()}, which stopped after ${done.size} of ${steps} steps; --restart begins anew.`;

/** A command keeps running when only the run was killed: a second restore beside it would ruin both. */
function stillRunning(command: UnfinishedRun['command']): string | undefined {
  if (command?.pid === undefined) return undefined;
  try {
    const running = readFileSync(`/proc/${command.pid}/cmdline`, 'utf8').split('\0');
    const [last] = command.words.slice(-1);
    if (!last || !running.includes(last)) return undefined;
  } catch {
    return undefined;
  }
  return `the command of the earlier run still runs (pid ${command.pid}): ${shellText(command.words)}; wait for its end`;
}

interface SessionContext {
  options: SessionOptions;
  operator: Operator;
  write(line: JournalLine): void;
}

/** Why a step is not done, or which check after it had no result. */
type StepResult = { fault: string } | { fault?: undefined; notProved: readonly string[] };

async function runStep(step: RecoveryStep, around: SessionContext): Promise<StepResult> {
  const { operator, write } = around;
  const refusal = await refused(step, around);
  if (refusal !== undefined) return { fault: refusal };
  const isDone = step.isDone && (await answerOf(step.isDone));
  if (isDone?.holds === true) {
    operator.print(`  Nothing to run: ${isDone.msg}.`);
    return proofs(step, operator);
  }
  if (
    step.confirm !== undefined &&
    !(await operator.confirmName('This cannot be taken back', step.confirm))
  ) {
    return { fault: `${step.confirm} was not confirmed` };
  }
  write({ event: 'step_started', atMs: Date.now(), step: step.id });
  const fault = await act(step, around);
  return fault === undefined ? proofs(step, operator) : { fault };
}

/** A check whose command fails has no result. */
const answerOf = (check: Check): Promise<CheckAnswer> =>
  check.run().catch((thrown: unknown) => ({ holds: 'unknown', msg: errorText(thrown) }));

async function refused(
  step: RecoveryStep,
  { options, operator, write }: SessionContext,
): Promise<string | undefined> {
  for (const check of step.requires ?? []) {
    const answer = await answerOf(check);
    operator.print(lineOf(check, answer));
    if (answer.holds === true) continue;
    if (options.force === undefined) return `refused: ${answer.msg}; --force REASON overrides this`;
    operator.print(`  overridden: ${options.force}`);
    const { msg } = answer;
    write({ event: 'forced', atMs: Date.now(), step: step.id, check: check.id, msg, reason: options.force });
  }
  return undefined;
}

const signs = { true: 'ok     ', false: 'FAILED ', unknown: 'unknown' } as const;

const lineOf = ({ text }: Check, { holds, msg }: CheckAnswer): string =>
  `  ${signs[`${holds}`]} ${text}: ${msg}`;

async function act(
  step: RecoveryStep,
  { options, operator, write }: SessionContext,
): Promise<string | undefined> {
  if (!step.commands) {
    if (step.byHand === undefined) return undefined;
    operator.print(`  By hand: ${step.byHand}`);
    if (operator.isAway) return 'it has to be done by hand; continue without --yes once it is done';
    return (await operator.ask('Is it done?')) ? undefined : 'not done';
  }
  for (const command of step.commands) {
    operator.print(`  $ ${shellText(command)}`);
    if (!options.execute) continue;
    if (!(await operator.ask('Run it?'))) return 'not run';
    const fault = await runStepCommand(command, options.commandOutput ?? 'stdout', (pid) =>
      write({ event: 'command_started', atMs: Date.now(), step: step.id, command, pid }),
    );
    if (fault !== undefined) return fault;
  }
  if (options.execute) return undefined;
  return (await operator.ask('Is it done?')) ? undefined : 'not done';
}

/** Undefined after exit status 0. Passes signals on to the command, which handles them itself. */
function runStepCommand(
  [program = '', ...args]: readonly string[],
  output: 'stdout' | 'stderr',
  started: (pid: number | undefined) => void,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', output === 'stdout' ? 1 : 2, 2] });
    const undo = onSignals({ stop: () => child.kill('SIGTERM'), reload: () => child.kill('SIGHUP') });
    started(child.pid);
    child.once('error', (thrown) => {
      undo();
      resolve(`${program} cannot be started: ${errorText(thrown)}`);
    });
    child.once('close', (status, signal) => {
      undo();
      resolve(status === 0 ? undefined : `${program} ended with ${signal ?? `exit status ${status}`}`);
    });
  });
}

/** How often a check after a step is repeated: services need a while to start. */
const tries = 30;
const pauseMs = 2_000;

async function proofs(step: RecoveryStep, operator: Operator): Promise<StepResult> {
  const notProved: string[] = [];
  for (const check of step.proves ?? []) {
    let answer = await answerOf(check);
    for (let left = tries; answer.holds === false && left > 0; left--) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      answer = await answerOf(check);
    }
    operator.print(lineOf(check, answer));
    if (answer.holds === 'unknown') notProved.push(`${check.text}: ${answer.msg}`);
    if (answer.holds === false) return { fault: `${check.text} does not hold: ${answer.msg}` };
  }
  return { notProved };
}

/** Who holds the lock, as written into its directory. */
interface Holder {
  pid: number;
  procedure: string;
  /** ms since the epoch. */
  startMs: number;
}

/**
 * Takes the lock of what a procedure changes, a database or a domain: two runs side by side would restore, or fail
 * over, at the same time, also those of different procedures. The kernel releases it with the process, however that
 * ends. Throws `state_locked` with the holder's procedure, pid and start.
 */
export async function lockSubject(
  stateDirectory: string,
  procedure: string,
  { store, database, domain }: Subject,
): Promise<Pick<Lock, 'release'>> {
  const parts = store === undefined ? ['domain', domain] : ['store', store, database];
  const subject = parts.filter((part) => part !== undefined).join('.');
  const directory = join(stateDirectory, 'recovery-runs', `${encodeURIComponent(subject)}.lock`);
  const holderFile = join(directory, 'holder.json');
  mkdirSync(directory, { recursive: true, mode: 0o750 });
  const lock = await takeLock(directory).catch((thrown: unknown) => {
    throw heldBy(thrown, holderFile, parts.slice(1).join('/'));
  });
  const holder: Holder = { pid: process.pid, procedure, startMs: Date.now() };
  writeFileSync(holderFile, JSON.stringify(holder), { mode: 0o640 });
  return lock;
}

function heldBy(thrown: unknown, holderFile: string, subject: string): unknown {
  if (!(thrown instanceof AgentError) || thrown.code !== 'state_locked') return thrown;
  const pid = Number(/pid (\d+)/.exec(thrown.message)?.[1]);
  const holder = readHolder(holderFile);
  // The file may still be that of a run before.
  const who =
    holder?.pid === pid
      ? `a run of ${holder.procedure} (pid ${pid}, since ${new Date(holder.startMs).toISOString()})`
      : `another run${Number.isNaN(pid) ? '' : ` (pid ${pid})`}`;
  return new AgentError(
    'state_locked',
    { where: 'svc-agent recover', what: `${who} is under way for ${subject}`, allowed: 'wait for its end' },
    thrown,
  );
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}
