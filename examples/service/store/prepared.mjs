// Where a database that was made once lies, as making one anew takes seconds and twice the memory.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Beside PGlite, whose version it belongs to. */
export function preparedFile() {
  const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const home = dirname(dirname(entry));
  const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
  return join(dirname(dirname(home)), '.cache', 'example-store', `pglite-${version}.tar.gz`);
}

/** Makes a database and puts it there, whole or not at all. */
export async function prepare() {
  const { PGlite } = await import('@electric-sql/pglite');
  const file = preparedFile();
  const database = await PGlite.create();
  const dump = await database.dumpDataDir('gzip');
  await database.close();
  mkdirSync(dirname(file), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, Buffer.from(await dump.arrayBuffer()));
  renameSync(unfinished, file);
}
