#!/usr/bin/env node
import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { startEarly } from './config/load.ts';
import { onSignals } from './signals.ts';
import { setFlags } from './v8-flags.ts';

const isRun = process.argv[2] === 'run';
// A signal ends the agent also while its code loads.
const offSignals = isRun ? onSignals({ stop: () => process.exit(0), reload: () => {} }) : () => {};
// The code of the agent loads meanwhile.
if (isRun) startEarly(process.env);

// If a reader ended (`svc-agent schema | head`) or a terminal was closed (EIO), that is no error of the agent.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    const isGone = error.code === 'EPIPE' || (error.code === 'EIO' && stream.isTTY);
    if (!isGone) throw error;
  });
}

// Node aborts at its exit if it cannot restore the mode of a closed terminal. It skips closed descriptors.
const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
process.on('exit', () => {
  for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor);
});

const { dispatch } = await import('./cli/dispatch.ts');
setFlags();
const ended = dispatch(process.argv.slice(2));
// A signal that arrived while code was loading is lost if nobody handles signals for a moment: the command does by now.
setImmediate(offSignals);
const status = await ended;
// Written output must leave a pipe before the process ends.
process.stdout.write('', () => process.exit(status));
