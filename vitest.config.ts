import { defineConfig } from 'vitest/config';

const project = (name: string, timeoutMs: number, parallel: boolean) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    fileParallelism: parallel,
  },
});

export default defineConfig({
  test: {
    projects: [
      project('unit', 30_000, true),
      project('contract', 30_000, true),
      project('integration', 60_000, true),
      project('fault', 60_000, true),
      project('e2e', 300_000, false),
    ],
  },
});
