import { dirname } from 'node:path';
import { fileKey, type Sighting } from './discovery.ts';
import { headAgrees, identifyingBytes, type Likeness, likeness, tailBytes } from './fingerprint.ts';
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

/** How a file looks beside a tracked one. */
interface Resemblance {
  readonly like: Likeness;
  readonly size: number;
  readonly beginsElse: boolean;
}

/** The verdict on a plain file, by its first `size` bytes. It may have grown since: a copy of another file may have got its inode. */
export interface Comparison {
  readonly verdict: Verdict;
  readonly size: number;
}

/** Compares plain files that are not followed with the generations that are followed and those that were let go. */
export function createCopies(
  deps: RotationDeps,
  scan: ScanState,
  {
    groups,
    generations,
    whereabouts,
  }: { groups: Groups; generations: Generations; whereabouts: Whereabouts },
) {
  const { disk, clock, tracker, openFiles, reader, contents } = deps;
  const { isHome } = groups;
  const { lose, letGo, track, resume, followAgain } = generations;
  const { areNamesReliable, statReal } = whereabouts;

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

  const verdictOn = (
    sighting: Sighting,
    group: string,
    original: TrackedFile,
    seen: Resemblance,
  ): Verdict => {
    const { like, size, beginsElse } = seen;
    if (isHome(sighting, group)) {
      if (like !== 'whole' || original.offset < tailBytes || original.state !== 'unlinked') return 'new';
      if (size < original.size) return 'new';
      // Another file with the same content was renamed over this one.
      openFiles.close(original);
      resume(original, group, sighting);
      return 'copy';
    }
    // It is being written: what is empty begins like every file.
    if (size === 0) return 'wait';
    // Only a live file is truncated and written again. To open each older one would cost most of a catch-up.
    if (beginsElse && original.state === 'rotated') return 'new';
    const wasOpen = original.fd !== undefined;
    const fd = openFiles.open(original);
    if (fd === undefined) {
      if (like !== 'whole' && like !== 'short') return 'new';
      // It was renamed since it was listed. Timestamps and banners repeat, so the next scan compares it, however late it comes.
      if (statReal(original) === undefined) return 'wait';
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

  /** Compares a plain file that is not followed with a tracked one. */
  const compareWith = (sighting: Sighting, group: string, original: TrackedFile): Comparison => {
    const seen = contents.of(sighting, (content) => ({
      like: likeness(content, knownContent(original)),
      size: content.size,
      beginsElse: headAgrees(original.fingerprint.head, content.start) === false,
    }));
    if (!seen) return { verdict: 'wait', size: 0 };
    return { verdict: verdictOn(sighting, group, original, seen), size: seen.size };
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

  /**
   * Forgets the content of a copy of a part, by which its archive would be known, if the file goes on otherwise: it was no
   * copy, but a generation that begins the same, and others may begin the same, too.
   */
  const forgetPart = (sighting: Sighting, { path, generation, size, offset }: LetGo): void => {
    // It has the content of the whole generation since its original was finished. There may be thousands of others.
    if (size < 0 || size >= offset || isCompressed(sighting.paths[0]!)) return;
    for (const part of [...tracker.letGoOf(path)]) {
      if (part.ino >= 0n || part.generation !== generation || part.offset !== size) continue;
      const like = contents.of(sighting, (content) => likeness(content, letGoContent(part)));
      if (like === 'whole') tracker.forget(part);
    }
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
      forgetPart(sighting, file);
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
        if (fd !== undefined && contents.isPrefixOf(sighting, older.size, fd)) tracker.markCopy(older, file);
      }
    }
  };

  return {
    keyOf,
    waitFor,
    hasPlainBeside,
    compareWith,
    copyOfLetGo,
    looksCopied,
    isLetGo,
    findCopiesAmongOlder,
  };
}

export type Copies = ReturnType<typeof createCopies>;
