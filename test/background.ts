import { setPriority } from 'node:os';

/**
 * Lowers the priority of tests that run in the background: they have no deadline, and must not delay tests about events within
 * seconds. Their programs inherit the priority.
 */
setPriority(10);
