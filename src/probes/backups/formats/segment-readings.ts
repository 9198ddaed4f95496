import { mkdirSync } from 'node:fs';
import { appendFile, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeDirectorySync } from '../../../core/make-directory.ts';
import type { SegmentContent } from './segments.ts';

/**
 * What was read from the segments of one log, so that each is read once. It is stored as JSON lines in a file of the state
 * directory.
 */
export interface SegmentReadings {
  /** The reading of a file; undefined if it was not read, or was changed since. */
  find(name: string, identity: string): KeptReading | undefined;
  /** Stores readings. A segment whose reading cannot be written is read again after a restart. */
  keep(readings: readonly KeptReading[]): Promise<void>;
  /** Forgets all segments but these. */
  keepOnly(names: ReadonlySet<string>): Promise<void>;
}

export interface KeptReading {
  name: string;
  /**
   * Inode, size and time of the last change. They show whether the file is the one that was read, but never how new its content
   * is.
   */
  identity: string;
  atMs: number;
  content: SegmentContent;
}

/** The file is rewritten when it has this many more lines than there are segments. */
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

/** Parses a line; undefined for an incomplete last line of a process that was killed. */
function readingOf(line: string): KeptReading | undefined {
  try {
    const reading = JSON.parse(line) as Partial<KeptReading> | null;
    return typeof reading?.name === 'string' && reading.content ? (reading as KeptReading) : undefined;
  } catch {
    return undefined;
  }
}
