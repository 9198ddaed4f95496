import type { Clock, Log } from '../../../core/ports.ts';
import type { DirectoryPicture, Picture } from './discovery.ts';
import type { Disk } from './disk.ts';
import type { Contents } from './fingerprint.ts';
import type { OpenFiles } from './open-files.ts';
import type { Patterns } from './patterns.ts';
import type { Problems } from './problems.ts';
import type { Reader, Sinks } from './reader.ts';
import type { Slices } from './schedule.ts';
import type { TrackedFile, Tracker } from './tracked-file.ts';

/** What the parts of the rotation are built from. */
export interface RotationDeps {
  disk: Disk;
  clock: Clock;
  log: Log;
  tracker: Tracker;
  openFiles: OpenFiles;
  reader: Reader;
  sinks: Sinks;
  contents: Contents;
  problems: Problems;
  slices: Slices;
  patterns: () => Patterns;
  /** Called for each file that changed. */
  changed(file: TrackedFile): void;
}

/** A file that looks like an unfinished copy or archive. */
interface Undecided {
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly sinceMs: number;
  readonly of?: TrackedFile;
  /** It was compared with that file, and holds its first bytes. */
  readonly isBeginning: boolean;
}

const noPicture: Picture = { files: new Map(), found: new Map(), directories: new Map(), passedOver: [] };

/** What one scan learns, shared by the parts of the rotation. */
export function createScanState() {
  return {
    picture: noPicture,
    /** A file is missing or undecided, and another scan may resolve it. */
    needsScan: false,
    /** The groups were restored from a snapshot that did not record what was let go. */
    isLegacy: false,
    /** A file was renamed or deleted between the listing and a comparison. */
    isDisturbed: false,
    /** Scans in a row with a listing that did not settle. */
    unsettledScans: 0,
    undecided: new Map<string, Undecided>(),
    nextUndecided: new Map<string, Undecided>(),
    /** Files that are followed since this scan: no copy of them is known yet. */
    taken: new Set<TrackedFile>(),
    takenGroups: new Set<string>(),
    /** By group the tracked files of which an unknown file may be a copy, once they are asked for. */
    copied: new Map<string, Set<TrackedFile>>(),
    /** Tracked files of groups that were known before this scan, once they are asked for. */
    originals: undefined as readonly TrackedFile[] | undefined,
    /** Groups of which nothing was known before this scan. */
    newGroups: new Set<string>(),
    /** Groups whose file was empty when it was first seen, and holds something by now. */
    blankGroups: new Set<string>(),
    /** Those files by key, until it is decided whether they are copies. */
    blanks: new Map<string, TrackedFile>(),
    /** Groups with a file that could not be looked up or compared in this scan. */
    unseenGroups: new Set<string>(),
    /** Groups of which a file turned out to be rewritten during a comparison: the next scan looks for its bytes first. */
    lostGroups: new Set<string>(),

    /** Archives that begin like a generation that was given up and turned out to be another one. */
    ruledOut: new Set<string>(),

    /** Whether an unknown file may be a copy of a tracked one: no copy is known yet of one that this scan has taken. */
    mayBeCopied(file: TrackedFile): boolean {
      return file.compressed || file.state === 'live' || !this.taken.has(file);
    },

    /** Begins the scan of another picture. */
    begin(picture: Picture): void {
      for (const set of [this.takenGroups, this.newGroups, this.blankGroups, this.unseenGroups]) set.clear();
      this.taken.clear();
      this.copied.clear();
      this.nextUndecided = new Map();
      this.originals = undefined;
      this.needsScan = false;
      this.isDisturbed = false;
      const isUnsettled = ({ isSettled, isListed }: DirectoryPicture) => isListed && !isSettled;
      const hasUnsettled = [...picture.directories.values()].some(isUnsettled);
      this.unsettledScans = hasUnsettled ? this.unsettledScans + 1 : 0;
      for (const [key, { path }] of this.blanks) {
        if (picture.files.has(key)) this.blankGroups.add(path);
        else this.blanks.delete(key);
      }
      for (const key of this.ruledOut) if (!picture.files.has(key)) this.ruledOut.delete(key);
      this.picture = picture;
    },
  };
}

export type ScanState = ReturnType<typeof createScanState>;
