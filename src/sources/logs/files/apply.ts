import { basename } from 'node:path';
import { crc32 } from 'node:zlib';
import type { SkipReason } from '../../../core/reasons.ts';
import { fileKey, type Sighting, startsAtEnd } from '../discovery/picture.ts';
import { isCompressed, isSameLog } from '../discovery/rotated-names.ts';
import { type Content, identifyingBytes, learn, marksAgree, noChain } from './chain.ts';
import type { Action, FileFacts } from './decision.ts';
import {
  type Generation,
  isUnread,
  knownBytes,
  type LostBy,
  newGeneration,
  noBytes,
  seenBytes,
  unreadBytes,
} from './generation.ts';
import type { Generations } from './generations.ts';
import type { Places, ScanDeps } from './places.ts';

/** How many copies of a generation's first few bytes are remembered. */
const partsLimit = 4;
/** If a file is not to be read, a checksum of all its bytes is computed up to this size. */
const summedBytes = 1024 * 1024;

/** Forgets the inode of a generation that is gone if another file has it by now. */
function releaseInode({ lost }: Generations, { stat }: Sighting): void {
  for (const of of lost) {
    if (of.lost?.key === fileKey(stat) && knownBytes(of) === 0) of.lost = { ...of.lost, key: '' };
  }
}

/**
 * What a content shows about a generation of which nothing was counted. The file may have been truncated between the look-up of
 * its size and the reading of its beginning; the size in its place was looked up after that.
 */
const beginningOf = ({ chain, size, place }: Generation, content: Content) => ({
  chain: learn(chain, content.start),
  size: Math.max(size, Math.min(content.size, place!.size)),
});

/** The last lost generation of a file. An earlier file of a log with another name may have had its inode. */
const lastLost = ({ lost }: Generations, key: string, path: string): Generation | undefined =>
  [...lost].findLast((of) => of.lost?.key === key && isSameLog(basename(path), basename(of.home)));

/** Forgets a generation of which nothing was counted when its file turns out to hold nothing that must be read. */
function forgetMissed(generations: Generations, key: string, start: Buffer): void {
  for (const of of [...generations.lost]) {
    const { chain, rest, lost } = of;
    if (lost?.key !== key || !isUnread(of) || marksAgree(chain, start) === false) continue;
    if (start.subarray(0, rest.length).equals(rest)) generations.remove(of);
  }
}

/** The listed files by `fileKey`. */
type Sightings = ReadonlyMap<string, Sighting>;

const isMatched = (sightings: Sightings, log: string): boolean =>
  [...sightings.values()].some(({ found }) => found.some(({ path }) => path === log));

const logEvent = ({ log }: ScanDeps, msg: string, path: string, { number, chain }: Generation): void =>
  log.write('debug', msg, { path, generation: number, offset: chain.offset });

/** Ends the reading of generations. */
function createEndings(deps: ScanDeps, places: Places) {
  const { generations, openFiles, reader, sinks, compared } = deps;

  const close = (of: Generation) => {
    reader.close(of);
    if (of.place) openFiles.close(of.place);
  };

  /** Marks a generation as lost: its inode belongs to another file by now, or its file has other bytes. */
  const lose = (of: Generation, by: LostBy) => {
    logEvent(deps, by === 'truncated' ? 'file was rewritten' : 'file is not found', of.place!.real, of);
    const { size } = of.place!;
    const now = by === 'truncated' ? places.stat(of) : undefined;
    // The file may hold less now than it held before.
    if (now && now.size < size) generations.update(of, { size: Math.max(of.size, size) });
    // The open file is read even if it is renamed or deleted before the next scan lists it.
    const fd = now && openFiles.release(of.place!);
    if (now && fd !== undefined) compared.adopt({ stat: now, paths: [of.place!.real] }, fd);
    close(of);
    generations.lose(of, by);
  };

  /**
   * Ends a generation. Copies that hold more than what was counted are compared again; copies in an archive are compared once.
   */
  const end = (of: Generation, lostBy?: LostBy) => {
    logEvent(deps, 'file is finished', of.place?.real ?? of.home, of);
    const { place } = of;
    close(of);
    generations.end(of, lostBy);
    if (place && place.state !== 'unlinked') generations.know({ ...place, path: place.real, of });
    if (lostBy) for (const copy of generations.copiesOf(of)) if (copy.isGzip) copy.size = -1;
  };

  /**
   * Gives up a generation. Bytes that were never read are counted as skipped, together with the line that they continue. If all
   * bytes were read, the unfinished line counts.
   */
  const giveUp = (of: Generation, reason: SkipReason) => {
    const missing = unreadBytes(of);
    const isCut = missing > 0;
    const { length } = of.rest;
    sinks.finish(of, isCut);
    sinks.skip(of, reason, isCut ? missing + length : 0);
    end(of, of.lostBy ?? 'vanished');
  };

  return { close, lose, end, giveUp };
}

/** Records files that are not read. */
function createPassing(deps: ScanDeps) {
  const { generations, sinks } = deps;

  const know = (sighting: Sighting, of: Generation, content: Content | undefined) => {
    const isGzip = content?.isGzip === true;
    generations.know({ ...sighting.stat, path: sighting.paths[0]!, isGzip, of });
  };

  /** Remembers a copy of the first few bytes of a generation, because an archive of that copy may appear later. */
  const rememberPart = (of: Generation, { size, start, isGzip }: Content) => {
    if (isGzip || size === 0 || size >= identifyingBytes) return;
    const part = { size, sum: crc32(start) };
    const others = of.parts.filter((other) => other.size !== size);
    generations.update(of, { parts: [...others, part].slice(-partsLimit) });
  };

  /** Records a file that is not read as an ended generation that has everything the file holds. */
  const pass = async (sighting: Sighting, group: string, content: Content | undefined, number = 0) => {
    const offset = content?.size ?? sighting.stat.size;
    const isSummed = content && (content.isGzip || offset <= summedBytes);
    const prefix = content && offset > 0 ? await content.prefix(offset) : undefined;
    const sum = offset === 0 ? 0 : isSummed ? prefix?.sum : undefined;
    const chain = { ...learn(noChain, content?.start ?? noBytes), offset, sum, tail: prefix?.tail ?? '' };
    const home = sighting.paths[0]!;
    const of = newGeneration({ number, group, home, claimants: [], chain, size: offset, status: 'ended' });
    generations.add(of);
    know(sighting, of, content);
    logEvent(deps, 'file is not read', home, of);
  };

  /**
   * Passes over a file in a format that is not read. It is counted as skipped unless it may be the archive of a generation that
   * was read and is in no listed file any more.
   */
  const passForeign = async (sighting: Sighting, group: string, content: Content, sightings: Sightings) => {
    const { mtimeNs, size } = sighting.stat;
    const isKnown = [...generations.ended(group)].some((one) => {
      const copies = generations.copiesOf(one);
      const isGone = copies.every((copy) => !sightings.has(fileKey(copy)));
      return isGone || copies.some((copy) => copy.mtimeNs === mtimeNs);
    });
    const last = generations.group(group).at(-1);
    await pass(sighting, group, content, last?.number);
    if (!isKnown && last) sinks.skip(last, 'unreadable', size);
  };

  return { know, rememberPart, pass, passForeign };
}

/** Begins the reading of generations. */
function createFollowing(
  deps: ScanDeps,
  places: Places,
  { close }: Pick<ReturnType<typeof createEndings>, 'close'>,
  { pass }: Pick<ReturnType<typeof createPassing>, 'pass'>,
) {
  const { generations, openFiles, reader, sinks, compared } = deps;

  /** The fields of a new generation. */
  const beginning = ({ found }: Sighting, group: string, real: string, isHome: boolean) => ({
    number: generations.nextNumber(),
    group,
    home: places.homeOf(group, real, isHome),
    claimants: deps.patterns().claimants(found.length > 0 ? found.map(({ path }) => path) : [group]),
  });

  /** Reads a generation from this file from now on. */
  const take = (of: Generation, sighting: Sighting) => {
    openFiles.hold(of.place!, compared.take(sighting));
    places.claim(of, sighting);
    deps.changed(of);
  };

  /** Follows a file from its beginning, or from its end. */
  const follow = async (sighting: Sighting, { group, content: held, isHome, isNewGroup }: FileFacts) => {
    const content = typeof held === 'string' ? undefined : held;
    const isGzip = content?.isGzip ?? held === 'unfinished';
    const place = places.of(sighting, group, isGzip, isHome);
    const of = newGeneration(beginning(sighting, group, place.real, isHome));
    logEvent(deps, 'file is followed', place.real, of);
    if (content?.isGzip && startsAtEnd(sighting)) {
      sinks.skip(of, 'start_at_end', content.size);
      await pass(sighting, group, content, of.number);
      return;
    }
    releaseInode(generations, sighting);
    generations.add(of, place);
    take(of, sighting);
    if (isGzip) return;
    // The listed file may have been another file with the same inode.
    if (content && content.size < sighting.stat.size) generations.relocate(of, { size: content.size });
    places.refresh(of);
    // The compared file may have been closed to make room for others, and another file may be at its path by now.
    if (content) generations.update(of, beginningOf(of, content));
    place.isBlank = sighting.stat.size === 0 && isNewGroup;
    if (startsAtEnd(sighting)) reader.startAtEnd(of);
    else if (!place.isBlank) reader.learn(of);
  };

  /** Continues a generation in another file. At the path of another log, it belongs to that log if its own log is gone. */
  const resume = (of: Generation, content: Content, file: FileFacts, sightings: Sightings) => {
    const { key, group, isHome } = file;
    const sighting = sightings.get(key)!;
    if (isHome && group !== of.group && !isMatched(sightings, of.group)) generations.move(of, group);
    const place = places.of(sighting, of.group, content.isGzip, isHome);
    logEvent(deps, 'file continues in another file', place.real, of);
    close(of);
    const hadRest = seenBytes(of);
    generations.settle(of, place);
    if (isHome) generations.update(of, { home: place.real });
    // The file may have grown since it was listed.
    if (!content.isGzip) generations.relocate(of, { size: content.size });
    take(of, sighting);
    places.refresh(of);
    // With the marks of its beginning, a copy of the file can be found if it is truncated before it is read.
    if (isUnread(of) && !content.isGzip) generations.update(of, beginningOf(of, content));
    // The copy was made before the unfinished line was written.
    if (content.size < hadRest) sinks.cut(of);
  };

  /** Begins a new generation for a file that so far has the same bytes as another generation. */
  const fork = (of: Generation, sighting: Sighting, group: string) => {
    const place = places.of(sighting, group, false, false);
    const { chain, home, claimants } = of;
    const next = newGeneration({ number: generations.nextNumber(), group, home, claimants, chain });
    generations.add(next, place);
    take(next, sighting);
  };

  /** Looks for the content of a file that was listed but could not be opened, as for a lost generation. */
  const miss = (sighting: Sighting, { key, group, isHome }: Pick<FileFacts, 'key' | 'group' | 'isHome'>) => {
    const { stat, paths } = sighting;
    if (stat.size === 0 || isCompressed(paths[0]!) || startsAtEnd(sighting)) return;
    const former = lastLost(generations, key, paths[0]!);
    if (former) {
      // The file is the lost generation itself, which had grown.
      if (former.lost!.wasLive && former.lostBy === 'vanished' && paths[0] === former.home)
        generations.update(former, { size: Math.max(former.size, stat.size) });
      return;
    }
    const own = beginning(sighting, group, paths[0]!, isHome);
    const of = newGeneration({ ...own, size: stat.size, lostBy: 'vanished' });
    of.lost = { key, dev: stat.dev, wasLive: isHome };
    generations.add(of);
    logEvent(deps, 'file was gone before it was read', paths[0]!, of);
  };

  return { follow, resume, fork, miss };
}

/** Carries out what `match` decided: the only stage that changes what is known. */
export function createApply(deps: ScanDeps, places: Places) {
  const { generations } = deps;
  const endings = createEndings(deps, places);
  const passing = createPassing(deps);
  const { lose, end, giveUp } = endings;
  const { know, rememberPart, pass, passForeign } = passing;
  const { follow, resume, fork, miss } = createFollowing(deps, places, endings, passing);

  return {
    lose,
    giveUp,
    end,
    miss,

    async apply(action: Action, sightings: Sightings): Promise<void> {
      // Several files may have been compared with this generation.
      if (action.do === 'lose') return action.of.place && lose(action.of, 'truncated');
      const { file } = action;
      const sighting = sightings.get(file.key)!;
      const content = typeof file.content === 'string' ? undefined : file.content;
      if (action.do === 'pass' || action.do === 'copy')
        forgetMissed(generations, file.key, content?.start ?? noBytes);
      if (action.do === 'wait') {
        if (action.of && action.isPart && content) rememberPart(action.of, content);
      } else if (action.do === 'miss') miss(sighting, file);
      else if (action.do === 'pass') {
        // An archive that was passed over before, and has grown, counts once.
        const isBefore = content && file.formerly && marksAgree(file.formerly.chain, content.start);
        if (content && !file.isOlder && isBefore !== true)
          await passForeign(sighting, file.group, content, sightings);
        else await pass(sighting, file.group, content);
      } else if (action.do === 'copy') {
        logEvent(deps, 'file is a copy', sighting.paths[0]!, action.of);
        if (content) rememberPart(action.of, content);
        know(sighting, action.of, content);
      } else if (action.do === 'follow') {
        if (action.of) generations.remove(action.of);
        await follow(sighting, file);
      } else if (action.do === 'resume' && content) resume(action.of, content, file, sightings);
      else if (action.do === 'fork') fork(action.of, sighting, file.group);
    },
  };
}

export type Apply = ReturnType<typeof createApply>;
