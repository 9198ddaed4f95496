import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from '../house/imports.ts';

const folder = join(root, 'runbooks');

/** Every runbook, as a path below `runbooks`. */
export const runbookFiles = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
  .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
  .sort();

/** The queries of a runbook, in its order. */
export function queriesOf(file: string): string[] {
  const text = readFileSync(join(folder, file), 'utf8');
  return [...text.matchAll(/```promql\n([\s\S]*?)```/g)].map(([, block]) =>
    block!.replace(/^ {3}/gm, '').trim(),
  );
}
