#!/usr/bin/env node
import './small-heap.ts';
import { dispatch } from './cli/dispatch.ts';
import { processIo } from './cli/io.ts';

// A reader that ended (`svc-agent schema | head`) is not an error of the agent.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const status = await dispatch(process.argv.slice(2), processIo);
// Written output must leave a pipe before the process ends.
process.stdout.write('', () => process.exit(status));
