#!/usr/bin/env node
import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { startEarly } from './config/load.ts';
import { isWaitingForThreads, onSignals, threadsDone } from './signals.ts';
import { setFlags } from './v8-flags.ts';

/** Whether there is a directory that relative paths start from. */
function hasDirectory(): boolean {
  try {
    return process.cwd() !== '';
  } catch {
    return false;
  }
}

if (!hasDirectory()) {
  process.stderr.write('svc-agent: the current directory was removed; change to another one\n');
  process.exit(1);
}

const isRun = process.argv[2] === 'run';
// A signal ends the agent also while its code loads.
const offSignals = isRun ? onSignals({ stop: () => process.exit(0), reload: () => {} }) : () => {};
// The code of the agent loads meanwhile.
if (isRun) startEarly(process.env);

/** Whether output is lost. A reader that ended (`svc-agent schema | head`), and a terminal that was closed, miss nothing. */
const isLoss = ({ code }: NodeJS.ErrnoException): boolean =>
  code !== 'EPIPE' && code !== 'ERR_STREAM_DESTROYED' && !(code === 'EIO' && process.stdout.isTTY);
let loss: NodeJS.ErrnoException | undefined;
// The command goes on: it may be a backup.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (isLoss(error)) loss ??= error;
});
process.stderr.on('error', () => {});

// Node aborts at its exit if it cannot restore the mode of a closed terminal. It skips closed descriptors.
const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
process.on('exit', () => {
  for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor);
});

/**
 * Ends the process. The default action of a signal is the only end that does not wait for the threads. A failure must not look
 * like an orderly end, which SIGTERM is for systemd.
 */
async function exit(status: number): Promise<void> {
  const isOrderly = status === 0;
  if (isRun) await threadsDone(isOrderly ? 200 : 4_700);
  if (isRun && isWaitingForThreads()) process.kill(process.pid, isOrderly ? 'SIGTERM' : 'SIGKILL');
  process.exit(status);
}

const { dispatch } = await import('./cli/dispatch.ts');
setFlags();
const ended = dispatch(process.argv.slice(2));
// A signal that arrived while code was loading is lost if nobody handles signals for a moment: the command does by now.
setImmediate(offSignals);
const status = await ended;
// Written output must leave a pipe before the process ends.
process.stdout.write('', (error) => {
  if (error && isLoss(error)) loss ??= error;
  // A program that exports traces may put its own end in the place of `exit`, which then returns.
  if (!loss) return void exit(status);
  process.stderr.write(
    `svc-agent: standard output cannot be written, ${loss.message}\n`,
    () => void exit(status || 1),
  );
});
