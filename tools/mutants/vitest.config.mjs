import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { instrument } from './instrument.mjs';

const { codes, mutants } = await instrument(process.env.MUTANTS_PATH);
writeFileSync(join(process.env.MUTANTS_OUT, 'mutants.json'), JSON.stringify(mutants));

export default defineConfig({
  plugins: [
    {
      name: 'mutants',
      enforce: 'pre',
      load: (id) => codes.get(id.split('?')[0]),
    },
  ],
  test: {
    include: JSON.parse(process.env.MUTANTS_TESTS),
    exclude: ['**/*.long.test.ts', '**/*.nightly.test.ts'],
    setupFiles: ['test/environment.ts', 'tools/mutants/properties.mjs'],
    globalSetup: 'test/run-folder.ts',
    runner: './tools/mutants/runner.mjs',
    isolate: false,
    pool: 'forks',
    maxWorkers: 2,
    // A mutant that makes a test wait for ever costs this much time.
    testTimeout: 5_000,
    hookTimeout: 30_000,
    expect: { requireAssertions: true },
    // A mutant may throw in every turn of the event loop until its test ends. To print that takes longer than the test.
    onUnhandledError: () => false,
    silent: true,
    reporters: ['dot'],
  },
});
