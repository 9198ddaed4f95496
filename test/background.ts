import { setPriority } from 'node:os';

/** What runs in the background: it has no deadline, and gives way to tests of what happens within seconds. Its programs inherit it. */
setPriority(10);
