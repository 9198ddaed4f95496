import { defineConfig } from 'vitest/config';

const project = (name: string, timeoutMs: number, options = {}) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    ...options,
  },
});

/**
 * Files share the modules of their worker: to load the sources anew for every file takes longer than its tests. So a
 * helper must not register hooks or keep state at the top of its module; `onTestFinished` belongs to the test.
 */
const shared = { pool: 'threads', isolate: false, maxWorkers: 2 };
/** Two at a time on two cores; left alone, one core would stay free for the runner, which does next to nothing. */
const own = { maxWorkers: 2 };
/** After all others. Files wait for programs most of the time, so more of them run than there are cores. */
const waiting = { maxWorkers: 3, sequence: { groupOrder: 1 } };

export default defineConfig({
  test: {
    projects: [
      project('unit', 30_000, shared),
      project('contract', 30_000, shared),
      project('integration', 60_000, own),
      project('fault', 60_000, own),
      project('e2e', 300_000, waiting),
    ],
  },
});
