import { setFlagsFromString } from 'node:v8';
import { keepHeapSmall } from './heap-size.ts';

/**
 * Sets the flags of V8. Call it when the code of the commands is loaded, and before anything is allocated for a command: from then
 * on V8 refuses the code that Node has stored of its own modules, and compiles them anew.
 */
export function setFlags(): void {
  keepHeapSmall();
  // Node 26 compiles baseline code in the background. A compilation that asks for a garbage collection while the process exits
  // waits for the main thread, which waits for the compilation: the process hangs (github.com/nodejs/node/issues/54918).
  setFlagsFromString('--no-concurrent-sparkplug');
}
