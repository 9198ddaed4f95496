import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import type { SkipReason } from '../../../core/reasons.ts';
import { fileKey, isFileAt, type Sighting } from './discovery.ts';
import type { FileStat } from './disk.ts';
import { growHead, type KnownContent, type Seen, tailBytes } from './fingerprint.ts';
import type { Groups } from './groups.ts';
import { isBetween, isCompressed } from './rotated-names.ts';
import type { RotationDeps, ScanState } from './scan-state.ts';
import {
  isUnread,
  knownContent,
  type LetGo,
  newTrackedFile,
  noBytes,
  type TrackedFile,
  unreadBytes,
} from './tracked-file.ts';

/**
 * The transitions of a single generation: it is followed, lost, found again in another file, or let go. See the state machine
 * in `rotation.ts`.
 */
export function createGenerations(deps: RotationDeps, scan: ScanState, { isHome }: Groups) {
  const { disk, clock, tracker, openFiles, reader, sinks, contents } = deps;

  const logEvent = (
    msg: string,
    path: string,
    { generation, offset }: { generation: number; offset: number },
  ) => deps.log.write('debug', msg, { path, generation, offset });

  /** Takes the fingerprint of a file that is not read yet, so that it can be found again. */
  const learn = (file: TrackedFile) => {
    const isUnknown = isUnread(file) && file.fingerprint.head.length === 0;
    if (isUnknown && file.fd !== undefined && file.nowSize > 0 && !file.compressed) reader.learn(file);
  };

  const note = (file: TrackedFile, stat: FileStat, state: TrackedFile['state']) => {
    file.absentSinceMs = undefined;
    file.missedSinceMs = undefined;
    if (stat.size === file.nowSize && stat.mtimeNs === file.nowMtimeNs && state === file.state) return;
    if (stat.size < file.nowSize) file.size = Math.max(file.size, file.nowSize);
    if (stat.size !== file.nowSize) file.record = undefined;
    Object.assign(file, { nowSize: stat.size, nowMtimeNs: stat.mtimeNs, state });
    file.changedMs = clock.monotonicMs();
    learn(file);
    deps.changed(file);
  };

  const statOpen = (file: TrackedFile): FileStat | undefined => {
    if (file.fd === undefined) return undefined;
    try {
      return disk.fstat(file.fd);
    } catch {
      openFiles.close(file);
      return undefined;
    }
  };

  /** The inode is another file's by now, or the file has other bytes: the generation is in another file, or lost. */
  const lose = (file: TrackedFile, by: 'truncated' | 'vanished') => {
    logEvent(by === 'truncated' ? 'file was rewritten' : 'file is not found', file.real, file);
    const wasHeld = file.isOwnInode;
    openFiles.close(file);
    file.formerIno = file.ino;
    tracker.detach(file);
    Object.assign(file, {
      state: 'missing',
      lostBy: by,
      wasHeld,
      at: '',
      missedSinceMs: undefined,
      isVerified: false,
    });
    // The size of an archive says nothing about its generation, nor does that of what was written in its place.
    if (file.compressed || by === 'truncated') file.nowSize = file.size;
    file.compressed = false;
    scan.lostGroups.add(file.path);
    scan.needsScan = true;
  };

  /** Nothing of the file was counted, and another one that begins the same is read from its beginning. */
  const forgetBeginning = (file: TrackedFile) => {
    Object.assign(file, { rest: noBytes, restBytes: 0, size: 0, nowSize: 0, record: undefined });
  };

  /** Records what identifies a let-go file if it grows or is copied. */
  const letGo = (
    path: string,
    stat: FileStat,
    content: KnownContent | undefined,
    generation: number,
    copyOf?: TrackedFile,
    lostBy?: TrackedFile['lostBy'],
  ) => {
    const { dev, ino, size, mtimeNs } = stat;
    const { offset, head, tailLength, tailSum } = content ?? {
      offset: size,
      head: [],
      tailLength: 0,
      tailSum: 0,
    };
    tracker.letGo({
      path,
      dev,
      ino,
      generation,
      size,
      mtimeNs,
      offset,
      head,
      tailLength,
      tailSum,
      copyOf,
      lostBy,
      absences: 0,
    });
  };

  /** Lets a file go, with everything in it taken as counted; with `atMost`, so many bytes of it, as it may have grown since. */
  const letGoWhole = (
    group: string,
    sighting: Seen,
    generation: number,
    { copyOf, atMost = Infinity }: { copyOf?: TrackedFile; atMost?: number } = {},
  ) => {
    const content = contents.of(sighting, (own): KnownContent => {
      const offset = Math.min(own.size, atMost);
      const tailLength = Math.min(tailBytes, offset);
      const tail = own.at(offset - tailLength, tailLength) ?? own.start.subarray(0, 0);
      return {
        offset,
        head: growHead([], own.start, Math.min(own.start.length, offset)),
        tailLength: tail.length,
        tailSum: crc32(tail),
        rest: own.start.subarray(0, 0),
      };
    });
    letGo(group, sighting.stat, content, generation, copyOf);
    logEvent(copyOf ? 'file is a copy' : 'file is not read', sighting.paths[0]!, {
      generation,
      offset: content?.offset ?? 0,
    });
  };

  /**
   * The file is not followed any more. Of its copies as much was counted as of the file itself: what they have beyond its
   * offset is read once they are seen again. What a shorter copy holds is remembered as well: the beginnings of files that
   * are known do not suffice to recognize its archive if that is small.
   */
  const releaseCopies = (file: TrackedFile) => {
    const content = knownContent(file);
    for (const copy of tracker.copiesOf(file)) {
      tracker.forget(copy);
      if (file.offset === 0) continue;
      const { path, dev, ino, mtimeNs } = copy;
      const size = copy.offset > file.offset ? -1 : copy.size;
      letGo(path, { dev, ino, size, mtimeNs, nlink: 1, kind: 'file' }, content, file.generation);
      if (copy.offset < file.offset)
        tracker.letGo({ ...copy, ino: -1n, generation: file.generation, copyOf: undefined, absences: 0 });
    }
  };

  const letGoTracked = (file: TrackedFile, by: 'read' | 'deleted' | 'given up') => {
    logEvent('file is finished', file.real, file);
    openFiles.close(file);
    tracker.remove(file);
    const stat = {
      dev: file.dev,
      ino: by === 'read' ? file.ino : -1n,
      size: file.nowSize,
      mtimeNs: file.nowMtimeNs,
    };
    letGo(
      file.path,
      { ...stat, nlink: 1, kind: 'file' },
      knownContent(file),
      file.generation,
      undefined,
      by === 'given up' ? file.lostBy : undefined,
    );
    releaseCopies(file);
  };

  /** The generation is over: its unfinished line counts, and what was never read is counted as skipped. */
  const giveUp = (file: TrackedFile, reason: SkipReason) => {
    const missing = unreadBytes(file);
    logEvent('file is given up', file.real, file);
    sinks.finish(file);
    sinks.skip(file, reason, missing);
    letGoTracked(file, 'given up');
  };

  const claim = (file: TrackedFile, { found }: Sighting) => {
    const names = found.map(({ path }) => path).join('\0');
    if (names === file.names) return;
    file.names = names;
    const claimants = deps.patterns().claimants([file.path, ...found.map(({ path }) => path)]);
    if (claimants.join() === file.claimants.join()) return;
    file.claimants = claimants;
    sinks.reopen(file);
  };

  const namesIn = (directory: string): string[] => {
    try {
      return disk.list(directory).map(({ name }) => `${directory}/${name}`);
    } catch {
      return [];
    }
  };

  /**
   * The path without links of a file that was found at `at`. A link there may have been swung since, more than once: with
   * the name that it leads to by now, the next scan would not look for the files between.
   */
  const realOf = (at: string, { stat, found }: Sighting): string => {
    const real = disk.real(at);
    const isAt = (path: string) => isFileAt(disk, path, fileKey(stat));
    if (real === at || isAt(real)) return real;
    const isLink = (path: string) => found.some((match) => match.path === path);
    return namesIn(dirname(real)).find((path) => !isLink(path) && isAt(path)) ?? real;
  };

  const track = (group: string, sighting: Sighting, startAt: 'end' | 'beginning'): TrackedFile => {
    const { stat, found, paths } = sighting;
    const at = found.find(({ path }) => path === group)?.path ?? found[0]?.path ?? '';
    const real = at === '' ? paths[0]! : realOf(at, sighting);
    const isOwn = isHome(sighting, group);
    const last = tracker.group(group).at(-1)?.home ?? group;
    const isLinked = last !== group && isBetween(basename(real), basename(last));
    const home = isOwn || isLinked ? real : last;
    const file = newTrackedFile(
      { path: group, home, real },
      stat,
      tracker.nextGeneration(),
      deps.patterns().claimants(found.length > 0 ? found.map(({ path }) => path) : [group]),
      isCompressed(real),
    );
    file.at = at;
    file.state = isOwn ? 'live' : 'rotated';
    file.nowMtimeNs = stat.mtimeNs;
    file.mtimeNs = -1n;
    tracker.add(file);
    logEvent('file is followed', real, file);
    scan.taken.add(file);
    scan.takenGroups.add(group);
    if (scan.mayBeCopied(file)) scan.copied.get(group)?.add(file);
    deps.changed(file);
    if (file.compressed) {
      if (startAt === 'end') {
        sinks.skip(file, 'start_at_end', contents.of(sighting, ({ size }) => size) ?? stat.size);
        tracker.remove(file);
        letGoWhole(group, sighting, file.generation);
      } else openFiles.hold(file, contents.take(sighting));
      return file;
    }
    openFiles.hold(file, contents.take(sighting));
    // It may have been truncated since it was listed.
    const now = statOpen(file);
    if (now) Object.assign(file, { nowSize: now.size, nowMtimeNs: now.mtimeNs });
    if (startAt === 'end') reader.startAtEnd(file);
    else reader.learn(file);
    return file;
  };

  /** Continues a generation in another file. */
  const resume = (old: TrackedFile, group: string, sighting: Sighting) => {
    const { stat, paths, found } = sighting;
    tracker.attach(old, stat);
    logEvent('file goes on in another one', paths[0]!, old);
    const real = paths[0]!;
    const state = isHome(sighting, group) ? 'live' : 'rotated';
    const size = isCompressed(real)
      ? stat.size
      : (contents.of(sighting, (content) => content.size) ?? stat.size);
    Object.assign(old, {
      real,
      at: found[0]?.path ?? '',
      state,
      compressed: isCompressed(real),
      nowSize: size,
      // An archive may still be written: it is compared once more.
      nowMtimeNs: isCompressed(real) ? -1n : stat.mtimeNs,
      isVerified: false,
      missedSinceMs: undefined,
      absentSinceMs: undefined,
    });
    old.changedMs = clock.monotonicMs();
    const known = tracker.letGoAt(stat.dev, stat.ino);
    if (known) tracker.forget(known);
    deps.changed(old);
    openFiles.hold(old, contents.take(sighting));
  };

  /** Follows a file again that was let go. */
  const followAgain = (file: LetGo, sighting: Sighting) => {
    logEvent('file is followed again', sighting.paths[0]!, file);
    tracker.forget(file);
    // Compared first: the descriptor goes over to the tracked file.
    const tail = contents.of(sighting, ({ at }) => {
      const bytes = at(file.offset - file.tailLength, file.tailLength);
      return bytes && Buffer.from(bytes);
    });
    const next = track(file.path, sighting, 'beginning');
    next.offset = file.offset;
    next.size = file.offset;
    next.fingerprint = { head: file.head, tail: tail ?? noBytes };
    if (!tail) next.tailSum = { length: file.tailLength, sum: file.tailSum };
    scan.taken.delete(next);
    scan.copied.get(next.path)?.add(next);
  };

  return {
    logEvent,
    learn,
    note,
    statOpen,
    lose,
    forgetBeginning,
    letGo,
    letGoWhole,
    letGoTracked,
    releaseCopies,
    giveUp,
    claim,
    realOf,
    track,
    resume,
    followAgain,
  };
}

export type Generations = ReturnType<typeof createGenerations>;
