import { mainFile, start } from './process.ts';

// Runs `svc-agent recover database-corruption` with the built program, for the tests of each kind of store.

/** Restores the database `persistence` of the store `main`, confirmed, with the configuration in `file`. */
export async function recoverMain(
  file: string,
  ...args: readonly string[]
): Promise<{ status: number | string; output: string }> {
  const run = start(process.execPath, [
    ...[mainFile, 'recover', 'database-corruption', '-c', file, '--store', 'main'],
    ...['--database', 'persistence', '--execute', '--yes', '--confirm', 'main', ...args],
  ]);
  run.child.stdin?.end();
  return { status: await run.ended, output: run.output() };
}
