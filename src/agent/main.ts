#!/usr/bin/env node
import './v8-flags.ts';
import { closeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { dispatch } from './cli/dispatch.ts';
import { processIo } from './cli/io.ts';

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

const status = await dispatch(process.argv.slice(2), processIo);
// Written output must leave a pipe before the process ends.
process.stdout.write('', () => process.exit(status));
