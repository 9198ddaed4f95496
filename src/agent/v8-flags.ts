import { setFlagsFromString } from 'node:v8';
import { keepHeapSmall } from './heap-size.ts';

/**
 * The flags for the moment at which V8 optimizes a function: after three times as much work as by default. With the default it
 * optimizes for minutes on end what an idle agent runs a few times a minute, which takes a seventh of that agent's CPU time, more
 * than the optimized code saves. The loop over the lines of a log does three times the work in some milliseconds. Node 20 has
 * another flag than later versions.
 */
const optimizeLate =
  Number.parseInt(process.versions.v8, 10) < 12
    ? [`--interrupt-budget=${3 * 66 * 1024}`]
    : [`--invocation-count-for-maglev=${3 * 400}`, `--invocation-count-for-turbofan=${3 * 3_000}`];

/**
 * Sets the flags of V8. Call it when the code of the commands is loaded, and before anything is allocated for a command: from then
 * on V8 refuses the code that Node has stored of its own modules, and compiles them anew.
 */
export function setFlags(): void {
  keepHeapSmall();
  for (const flag of optimizeLate) setFlagsFromString(flag);
  // Node 26 compiles baseline code in the background. A compilation that asks for a garbage collection while the process exits
  // waits for the main thread, which waits for the compilation: the process hangs (github.com/nodejs/node/issues/54918).
  setFlagsFromString('--no-concurrent-sparkplug');
}
