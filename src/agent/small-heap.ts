import { keepHeapSmall } from './heap-size.ts';

// This is a separate module, because imports run before the code of the file that imports them. main.ts imports it first.
keepHeapSmall();
