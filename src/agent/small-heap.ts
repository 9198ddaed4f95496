import { keepHeapSmall } from './heap-size.ts';

// A module of its own, as imports run before the code of the file that imports them: main.ts imports it first.
keepHeapSmall();
