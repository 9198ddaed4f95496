import { mkdirSync } from 'node:fs';
import { appendFile, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectorySync } from '../../core/make-directory.ts';
import type { SegmentContent } from './segments.ts';

/** What was read of the segments of one log, so that each is read once; JSON lines in a file of the state directory. */
export interface SegmentReadings {
  /** Undefined for a file that was not read, or was changed since. */
  find(name: string, identity: string): KeptReading | undefined;
  /** Keeps what was read. A reading that cannot be written is made again after a restart. */
  keep(readings: readonly KeptReading[]): Promise<void>;
  /** Forgets the segments that are not there any more. */
  keepOnly(names: ReadonlySet<string>): Promise<void>;
}

export interface KeptReading {
  name: string;
  /** Inode, size and time of change: whether the file is the one that was read, never how new its content is. */
  identity: string;
  atMs: number;
  content: SegmentContent;
}

/** How many lines more than segments make it worth rewriting the file. */
const spareLines = 1000;

export async function openSegmentReadings(path: string): Promise<SegmentReadings> {
  const known = new Map<string, KeptReading>();
  let lines = 0;
  const text = await readFile(path, 'utf8').catch(() => '');
  for (const line of text.split('\n')) {
    const reading = readingOf(line);
    if (reading) known.set(reading.name, reading);
    lines += 1;
  }
  const write = async (readings: readonly KeptReading[]) => {
    makeDirectorySync(mkdirSync, dirname(path), 0o750);
    await appendFile(path, readings.map((reading) => `${JSON.stringify(reading)}\n`).join(''), {
      mode: 0o640,
    });
    lines += readings.length;
    if (lines <= known.size + spareLines) return;
    const next = `${path}.${process.pid}.tmp`;
    await writeFile(next, [...known.values()].map((reading) => `${JSON.stringify(reading)}\n`).join(''), {
      mode: 0o640,
    });
    await rename(next, path);
    lines = known.size;
  };
  return {
    find(name, identity) {
      const reading = known.get(name);
      return reading?.identity === identity ? reading : undefined;
    },
    async keep(readings) {
      for (const reading of readings) known.set(reading.name, reading);
      await write(readings).catch(() => {});
    },
    async keepOnly(names) {
      for (const name of known.keys()) if (!names.has(name)) known.delete(name);
    },
  };
}

/** Undefined for the last line of a process that was killed. */
function readingOf(line: string): KeptReading | undefined {
  try {
    const reading = JSON.parse(line) as Partial<KeptReading> | null;
    return typeof reading?.name === 'string' && reading.content ? (reading as KeptReading) : undefined;
  } catch {
    return undefined;
  }
}
