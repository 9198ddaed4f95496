import { basename } from 'node:path';
import type { Archives } from './archives.ts';
import type { Copies } from './copies.ts';
import type { Sighting } from './discovery.ts';
import type { Generations } from './generations.ts';
import type { Groups } from './groups.ts';
import { isCompressed, isGzip, isRotationOf } from './rotated-names.ts';
import type { RotationDeps, ScanState } from './scan-state.ts';
import type { TrackedFile } from './tracked-file.ts';

/**
 * Identifies a file that is not followed: a generation to follow from its beginning, one that was given up and continues
 * here, a copy or an archive of a known one, older than its group, not part of any group, or undecided in this scan.
 */
export function createIdentification(
  deps: RotationDeps,
  scan: ScanState,
  {
    groups,
    generations,
    copies,
    archives,
  }: { groups: Groups; generations: Generations; copies: Copies; archives: Archives },
) {
  const { tracker, openFiles, contents } = deps;
  const { isHome, isSwungOver } = groups;
  const { letGoWhole, track } = generations;
  const { compareWith, copyOfLetGo, looksCopied } = copies;
  const { compareWithArchive, identifyGzip, continueGivenUp, passOver } = archives;

  /** It was there before the first scan of its log. */
  const isOlder = ({ stat, found, isOlder }: Sighting, group: string): boolean => {
    if (isOlder || !scan.isLegacy || found.length > 0) return isOlder;
    const newest = tracker.group(group).reduce((ns, { mtimeNs }) => (mtimeNs > ns ? mtimeNs : ns), 0n);
    return stat.mtimeNs <= newest;
  };

  const isMember = (sighting: Sighting, group: string): boolean => {
    if (sighting.found.length > 0) return true;
    const name = basename(sighting.paths[0]!);
    return (
      isRotationOf(name, basename(group)) ||
      tracker.group(group).some(({ home }) => isRotationOf(name, basename(home))) ||
      isSwungOver(sighting, group)
    );
  };

  /** Returns true if the archive is a generation that was never seen plain. */
  const isNewArchive = (sighting: Sighting, group: string): boolean => {
    if (!isGzip(basename(sighting.paths[0]!))) {
      passOver(sighting, group);
      return false;
    }
    const identified = identifyGzip(sighting, group);
    if (identified.verdict === 'more') continueGivenUp(sighting, group, identified.of);
    if (identified.verdict === 'copy') {
      letGoWhole(group, sighting, tracker.group(group).at(-1)?.generation ?? 0, {
        copyOf: identified.of,
      });
    }
    return identified.verdict === 'new';
  };

  /** There may be thousands of files that are followed since this scan: they are left out, not passed over one by one. */
  const maybeCopied = (group: string): Iterable<TrackedFile> => {
    const known =
      scan.copied.get(group) ?? new Set(tracker.group(group).filter((file) => scan.mayBeCopied(file)));
    scan.copied.set(group, known);
    return known;
  };

  /** Returns true if the plain file has the content of no other file. */
  const isNewContent = (sighting: Sighting, group: string): boolean => {
    const { stat } = sighting;
    for (const original of maybeCopied(group)) {
      if (original.state === 'missing' || !tracker.has(original)) continue;
      const { verdict, size } = original.compressed
        ? compareWithArchive(sighting, original)
        : compareWith(sighting, group, original);
      if (verdict === 'new') continue;
      if (verdict === 'wait') scan.needsScan = true;
      else if (!tracker.get(stat.dev, stat.ino))
        letGoWhole(group, sighting, original.generation, { copyOf: original, atMost: size });
      return false;
    }
    return isHome(sighting, group)
      ? !(scan.newGroups.has(group) && looksCopied(sighting))
      : copyOfLetGo(sighting, group) !== 'copy';
  };

  const startOf = ({ found }: Sighting) =>
    found.length === 0 || found.some(({ startAt }) => startAt === 'beginning') ? 'beginning' : 'end';

  const follow = (sighting: Sighting, group: string) => {
    const { stat } = sighting;
    const file = track(group, sighting, startOf(sighting));
    if (stat.size > 0 || !scan.newGroups.has(group)) return;
    if (file.nowSize > 0 && startOf(sighting) === 'beginning') {
      // It was listed when it was empty, and what it holds by now may be a copy: the next scan decides, also about the files
      // that may be copies of it.
      openFiles.close(file);
      tracker.remove(file);
      scan.unseenGroups.add(group);
      scan.needsScan = true;
      return;
    }
    file.isBlank = true;
  };

  return {
    identify(sighting: Sighting, group: string): void {
      if (isOlder(sighting, group)) {
        letGoWhole(group, sighting, 0);
        return;
      }
      if (!isMember(sighting, group) || (sighting.stat.size === 0 && !isHome(sighting, group))) return;
      const access = contents.open(sighting);
      if (access === 'moved') {
        scan.isDisturbed = true;
        return;
      }
      if (access === 'denied') {
        // It is followed so that the problem is reported.
        track(group, sighting, startOf(sighting));
        return;
      }
      const isNew = isCompressed(sighting.paths[0]!) ? isNewArchive : isNewContent;
      if (isNew(sighting, group)) follow(sighting, group);
    },
  };
}

export type Identification = ReturnType<typeof createIdentification>;
