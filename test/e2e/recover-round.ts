import { command, mainFile, start } from './process.ts';

// A round of `svc-agent recover database-corruption` by the built program, for the tests of each kind of store.

/** Restores the database `persistence` of the store `main`, confirmed, by the configuration in `file`. */
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

/** The drill that the recovery probe of that database shows. */
export function drillOfMain(file: string): object | undefined {
  const probed = JSON.parse(command(['probe', 'recovery', 'backup', '-c', file, '--json']).stdout) as {
    name: string;
    details: { drill?: object };
  }[];
  return probed.find(({ name }) => name === 'recovery/main/persistence')?.details.drill;
}
