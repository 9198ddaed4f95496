import type { PassedOverReason } from '../../../core/reasons.ts';
import type { FileStat } from './disk.ts';
import type { LogPattern, Patterns, Step } from './patterns.ts';
import { isCompressed, isGzip, rotatedFrom } from './rotated-names.ts';

/** A regular file that a pattern matches. */
export interface Found {
  readonly path: string;
  /** The end only if this is the first scan of every pattern that matches and all of them say so. */
  startAt: 'end' | 'beginning';
  /** The first pattern that matches, in the configuration's order. */
  readonly order: number;
}

export const byOrder = (a: Found, b: Found) => a.order - b.order || (a.path < b.path ? -1 : 1);

export interface PassedOver {
  readonly path: string;
  readonly service: string;
  readonly reason: PassedOverReason;
}

/** What a pattern matches in a directory. */
export interface Interest {
  readonly pattern: LogPattern;
  readonly steps: readonly Step[];
  readonly startAt: 'end' | 'beginning';
  readonly namesGzip: boolean;
  readonly isFirst: boolean;
  test(name: string): boolean;
}

/** How the patterns treat a name in a directory. Kept for the next scan as long as the patterns match the same there. */
export interface Meaning {
  readonly path: string;
  /** A pattern matches it. */
  readonly isMatched: boolean;
  /** The file under the name is read. */
  readonly found: Found | undefined;
  readonly passedOver: PassedOver | undefined;
  /** It may be older than the log that it was rotated from. */
  readonly isFirst: boolean;
  /** Names that it may have been rotated from. */
  readonly bases: readonly string[];
  /** A pattern matches one of them. */
  readonly isRotated: boolean;
  /** The file that had the name in the last scan. */
  file?: { readonly stat: FileStat; readonly key: string };
}

export function meaningIn(
  directory: string,
  name: string,
  wants: readonly Interest[],
  { watched }: Patterns,
): Meaning {
  const path = `${directory}/${name}`;
  const takes = wants.filter(({ test, pattern }) => test(name) && !pattern.excludes(path));
  const reads = isCompressed(name) ? takes.filter(({ namesGzip }) => namesGzip && isGzip(name)) : takes;
  const bases = rotatedFrom(name);
  const isTaken = (base: string) =>
    wants.some(({ test, pattern }) => test(base) && !pattern.excludes(`${directory}/${base}`));
  const order = Math.min(...reads.map(({ pattern }) => watched.indexOf(pattern)));
  const startAt = reads.every((read) => read.startAt === 'end') ? 'end' : 'beginning';
  const isPassedOver = takes.length > 0 && reads.length === 0;
  return {
    path,
    isMatched: takes.length > 0,
    found: reads.length > 0 ? { path, startAt, order } : undefined,
    passedOver: isPassedOver ? { path, service: takes[0]!.pattern.service, reason: 'compressed' } : undefined,
    isFirst: wants.some(({ isFirst, test }) => isFirst && bases.some(test)),
    bases,
    isRotated: bases.some(isTaken),
  };
}

/** Names that a pattern spells out, to look them up where the directory cannot be listed. */
export function literalNames({ globs }: LogPattern, directory: string): string[] {
  return globs.flatMap(({ steps }) => {
    if (!steps.every((step) => typeof step === 'string')) return [];
    const parent = steps.slice(0, -1).map((step) => `/${step}`);
    return parent.join('') === directory ? steps.slice(-1) : [];
  });
}
