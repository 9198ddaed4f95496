import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Entry } from './entries.ts';

/** How many rotated files are kept: `x.log.1` is the newer. */
const kept = 2;

export interface LogFile {
  append(entries: readonly Entry[]): void;
  close(): void;
}

/**
 * A file of JSON lines. Once it has reached `rotateBytes` it is renamed to `path.1` (and `path.1` to `path.2`)
 * and a new one is begun; a line is never split between the two. Throws what the file system throws.
 */
export function openLogFile(path: string, rotateBytes: number): LogFile {
  mkdirSync(dirname(path), { recursive: true });
  let file = openSync(path, 'a');
  let size = fstatSync(file).size;

  function rotate() {
    closeSync(file);
    rmSync(`${path}.${kept}`, { force: true });
    for (let n = kept; n > 1; n -= 1) renameIfThere(`${path}.${n - 1}`, `${path}.${n}`);
    renameIfThere(path, `${path}.1`);
    file = openSync(path, 'a');
    size = fstatSync(file).size;
  }

  return {
    append: (entries) => {
      if (entries.length === 0) return;
      if (size >= rotateBytes) rotate();
      size += writeSync(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
    },
    close: () => closeSync(file),
  };
}

function renameIfThere(from: string, to: string) {
  try {
    renameSync(from, to);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT') throw thrown;
  }
}
