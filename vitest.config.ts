import { defineConfig } from 'vitest/config';

/**
 * Files share one module graph for each worker: to load the sources anew for every file takes longer than its tests. So
 * a helper must not register hooks or keep state at the top of its module; `onTestFinished` belongs to the test.
 */
const project = (name: string, timeoutMs: number, pool: 'threads' | 'forks', groupOrder = 0) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    pool,
    isolate: false,
    sequence: { groupOrder },
  },
});

export default defineConfig({
  test: {
    projects: [
      project('unit', 30_000, 'threads'),
      project('contract', 30_000, 'threads'),
      project('integration', 60_000, 'forks'),
      project('fault', 60_000, 'forks'),
      // Last: programs of its own, beside which nothing else runs.
      project('e2e', 300_000, 'forks', 1),
    ],
  },
});
