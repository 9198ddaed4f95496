import { setFlagsFromString } from 'node:v8';
import { keepHeapSmall } from './heap-size.ts';

// This is a separate module, because imports run before the code of the file that imports them. main.ts imports it first.
keepHeapSmall();

/**
 * Node 26 compiles baseline code in the background. A compilation that asks for a garbage collection while the process
 * exits waits for the main thread, which waits for the compilation: the process hangs (github.com/nodejs/node/issues/54918).
 */
setFlagsFromString('--no-concurrent-sparkplug');
