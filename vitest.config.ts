import { defineConfig } from 'vitest/config';

/**
 * Files share one module graph for each worker: to load the sources anew for every file takes longer than its tests. So
 * a helper must not register hooks or keep state at the top of its module; `onTestFinished` belongs to the test.
 */
const project = (name: string, timeoutMs: number, pool: 'threads' | 'forks', alone = {}) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    pool,
    isolate: false,
    ...alone,
  },
});

export default defineConfig({
  test: {
    projects: [
      project('unit', 30_000, 'threads'),
      project('contract', 30_000, 'threads'),
      project('integration', 60_000, 'forks'),
      project('fault', 60_000, 'forks'),
      // After all others. Its files wait for programs most of the time, so more of them run than there are cores.
      project('e2e', 300_000, 'forks', { maxWorkers: 3, sequence: { groupOrder: 1 } }),
    ],
  },
});
