import { spawn } from 'node:child_process';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import type { Check, CheckAnswer } from './checks.ts';
import type { Step } from './procedures.ts';

/**
 * Walks through the steps of a procedure. Every step is written to a journal before and after it, so that a run that
 * was interrupted resumes at the step that was not finished, and a refusal that was overridden stays on record.
 */

/** One line of the journal; JSON. */
export type JournalLine =
  | { event: 'started'; atMs: number; procedure: string; subject: object }
  | { event: 'step_started'; atMs: number; step: string }
  | { event: 'step_done'; atMs: number; step: string }
  | { event: 'forced'; atMs: number; step: string; check: string; msg: string; reason: string }
  | { event: 'done'; atMs: number; notProved: readonly string[] };

export interface SessionOptions {
  procedure: string;
  subject: object;
  steps: readonly Step[];
  /** File of the journal. */
  journal: string;
  /** Runs commands; without, each is shown and the operator says when it is done. */
  execute: boolean;
  /** Why refusals that can be overridden are. */
  force?: string;
}

/** What a session asks and tells; a terminal, or a script with `--yes`. */
export interface Operator {
  tell(line: string): void;
  /** Whether to go on. */
  ask(question: string): Promise<boolean>;
  /** Whether the operator typed this very name. */
  confirmName(what: string, name: string): Promise<boolean>;
}

export interface SessionResult {
  ok: boolean;
  startMs: number;
  /** Checks after steps that nothing could answer. */
  notProved: readonly string[];
  msg: string;
}

/** Lines of an unfinished run of the same procedure and subject; none after a run that was completed. */
export function unfinishedRun(
  journal: string,
  subject: object,
): { startMs: number; done: Set<string> } | undefined {
  let text: string;
  try {
    text = readFileSync(journal, 'utf8');
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
  let run: { startMs: number; done: Set<string> } | undefined;
  for (const written of text.split('\n')) {
    const line = parsed(written);
    if (line?.event === 'started') {
      const isSame = JSON.stringify(line.subject) === JSON.stringify(subject);
      run = isSame ? { startMs: line.atMs, done: new Set() } : undefined;
    } else if (line?.event === 'step_done') run?.done.add(line.step);
    else if (line?.event === 'done') run = undefined;
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
  return {
    write(line) {
      writeSync(fd, `${JSON.stringify(line)}\n`);
      fsyncSync(fd);
    },
    close: () => closeSync(fd),
  };
}

export async function runSession(options: SessionOptions, operator: Operator): Promise<SessionResult> {
  const { steps, subject, procedure } = options;
  const before = unfinishedRun(options.journal, subject);
  const startMs = before?.startMs ?? Date.now();
  const journal = openJournal(options.journal);
  const notProved: string[] = [];
  try {
    if (before)
      operator.tell(
        `An earlier run was interrupted after ${before.done.size} of ${steps.length} steps; it goes on.`,
      );
    else journal.write({ event: 'started', atMs: startMs, procedure, subject });
    for (const [index, step] of steps.entries()) {
      operator.tell(`\nStep ${index + 1} of ${steps.length}: ${step.title}\n${step.text}`);
      if (before?.done.has(step.id)) {
        operator.tell('Done in the earlier run.');
        continue;
      }
      const fault = await runStep(step, { options, operator, journal, notProved });
      if (fault !== undefined) return { ok: false, startMs, notProved, msg: `${step.title}: ${fault}` };
      journal.write({ event: 'step_done', atMs: Date.now(), step: step.id });
    }
    journal.write({ event: 'done', atMs: Date.now(), notProved });
    return { ok: true, startMs, notProved, msg: 'all steps are done' };
  } finally {
    journal.close();
  }
}

interface Around {
  options: SessionOptions;
  operator: Operator;
  journal: { write(line: JournalLine): void };
  notProved: string[];
}

/** Undefined when the step is done, else why it is not. */
async function runStep(step: Step, around: Around): Promise<string | undefined> {
  const { operator, journal } = around;
  const refusal = await refused(step, around);
  if (refusal !== undefined) return refusal;
  if (
    step.confirm !== undefined &&
    !(await operator.confirmName('This cannot be taken back', step.confirm))
  ) {
    return `${step.confirm} was not confirmed`;
  }
  journal.write({ event: 'step_started', atMs: Date.now(), step: step.id });
  const fault = await act(step, around);
  if (fault !== undefined) return fault;
  return proofs(step, around);
}

async function refused(step: Step, { options, operator, journal }: Around): Promise<string | undefined> {
  for (const check of step.requires ?? []) {
    const answer = await check.run();
    operator.tell(lineOf(check, answer));
    if (answer.holds === true) continue;
    if (options.force === undefined) return `refused: ${answer.msg}; --force REASON overrides this`;
    operator.tell(`  overridden: ${options.force}`);
    const { id } = check;
    journal.write({
      event: 'forced',
      atMs: Date.now(),
      step: step.id,
      check: id,
      msg: answer.msg,
      reason: options.force,
    });
  }
  return undefined;
}

const signs = { true: 'ok     ', false: 'FAILED ', unknown: 'unknown' } as const;

const lineOf = ({ text }: Check, { holds, msg }: CheckAnswer): string =>
  `  ${signs[`${holds}`]} ${text}: ${msg}`;

async function act(step: Step, { options, operator }: Around): Promise<string | undefined> {
  if (!step.commands) {
    if (step.byHand === undefined) return undefined;
    operator.tell(`  By hand: ${step.byHand}`);
    return (await operator.ask('Is it done?')) ? undefined : 'not done';
  }
  for (const command of step.commands) {
    operator.tell(`  $ ${shellText(command)}`);
    if (!options.execute) continue;
    if (!(await operator.ask('Run it?'))) return 'not run';
    const fault = await runCommand(command);
    if (fault !== undefined) return fault;
  }
  if (options.execute) return undefined;
  return (await operator.ask('Is it done?')) ? undefined : 'not done';
}

function runCommand([program = '', ...args]: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    child.once('error', (thrown) => resolve(`${program} cannot be started: ${errorText(thrown)}`));
    child.once('close', (status, signal) =>
      resolve(status === 0 ? undefined : `${program} ended with ${signal ?? `exit status ${status}`}`),
    );
  });
}

/** How often a proof is tried: services need a while to come up. */
const tries = 30;
const pauseMs = 2_000;

async function proofs(step: Step, { operator, notProved }: Around): Promise<string | undefined> {
  for (const check of step.proves ?? []) {
    let answer = await check.run();
    for (let left = tries; answer.holds === false && left > 0; left--) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      answer = await check.run();
    }
    operator.tell(lineOf(check, answer));
    if (answer.holds === 'unknown') notProved.push(`${check.text}: ${answer.msg}`);
    if (answer.holds === false) return `${check.text} does not hold: ${answer.msg}`;
  }
  return undefined;
}

/** A command as a shell takes it. */
export function shellText(command: readonly string[]): string {
  return command
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}
