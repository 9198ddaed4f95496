import type { SkipReason } from '../../../core/reasons.ts';
import { arrangeLineage } from './arrange.ts';
import type { Descriptors } from './descriptors.ts';
import { isCompressed } from './family.ts';
import type { Likenesses } from './likeness.ts';
import { noMark } from './mark.ts';
import type { Sibling, Siblings } from './siblings.ts';
import type { Sinks } from './sinks.ts';
import { newTrail, noBytes, type Trail } from './trail.ts';
import type { Trails } from './trails.ts';

/** What becomes of a generation whose file is not what it was; each call is one synchronous step. */
export interface Generations {
  /** The file holds other bytes: what was unread goes on in a copy, or is lost and counted. */
  rewritten(trail: Trail): void;
  /** Lets the trail go on wherever its bytes are found; false if they are nowhere. */
  moved(trail: Trail): boolean;
  /** The file is gone with all that was unread. */
  vanished(trail: Trail): void;
  /** Puts a lineage in order: by what the names say now, and files without a name by their times. */
  arrange(path: string): void;
  /** A compressed file is not the generation it was taken for. */
  mistaken(trail: Trail): void;
  /** A compressed file cannot be read any further. */
  broken(trail: Trail): void;
  /** A younger file was found at `newHome`: generations between the two are read before it. */
  succeeded(trail: Trail, newHome: string): void;
}

export interface GenerationsDeps {
  trails: Trails;
  siblings: Siblings;
  likenesses: Likenesses;
  sinks: Sinks;
  descriptors: Descriptors;
  isIntact(trail: Trail): boolean | undefined;
}

export function createGenerations(deps: GenerationsDeps): Generations {
  const { trails, siblings, likenesses, sinks, descriptors } = deps;

  const isUnknown = ({ dev, ino }: Sibling) => trails.get(dev, ino) === undefined;

  /** Counts the unfinished line if it was kept, and what was never read. */
  const lose = (trail: Trail, reason: SkipReason) => {
    const size = reason === 'vanished' ? Math.max(trail.size, trail.nowSize) : trail.size;
    const missing = size - trail.offset - trail.rest.length;
    sinks.finish(trail);
    sinks.skip(trail, reason, missing);
  };

  /** Gives a file the place of `old`: same lineage, same generation, same offset, same sink. */
  const resume = (old: Trail, file: Sibling, offset: number) => {
    const at = { path: old.path, home: old.home, real: file.path };
    const next = newTrail(at, file, old.generation, old.claimants, isCompressed(file.name));
    next.standing = file.path === old.home ? 'live' : 'rotated';
    next.offset = offset;
    next.mark = old.mark;
    next.size = old.size;
    next.sink = old.sink;
    next.carry = old.carry;
    next.restBytes = old.restBytes;
    next.rest = old.rest;
    next.nowMtimeNs = -1n;
    next.ruledOut = old.ruledOut;
    trails.add(next);
  };

  const adopt = (old: Trail, file: Sibling) => {
    const at = { path: old.path, home: old.home, real: file.path };
    const next = newTrail(at, file, trails.nextGeneration(), old.claimants, isCompressed(file.name));
    next.standing = 'rotated';
    next.nowMtimeNs = -1n;
    trails.add(next);
  };

  const arrange = (path: string) => arrangeLineage(trails, path);

  const isOld = (file: Sibling, old: Trail) => ['whole', 'perhaps'].includes(likenesses.of(file, old));

  const adoptYounger = (old: Trail, anchor: Sibling | undefined, newHome: string) => {
    const known = [old, ...trails.lineage(old.path)];
    for (const file of siblings.younger(old, anchor, newHome)) {
      const isNew = isUnknown(file) && file.size > 0 && file.path !== newHome;
      if (isNew && !known.some((trail) => isOld(file, trail))) adopt(old, file);
    }
    arrange(old.path);
  };

  /** The file in which the bytes of `old` go on, of several the longest. */
  const continuation = (old: Trail, candidates: readonly Sibling[], wanted: 'whole' | 'short' | 'perhaps') =>
    candidates
      .filter((file) => likenesses.of(file, old) === wanted)
      .sort((a, b) => b.size - a.size)
      .at(0);

  const resumeWhole = (old: Trail, candidates: readonly Sibling[]): Sibling | undefined => {
    const whole = continuation(old, candidates, 'whole');
    if (whole) resume(old, whole, old.offset);
    return whole;
  };

  const resumeCompressed = (old: Trail, candidates: readonly Sibling[]): Sibling | undefined => {
    const possible = candidates.filter(({ name, path }) => isCompressed(name) && !old.ruledOut?.has(path));
    const packed = continuation(old, possible, 'perhaps');
    if (packed) resume(old, packed, old.offset);
    return packed;
  };

  /** A copy that was taken before the last bytes were read holds nothing new, but must not be read again. */
  const loseIntoShortCopy = (old: Trail, candidates: readonly Sibling[]): Sibling | undefined => {
    const short = continuation(old, candidates, 'short');
    lose(old, 'truncated');
    const counted = { mark: noMark, restBytes: 0, rest: noBytes, carry: undefined };
    if (short) resume({ ...old, ...counted, size: short.size }, short, short.size);
    return short;
  };

  /** Rotated files that were overwritten in place are unknown files again. */
  const disownOverwritten = (trail: Trail) => {
    for (const { dev, ino } of siblings.family(trail)) {
      const known = trails.get(dev, ino);
      if (known && known !== trail && !known.compressed && deps.isIntact(known) === false) drop(known);
    }
  };

  /** The trail of which a rotated file has become a copy, overwritten in place. */
  const originalOf = (trail: Trail): Trail | undefined => {
    const file = siblings.family(trail).find(({ path }) => path === trail.real);
    if (!file || trail.standing === 'unlinked') return undefined;
    const others = trails
      .lineage(trail.path)
      .filter((other) => other !== trail && other.offset + other.restBytes > 0);
    return others.find((other) => likenesses.of(file, other) === 'whole');
  };

  const drop = (trail: Trail) => {
    descriptors.close(trail);
    trails.remove(trail);
    lose(trail, 'truncated');
  };

  const moved = (trail: Trail): boolean => {
    const here = siblings.withInode(trail).filter(isUnknown);
    const family = siblings.family(trail).filter(isUnknown);
    const next = resumeWhole(trail, here) ?? resumeWhole(trail, family) ?? resumeCompressed(trail, family);
    if (!next) return false;
    descriptors.close(trail);
    trails.remove(trail);
    adoptYounger(trail, next, trail.home);
    return true;
  };

  const vanished = (trail: Trail) => {
    descriptors.close(trail);
    trails.remove(trail);
    lose(trail, 'vanished');
    adoptYounger(trail, undefined, trail.home);
  };

  const rewritten = (trail: Trail) => {
    disownOverwritten(trail);
    const old = { ...trail, fd: undefined };
    Object.assign(trail, { offset: 0, mark: noMark, restBytes: 0, rest: noBytes, size: 0 });
    Object.assign(trail, { sink: undefined, carry: undefined, finished: false, record: undefined });
    const family = siblings.family(old).filter(isUnknown);
    const next = resumeWhole(old, family) ?? resumeCompressed(old, family) ?? loseIntoShortCopy(old, family);
    adoptYounger(old, next, old.home);
  };

  return {
    arrange,
    rewritten(trail) {
      siblings.forget();
      const original = trail.real === trail.home ? undefined : originalOf(trail);
      if (!original) rewritten(trail);
      else if (deps.isIntact(original) === false) rewritten(original);
      else drop(trail);
    },
    moved,
    vanished,
    mistaken(trail) {
      siblings.forget();
      trails.remove(trail);
      const old = { ...trail, ruledOut: new Set([...(trail.ruledOut ?? []), trail.real]) };
      if (!resumeCompressed(old, siblings.family(old).filter(isUnknown))) lose(old, 'vanished');
    },
    broken(trail) {
      trails.remove(trail);
      const missing = Math.max(trail.size - trail.offset, trail.restBytes);
      sinks.skip(trail, 'unreadable', missing);
    },
    succeeded(trail, newHome) {
      if (!trail.compressed && deps.isIntact(trail) === false) rewritten(trail);
      const family = siblings.family(trail);
      const anchor =
        family.find(({ dev, ino }) => dev === trail.dev && ino === trail.ino) ??
        family.find((file) => isCompressed(file.name) && isUnknown(file) && isOld(file, trail));
      adoptYounger(trail, anchor, newHome);
    },
  };
}
