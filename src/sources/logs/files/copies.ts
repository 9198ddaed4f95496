import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { fileKey, type Sighting } from './discovery.ts';
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
import type { Groups } from './groups.ts';
import { isCompressed, plainName } from './rotated-names.ts';
import type { RotationDeps, ScanState } from './scan-state.ts';
import { knownContent, type LetGo, letGoContent, type TrackedFile } from './tracked-file.ts';
import type { Whereabouts } from './whereabouts.ts';

/** How long after its last change a file may be an unfinished copy or archive. */
const undecidedMs = 10_000;

/** What a file that is not followed is: a copy of a known one, another generation, or undecided. */
export type Verdict = 'copy' | 'wait' | 'new';

/** An archive may also hold what comes after the offset of a generation that was given up. */
export type GzipVerdict =
  | { readonly verdict: Verdict; readonly of?: TrackedFile }
  | { readonly verdict: 'more'; readonly of: LetGo };

/** Compares files that are not followed with those that are followed and those that were let go, plain or compressed. */
export function createCopies(
  deps: RotationDeps,
  scan: ScanState,
  {
    groups,
    generations,
    whereabouts,
  }: { groups: Groups; generations: Generations; whereabouts: Whereabouts },
) {
  const { disk, clock, tracker, openFiles, reader, sinks, contents } = deps;
  const { isHome } = groups;
  const { lose, letGo, letGoWhole, track, resume, followAgain } = generations;
  const { areNamesReliable } = whereabouts;

  const keyOf = ({ stat }: Sighting) => fileKey(stat);

  /** Postpones the decision about a file while it changes and for 10 s after. Returns false once they are over. */
  const waitFor = (sighting: Sighting, of?: TrackedFile, isBeginning = false): boolean => {
    const { size, mtimeNs } = sighting.stat;
    const before = scan.undecided.get(keyOf(sighting));
    const isChanged = before?.size !== size || before.mtimeNs !== mtimeNs;
    const sinceMs = before && !isChanged ? before.sinceMs : clock.monotonicMs();
    scan.nextUndecided.set(keyOf(sighting), { size, mtimeNs, sinceMs, of, isBeginning });
    if (clock.monotonicMs() - sinceMs >= undecidedMs) return false;
    return true;
  };

  /** A compressor deletes the plain file last: until then the archive may be unfinished. */
  const hasPlainBeside = ({ paths: [path] }: Sighting): boolean => {
    if (!isCompressed(path!)) return false;
    const plain = plainName(path!);
    return [...scan.picture.files.values()].some(({ paths }) => paths.includes(plain));
  };

  /** Compares a plain file that is not followed with a tracked one. */
  const compareWith = (sighting: Sighting, group: string, original: TrackedFile): Verdict => {
    const seen = contents.of(sighting, (content) => ({
      like: likeness(content, knownContent(original)),
      size: content.size,
      beginsElse: headAgrees(original.fingerprint.head, content.start) === false,
    }));
    if (!seen) return 'wait';
    const { like, size, beginsElse } = seen;
    // Only a live file is truncated and written again. To open each older one would cost most of a catch-up.
    if (beginsElse && original.state === 'rotated' && !isHome(sighting, group)) return 'new';
    if (isHome(sighting, group)) {
      if (like !== 'whole' || original.offset < tailBytes || original.state !== 'unlinked') return 'new';
      if (size < original.size) return 'new';
      // Another file with the same content was renamed over this one.
      openFiles.close(original);
      resume(original, group, sighting);
      return 'copy';
    }
    const wasOpen = original.fd !== undefined;
    const fd = openFiles.open(original);
    if (fd === undefined) {
      // It may have been renamed since it was listed. Timestamps and banners repeat, so the next scan compares it.
      if (like !== 'whole' && like !== 'short') return 'new';
      return waitFor(sighting, original) ? 'wait' : 'copy';
    }
    const isPrefix = size <= disk.fstat(fd).size && contents.isPrefixOf(sighting, size, fd);
    // Checked after the comparison: the original may have been rewritten before it, and this is a copy of what came next.
    if (reader.isIntact(original, wasOpen) === false) {
      lose(original, 'truncated');
      return 'wait';
    }
    if (isPrefix) return 'copy';
    if (like !== 'whole' || size <= original.nowSize) return 'new';
    // A longer copy: either the original was truncated and written again, or a program appends to the copy.
    if (waitFor(sighting, original)) return 'wait';
    const next = track(group, sighting, 'beginning');
    next.offset = original.offset;
    next.size = next.offset;
    next.fingerprint = original.fingerprint;
    return 'copy';
  };

  /** Compares a plain file that is not followed with a gzip file that is read. */
  const compareWithArchive = (sighting: Sighting, original: TrackedFile): Verdict => {
    const { dev, ino, nowSize, nowMtimeNs, real } = original;
    const stat: FileStat = { dev, ino, size: nowSize, mtimeNs: nowMtimeNs, nlink: 1, kind: 'file' };
    const known = knownContent(original);
    const archive = contents.of({ stat, paths: [real] }, (content) => ({
      // The archive may be deleted, and its inode may have gone to one of another generation.
      isOriginal: likeness(content, known) !== 'none' || known.head.length + known.offset === 0,
      size: content.size,
      sum: content.sum(),
    }));
    if (!archive?.isOriginal) return 'new';
    const plain = contents.of(sighting, ({ size, sum }) => size === archive.size && sum() === archive.sum);
    return plain ? 'copy' : 'new';
  };

  const copyOfLetGo = (sighting: Sighting, group: string): Verdict => {
    const { stat } = sighting;
    const found = contents.of(sighting, (content) => {
      for (const file of tracker.letGoOf(group)) {
        if (file.copyOf || file.offset === 0 || content.size < file.offset) continue;
        if (headAgrees(file.head, content.start) === false) continue;
        if (likeness(content, letGoContent(file)) !== 'whole') continue;
        const isWeak = file.offset < identifyingBytes || file.tailLength < Math.min(tailBytes, file.offset);
        // Another file that goes on after the same bytes, such as a banner, is another generation if this one is still whole.
        const isThere = file.size === file.offset && scan.picture.files.has(fileKey(file));
        if ((isWeak || isThere) && content.size !== file.offset) continue;
        return { file, size: content.size };
      }
      return undefined;
    });
    if (!found) return 'new';
    const { file, size } = found;
    letGo(group, stat, letGoContent(file), file.generation);
    if (size > file.offset) followAgain(tracker.letGoAt(stat.dev, stat.ino)!, sighting);
    return 'copy';
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

  const isOriginalNew = (group: string) => scan.newGroups.has(group) && !scan.blankGroups.has(group);

  /** Files that may have been copied. Collected once per scan, however many files are compared with them. */
  const originals = (): readonly TrackedFile[] => {
    if (scan.originals && scan.blankGroups.size === 0) return scan.originals;
    scan.originals = [...tracker].filter((file) => !file.compressed && !isOriginalNew(file.path));
    return scan.originals;
  };

  /** A file under an unrelated name with the bytes of a tracked one may be a copy that is followed by a truncation. */
  const looksCopied = (sighting: Sighting, self?: TrackedFile): boolean => {
    const { stat, paths } = sighting;
    if (stat.size === 0 || originals().length === 0) return false;
    const directory = dirname(paths[0]!);
    const start = contents.of(sighting, (content) => content.start);
    if (start === undefined || start.length === 0) return false;
    let compared = 0;
    for (const file of originals()) {
      if (file === self || dirname(file.home) !== directory) continue;
      if (file.state === 'missing' && file.lostBy === 'truncated') {
        const like = contents.of(sighting, (content) => likeness(content, knownContent(file)));
        if (like !== 'none') return waitFor(sighting, file);
      }
      if (tracker.get(file.dev, file.ino) !== file) continue;
      if (file.state !== 'live' || headAgrees(file.fingerprint.head, start) === false) continue;
      if (++compared > 16) continue;
      const wasOpen = file.fd !== undefined;
      const fd = openFiles.open(file);
      if (fd === undefined) continue;
      const isPrefix = stat.size <= disk.fstat(fd).size && contents.isPrefixOf(sighting, stat.size, fd);
      if (reader.isIntact(file, wasOpen) === false) {
        lose(file, 'truncated');
        return true;
      }
      if (isPrefix) return waitFor(sighting, file, true);
    }
    return false;
  };

  /** Whether a file is still the one that was let go, with nothing new in it. */
  const isLetGo = (sighting: Sighting): boolean => {
    const { stat, paths } = sighting;
    const file = tracker.letGoAt(stat.dev, stat.ino);
    if (!file) return false;
    file.absences = 0;
    const isBack = isHome(sighting, file.path) && areNamesReliable(sighting);
    const isUnchanged = file.size === stat.size && file.mtimeNs === stat.mtimeNs;
    if (isUnchanged && !isBack) return true;
    const isSameFile = contents.of(sighting, (content) => {
      const like = likeness(content, letGoContent(file));
      // A copy that is still being written, of a file that is not followed any more.
      const isGrowing = !isBack && file.size < file.offset && stat.size >= file.size;
      return like === 'whole' || (like === 'perhaps' && file.size < 0) || (like === 'short' && isGrowing);
    });
    // Another file that got the inode may have the same few bytes, such as the beginning of a timestamp.
    const holdsMore = file.size < 0;
    const isWeak = !holdsMore && file.offset < identifyingBytes && stat.size > file.size;
    if ((file.copyOf || isWeak) && isSameFile !== false) {
      tracker.forget(file);
      return false;
    }
    const isCompressedFile = isCompressed(paths[0]!);
    if (isSameFile === undefined) {
      // Another file may have its inode by now, one that holds what is missing.
      scan.isDisturbed = true;
      return true;
    }
    if (!isSameFile) {
      tracker.forget(file);
      // Its content is remembered: it may have been moved into an archive.
      tracker.letGo({ ...file, ino: -1n, absences: 0 });
      return false;
    }
    if (holdsMore || (!isCompressedFile && (stat.size > file.offset || isBack))) {
      followAgain(file, sighting);
      return true;
    }
    Object.assign(file, { size: stat.size, mtimeNs: stat.mtimeNs });
    tracker.changedLetGo();
    return true;
  };

  /** A file that the first scan of a pattern let go as older than its log may be a copy that is being written. */
  const findCopiesAmongOlder = () => {
    for (const file of scan.taken) {
      if (file.compressed || file.state !== 'live' || file.fingerprint.head.length === 0) continue;
      for (const older of tracker.letGoOf(file.path)) {
        const sighting = scan.picture.files.get(fileKey(older));
        if (!sighting || older.copyOf || older.generation !== 0 || older.size > file.nowSize) continue;
        const shared = Math.min(older.head.length, file.fingerprint.head.length);
        if (shared > 0 && older.head[shared - 1] !== file.fingerprint.head[shared - 1]) continue;
        const fd = openFiles.open(file);
        if (fd !== undefined && contents.isPrefixOf(sighting, older.size, fd)) older.copyOf = file;
      }
    }
  };

  return {
    keyOf,
    waitFor,
    hasPlainBeside,
    compareWith,
    compareWithArchive,
    copyOfLetGo,
    identifyGzip,
    continueGivenUp,
    passOver,
    looksCopied,
    isLetGo,
    findCopiesAmongOlder,
  };
}

export type Copies = ReturnType<typeof createCopies>;
