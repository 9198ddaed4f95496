import { defineConfig } from 'vitest/config';

interface Options {
  pool?: 'threads';
  isolate?: boolean;
  exclude?: string[];
}

/** Time-outs end what hangs. No test expects a time, and a busy machine needs many times what an idle one does. */
const project = (name: string, include: string[], timeoutMs: number, options: Options = {}) => ({
  test: {
    name,
    include,
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    setupFiles: 'test/environment.ts',
    // More than there are cores: many files wait for servers and programs.
    maxWorkers: 4,
    ...options,
  },
});

const filesOf = (folder: string) => [`test/${folder}/**/*.test.ts`];

/**
 * Files share the modules of their worker: to load the sources anew for every file takes longer than its tests. So a
 * helper must not register hooks or keep state at the top of its module; `onTestFinished` belongs to the test.
 */
const shared = { isolate: false };

/** Files that change their whole process, for they become another user or replace modules, or that measure its memory. */
const alone = [
  'archive-directory-denied',
  'command-prints-without-end',
  'copytruncate',
  'permission-denied',
  'reload-refused',
  'rotated-in-unusual-ways',
  'scrape-body-is-hostile',
  'statsd-burst',
  'statsd-million-tag-values',
  'statsd-summaries-over-the-limit',
].map((name) => `test/fault/${name}.test.ts`);

export default defineConfig({
  test: {
    globalSetup: 'test/templates.ts',
    projects: [
      project('unit', filesOf('unit'), 60_000, { ...shared, pool: 'threads' }),
      project('contract', filesOf('contract'), 60_000, { ...shared, pool: 'threads' }),
      project('integration', filesOf('integration'), 300_000, shared),
      project('fault', filesOf('fault'), 300_000, { ...shared, exclude: alone }),
      project('fault-alone', alone, 300_000),
      project('e2e', filesOf('e2e'), 600_000, shared),
    ],
  },
});
