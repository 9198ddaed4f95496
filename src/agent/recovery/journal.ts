import { appendFileSync, closeSync, fstatSync, fsyncSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { AgentError, errorText, systemCode } from '../../core/errors.ts';
import { makeDirectorySync } from '../../core/make-directory.ts';
import type { Chosen } from './target.ts';

/** One line of the journal, in JSON. */
export type JournalLine =
  /** `before` are steps that an earlier run had begun and that this run does not continue. */
  | {
      event: 'started';
      atMs: number;
      procedure: string;
      subject: RunSubject;
      chosen?: Chosen;
      before?: readonly string[];
    }
  | { event: 'step_started'; atMs: number; step: string; byHand?: true }
  | { event: 'command_started'; atMs: number; step: string; command: readonly string[] }
  /** `fault` is the reason why the command did not succeed. */
  | { event: 'command_ended'; atMs: number; step: string; command: readonly string[]; fault?: string }
  | { event: 'step_done'; atMs: number; step: string; notProved?: readonly string[] }
  | { event: 'forced'; atMs: number; step: string; check: string; msg: string; reason: string }
  | { event: 'stopped'; atMs: number; msg: string }
  | { event: 'done'; atMs: number; notProved: readonly string[] };

/** What a run changes. A run resumes only a run that changes the same subject. */
export interface RunSubject {
  /** The database with its address, or the domain with its new active cluster and the address of that cluster. */
  target: Readonly<Record<string, string | undefined>>;
  /** The backup that the operator named. */
  backup?: string;
}

export interface UnfinishedRun {
  subject: RunSubject;
  /** What the run restores. */
  chosen?: Chosen;
  startMs: number;
  /** The time of the last line, ms since the epoch. */
  lastMs: number;
  done: Set<string>;
  /** Steps whose work has begun, whether they are done or not. */
  begun: Set<string>;
  notProved: string[];
  /** Whether the run ended by a refusal or a failure, and was not killed. */
  hasStopped: boolean;
  /** Commands that succeeded in the step that was interrupted. */
  succeeded: (readonly string[])[];
  /** The command during which the run ended. */
  interrupted?: { command: readonly string[]; atMs: number };
}

/** The last run of a journal; undefined if it was completed. Throws `internal`. */
export function unfinishedRun(path: string): UnfinishedRun | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw journalError(path, thrown);
  }
  let run: UnfinishedRun | undefined;
  for (const written of text.split('\n')) {
    const line = parsed(written);
    if (line?.event === 'started') run = begun(line);
    else if (line?.event === 'done') run = undefined;
    else if (line && run) follow(run, line);
  }
  return run;
}

const begun = ({ subject, atMs, chosen, before }: JournalLine & { event: 'started' }): UnfinishedRun => ({
  ...{ subject, chosen, startMs: atMs, lastMs: atMs },
  ...{ done: new Set(), begun: new Set(before), notProved: [], hasStopped: false, succeeded: [] },
});

/** Whether the step may have changed something once this line is written. */
export const hasBegun = (
  line: JournalLine,
): line is JournalLine & { event: 'step_started' | 'command_started' } =>
  line.event === 'command_started' || (line.event === 'step_started' && line.byHand === true);

function follow(run: UnfinishedRun, line: JournalLine): void {
  run.lastMs = line.atMs;
  run.hasStopped = line.event === 'stopped';
  if (hasBegun(line)) run.begun.add(line.step);
  if (line.event === 'command_started') run.interrupted = { command: line.command, atMs: line.atMs };
  if (line.event === 'command_ended') {
    run.interrupted = undefined;
    if (line.fault === undefined) run.succeeded.push(line.command);
  }
  // A step that failed is repeated as a whole.
  if (line.event === 'stopped' || line.event === 'step_done') run.succeeded = [];
  if (line.event !== 'step_done') return;
  run.done.add(line.step);
  run.notProved.push(...(line.notProved ?? []));
}

function parsed(line: string): JournalLine | undefined {
  try {
    return JSON.parse(line) as JournalLine;
  } catch {
    return undefined;
  }
}

interface Journal {
  /** Writes a line, which is on the disk when this returns. Throws `internal`. */
  write(line: JournalLine): void;
  close(): void;
}

/** Opens a journal to append to. A file that is deleted meanwhile is created again. Throws `internal`. */
export function openJournal(path: string): Journal {
  const open = () => {
    makeDirectorySync(mkdirSync, dirname(path), 0o750);
    return openSync(path, 'a+', 0o640);
  };
  const append = (text: string) => {
    appendFileSync(fd, text);
    fsyncSync(fd);
  };
  let fd = guarded(path, open);
  let text = guarded(path, () => readFileSync(path, 'utf8'));
  // A run that was killed, or a full disk, may have left a line without its end.
  let lead = '\n';
  return {
    write(line) {
      const added = `${lead}${JSON.stringify(line)}\n`;
      lead = '\n';
      guarded(path, () => {
        if (fstatSync(fd).nlink === 0) {
          closeSync(fd);
          fd = open();
          append(text);
        }
        append(added);
      });
      text += added;
      lead = '';
    },
    close: () => closeSync(fd),
  };
}

function guarded<T>(path: string, call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    throw journalError(path, thrown);
  }
}

/** The error for a journal that cannot be used. A run without a journal could not be resumed, so it stops. */
export const journalError = (path: string, thrown: unknown): AgentError =>
  new AgentError(
    'internal',
    {
      where: path,
      what: `the journal of the recovery cannot be read or written, ${errorText(thrown)}`,
      allowed: 'free space or grant access, then run the same command again: it resumes',
    },
    thrown,
  );
