import { spawn } from 'node:child_process';
import { errorText } from '../../core/errors.ts';
import { formatDuration } from '../../core/text-formats.ts';
import { onSignals } from '../signals.ts';
import type { SubjectLock } from './subject-lock.ts';

/** One command of a step, which is run to its end. */

interface StepCommandOptions {
  lock: Omit<SubjectLock, 'release'>;
  /** Whether its processes stay on record until the last of them has ended. */
  isDestructive: boolean;
  /** Where the output is written; with stderr, stdout has only JSON. */
  output: 'stdout' | 'stderr';
  print(line: string): void;
  /** The interval of messages that the command still runs, ms. */
  noticeMs?: number;
}

/**
 * Runs the command. Undefined after exit status 0. Signals are passed on to the command; if it then ends with status 0, it was
 * interrupted nevertheless. The second signal kills it, because it may ignore the first. Throws `internal` if the command cannot
 * be put on record, after it has ended.
 */
export function runStepCommand(
  [program = '', ...args]: readonly string[],
  { lock, isDestructive, output, print, noticeMs = 60_000 }: StepCommandOptions,
): Promise<string | undefined> {
  const marks = lock.commandStarts([program, ...args], isDestructive);
  return new Promise((resolve, reject) => {
    let interrupted = false;
    let unrecorded: unknown;
    const passOn = (signal: NodeJS.Signals) => {
      interrupted = true;
      child.kill(signal);
    };
    const reload = () => passOn('SIGHUP');
    const kill = () => passOn('SIGKILL');
    const stop = () => {
      passOn('SIGTERM');
      print(`  ${program} has been asked to end; a second signal kills it.`);
      undo();
      undo = onSignals({ stop: kill, reload });
    };
    // Signals are handled before the command starts: a signal in between would end this process and leave the command running.
    let undo = onSignals({ stop, reload });
    const startMs = performance.now();
    const notice = setInterval(() => {
      const ranMs = Math.round((performance.now() - startMs) / 1000) * 1000;
      print(`  ${program} is still running after ${formatDuration(ranMs)}; Ctrl-C ends it.`);
    }, noticeMs);
    const child = spawn(program, args, {
      stdio: ['ignore', output === 'stdout' ? 1 : 2, 2],
      env: { ...process.env, ...marks },
    });
    try {
      if (child.pid !== undefined) lock.commandStarted(child.pid);
    } catch (thrown) {
      unrecorded = thrown;
    }
    const ended = (fault: string | undefined) => {
      undo();
      clearInterval(notice);
      const left = lock.commandEnded(fault === undefined);
      const behind = left === undefined ? '' : `; a process that it started is still running (${left})`;
      if (unrecorded === undefined) resolve(fault && `${fault}${behind}`);
      else reject(unrecorded);
    };
    child.once('error', (thrown) => ended(`${program} cannot be started: ${errorText(thrown)}`));
    child.once('close', (status, signal) => {
      if (status !== 0) return ended(`${program} ended with ${signal ?? `exit status ${status}`}`);
      const fault = `${program} was interrupted by a signal, and ended with exit status 0`;
      ended(interrupted ? fault : undefined);
    });
  });
}
