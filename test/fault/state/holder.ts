/**
 * Run as a process: locks the directory in argv[2] and prints `locked`, or prints why it cannot. With `count` as argv[3] it
 * commits a counter in a loop and prints `shown N` after each publish, until it is killed; with `leave` it does nothing more.
 */
import { createState } from '../../../src/agent/state/state.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { AgentError } from '../../../src/core/errors.ts';
import type { Log } from '../../../src/core/ports.ts';
import { namedCounters } from './values.ts';

const directory = process.argv[2]!;
const values = namedCounters();
const log: Log = { write: () => undefined, named: () => log };
const state = createState({ directory, fsync: false }, { values, durables: [], clock: systemClock, log });
const say = (text: string) => process.stdout.write(`${text}\n`);

async function count(): Promise<void> {
  for (;;) {
    values.add('n', 1);
    const { degraded } = await state.commit();
    say(degraded ? `degraded ${degraded}` : `shown ${values.shown().n}`);
  }
}

if (process.argv[3] !== 'leave') process.stdin.on('end', () => process.exit(0)).resume();
try {
  await state.load();
  say('locked');
  if (process.argv[3] === 'count') await count();
} catch (error) {
  say(error instanceof AgentError ? `${error.code} ${error.message}` : `unexpected ${error}`);
}
