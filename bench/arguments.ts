import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Reads the arguments of a benchmark: `npm run bench -- NAME [ARGUMENT...]`. */

/** The argument at a position after the benchmark's name; undefined if there are fewer arguments. */
export const textAt = (place: number): string | undefined => process.argv[place + 2];

/** Parses a number above 0. Ends the benchmark with an error for anything else, such as the name of another benchmark. */
export function numberAt(place: number, name: string, otherwise: number): number {
  const text = textAt(place);
  const value = text === undefined ? otherwise : Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  return refuse(place, name, text, 'a number above 0');
}

/** This checkout, followed by the checkouts that the arguments name from a position on: folders with a `dist/`. */
export function rootsFrom(place: number): string[] {
  const roots = [process.env.SVC_AGENT_ROOT ?? '.', ...process.argv.slice(place + 2)];
  for (const [n, root] of roots.entries()) {
    const main = join(root, 'dist', 'main.js');
    if (!existsSync(main))
      refuse(place + n - 1, 'OTHER_ROOT', root, `a folder with a built agent (${main} is missing)`);
  }
  return roots.map((root) => resolve(root));
}

function refuse(place: number, name: string, got: string | undefined, allowed: string): never {
  process.stderr.write(`argument ${place + 1} (${name}): got ${JSON.stringify(got)}; allowed: ${allowed}\n`);
  process.exit(2);
}
