import { crc32 } from 'node:zlib';
import type { Comparison, Copies, Verdict } from './copies.ts';
import type { Sighting } from './discovery.ts';
import type { FileStat } from './disk.ts';
import {
  type Content,
  headAgrees,
  identifyingBytes,
  type KnownContent,
  likeness,
  tailBytes,
} from './fingerprint.ts';
import type { Generations } from './generations.ts';
import type { RotationDeps, ScanState } from './scan-state.ts';
import { knownContent, type LetGo, letGoContent, type TrackedFile } from './tracked-file.ts';
import type { Whereabouts } from './whereabouts.ts';

/** An archive may also hold what comes after the offset of a generation that was given up. */
export type GzipVerdict =
  | { readonly verdict: Verdict; readonly of?: TrackedFile }
  | { readonly verdict: 'more'; readonly of: LetGo };

/** Compares compressed files with the generations that are followed and those that were let go. */
export function createArchives(
  deps: RotationDeps,
  scan: ScanState,
  {
    generations,
    whereabouts,
    copies,
  }: { generations: Generations; whereabouts: Whereabouts; copies: Copies },
) {
  const { disk, tracker, openFiles, reader, sinks, contents } = deps;
  const { lose, letGo, letGoWhole, followAgain } = generations;
  const { areNamesReliable } = whereabouts;
  const { keyOf, waitFor, hasPlainBeside } = copies;

  /** Compares a plain file that is not followed with a gzip file that is read. */
  const compareWithArchive = (sighting: Sighting, original: TrackedFile): Comparison => {
    const { dev, ino, nowSize, nowMtimeNs, real } = original;
    const stat: FileStat = { dev, ino, size: nowSize, mtimeNs: nowMtimeNs, nlink: 1, kind: 'file' };
    const known = knownContent(original);
    const archive = contents.of({ stat, paths: [real] }, (content) => ({
      // The archive may be deleted, and its inode may have gone to one of another generation.
      isOriginal: likeness(content, known) !== 'none' || known.head.length + known.offset === 0,
      size: content.size,
      sum: content.sum(),
    }));
    if (!archive?.isOriginal) return { verdict: 'new', size: 0 };
    const plain = contents.of(sighting, ({ size, sum }) => size === archive.size && sum() === archive.sum);
    return { verdict: plain ? 'copy' : 'new', size: archive.size };
  };

  /** Whether an archive goes on where a generation was given up. The bytes before that are compared when it is read. */
  const holdsMoreOf = (sighting: Sighting, content: Content, file: LetGo): boolean => {
    if (!file.lostBy || content.size <= file.offset || scan.ruledOut.has(keyOf(sighting))) return false;
    if (file.offset < identifyingBytes || file.tailLength < Math.min(tailBytes, file.offset)) return false;
    const like = likeness(content, letGoContent(file));
    return like === 'whole' || like === 'perhaps';
  };

  /** Reads an archive from where its generation was given up. */
  const continueGivenUp = (sighting: Sighting, group: string, of: LetGo) => {
    const { stat } = sighting;
    letGo(group, stat, letGoContent(of), of.generation);
    followAgain(tracker.letGoAt(stat.dev, stat.ino)!, sighting);
  };

  /** Whether an archive has the bytes of an open file, or its first ones: its writer may have gone on since. */
  const isArchiveOf = (content: Content, fd: number): boolean => {
    if (!contents.beginsWith(fd, content.start)) return false;
    const { size } = disk.fstat(fd);
    return (
      content.size === size || (content.size < size && contents.sumOf(fd, content.size) === content.sum())
    );
  };

  /** Whether an archive has the bytes of a generation that cannot be compared itself, by what is known of it. */
  const isAlike = (content: Content, { head, offset, tailLength, tailSum }: KnownContent): boolean => {
    if (headAgrees(head, content.start) === false) return false;
    // Of a file of which nothing was read the beginning is known; without one it is tiny, and its size decides.
    if (offset === 0 || offset > content.start.length) return head.length > 0 || content.size < 16;
    return crc32(content.start.subarray(offset - tailLength, offset)) === tailSum;
  };

  /** Only a truncation leaves a copy behind that is shorter than what was read. */
  const isArchiveOfLetGo = (content: Content, file: LetGo): boolean =>
    (content.size === file.offset && isAlike(content, letGoContent(file))) ||
    (content.size < file.offset &&
      file.lostBy === 'truncated' &&
      likeness(content, letGoContent(file)) === 'short');

  /** Compares an archive with a tracked file. 'wait': the file turned out to be rewritten. */
  const compareArchive = (content: Content, file: TrackedFile): Verdict => {
    if (file.state === 'missing' || file.compressed) return 'new';
    const wasOpen = file.fd !== undefined;
    const fd = openFiles.open(file);
    if (fd === undefined) {
      const isSameSize = content.size === Math.max(file.size, file.nowSize);
      return isSameSize && isAlike(content, knownContent(file)) ? 'copy' : 'new';
    }
    const isCopy = isArchiveOf(content, fd);
    // Checked after the comparison: it may be the original, rewritten since, or the archive of what was written next.
    if (reader.isIntact(file, wasOpen) === false) {
      lose(file, 'truncated');
      return 'wait';
    }
    return isCopy ? 'copy' : 'new';
  };

  /**
   * Decides about a gzip file: it has the content of a known file, or it is a generation that was never seen plain. While the
   * plain file is beside it, it may be unfinished; a compressor deletes the plain file last.
   */
  const identifyGzip = (sighting: Sighting, group: string): GzipVerdict => {
    if (!areNamesReliable(sighting) || (hasPlainBeside(sighting) && waitFor(sighting)))
      return { verdict: 'wait' };
    const result = contents.of(sighting, (content): GzipVerdict | 'unfinished' => {
      if (content.size === 0) return 'unfinished';
      for (const file of tracker.letGoOf(group)) {
        if (isArchiveOfLetGo(content, file)) return { verdict: 'copy', of: file.copyOf };
      }
      for (const file of tracker.group(group)) {
        const verdict = compareArchive(content, file);
        if (verdict !== 'new') return { verdict, of: file };
      }
      const givenUp = [...tracker.letGoOf(group)].find((file) => holdsMoreOf(sighting, content, file));
      return givenUp ? { verdict: 'more', of: givenUp } : { verdict: 'new' };
    });
    if (result && result !== 'unfinished') return result;
    return { verdict: waitFor(sighting) ? 'wait' : 'new' };
  };

  /** A compressed file in a format that is not read. */
  const passOver = (sighting: Sighting, group: string) => {
    if (waitFor(sighting)) return;
    const { mtimeNs, size } = sighting.stat;
    const known = [...tracker.letGoOf(group)];
    const isKnown = known.some((file) => file.mtimeNs === mtimeNs || file.absences > 0 || file.ino < 0n);
    const last = tracker.group(group).at(-1);
    letGoWhole(group, sighting, last?.generation ?? 0);
    if (!isKnown && last) sinks.skip(last, 'unreadable', size);
  };

  return { compareWithArchive, identifyGzip, continueGivenUp, passOver };
}

export type Archives = ReturnType<typeof createArchives>;
