import { fileKey } from '../discovery/picture.ts';
import type { Generation, Known, LostBy, Place } from './generation.ts';

/** How many deleted files have their content remembered, for copies that appear later. */
const deletedLimit = 128;

type Changes = Partial<Omit<Generation, 'place' | 'record' | 'group' | 'status'>>;

/** Finds generations by the files that hold them, by their group and by their status. */
interface GenerationIndex {
  /** By `fileKey`, the generation that is read from the file, or what is known about a file that is not read. */
  readAt(key: string): Generation | undefined;
  knownAt(key: string): Known | undefined;
  /** The generations that are followed or lost. */
  readonly open: ReadonlySet<Generation>;
  readonly lost: ReadonlySet<Generation>;
  readonly known: ReadonlyMap<string, Known>;
  /** The followed and lost generations of a group, oldest first. */
  group(path: string): readonly Generation[];
  /** The ended generations of a group. */
  ended(path: string): Iterable<Generation>;
  hasGroup(path: string): boolean;
  all(): Iterable<Generation>;
  groups(): Iterable<string>;
  /** Changes whenever a group is added. */
  groupsAdded(): number;
  copiesOf(generation: Generation): readonly Known[];
}

/** Every generation. Nothing else changes a generation. */
export interface Generations extends GenerationIndex {
  add(generation: Generation, place?: Place): void;
  remove(generation: Generation): void;
  update(generation: Generation, changes: Changes): void;
  /** Changes what is recorded about a generation's place. */
  relocate(generation: Generation, changes: Partial<Place>): void;
  move(generation: Generation, group: string): void;
  /** Gives new numbers to the followed and lost generations of a group. */
  arrange(path: string, members: readonly Generation[]): void;
  /** Marks a generation as lost: another file has its place by now, or the file is gone. */
  lose(generation: Generation, by: LostBy): void;
  /** From now on the generation is read from this file. */
  settle(generation: Generation, place: Place): void;
  /** From now on the generation is not read any more. */
  end(generation: Generation, lostBy?: LostBy): void;
  know(file: Omit<Known, 'absences'>): void;
  forget(file: Known): void;

  nextNumber(): number;
  /** The last number that was given to a generation. It continues from a snapshot. */
  lastNumber: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

interface Members {
  readonly all: Set<Generation>;
  /** The followed and lost generations, oldest first; undefined after a change. */
  sorted: readonly Generation[] | undefined;
}

const byNumber = (a: Generation, b: Generation) => a.number - b.number;

/** The generations of each group. */
function createGroupIndex() {
  const groups = new Map<string, Members>();
  let added = 0;
  return {
    get added() {
      return added;
    },
    paths: () => groups.keys(),
    has: (path: string) => groups.has(path),
    enter(generation: Generation): void {
      const members = groups.get(generation.group) ?? { all: new Set(), sorted: undefined };
      if (members.all.size === 0) added++;
      groups.set(generation.group, members);
      members.all.add(generation);
      members.sorted = undefined;
    },
    leave(generation: Generation): void {
      const members = groups.get(generation.group);
      members?.all.delete(generation);
      if (members) members.sorted = undefined;
      if (members?.all.size === 0) groups.delete(generation.group);
    },
    /** To be called after the generations of a group got other numbers. */
    renumbered(path: string): void {
      groups.get(path)!.sorted = undefined;
    },
    open(path: string): readonly Generation[] {
      const members = groups.get(path);
      if (!members) return [];
      members.sorted ??= [...members.all].filter(({ status }) => status !== 'ended').sort(byNumber);
      return members.sorted;
    },
    ended: (path: string): readonly Generation[] =>
      [...(groups.get(path)?.all ?? [])].filter(({ status }) => status === 'ended'),
  };
}

/** The files that hold a generation and are not read. */
function createCopies() {
  const known = new Map<string, Known>();
  const copies = new Map<Generation, Set<Known>>();
  return {
    known,
    has: (generation: Generation) => copies.has(generation),
    of: (generation: Generation): readonly Known[] => [...(copies.get(generation) ?? [])],
    add({ dev, ino, size, mtimeNs, path, isGzip, of }: Omit<Known, 'absences'>): void {
      const file = { dev, ino, size, mtimeNs, path, isGzip, of, absences: 0 };
      known.set(fileKey(file), file);
      const files = copies.get(of);
      if (files) files.add(file);
      else copies.set(of, new Set([file]));
    },
    remove(file: Known): void {
      known.delete(fileKey(file));
      const files = copies.get(file.of);
      files?.delete(file);
      if (files?.size === 0) copies.delete(file.of);
    },
  };
}

function createIndex() {
  const open = new Set<Generation>();
  const lost = new Set<Generation>();
  const reads = new Map<string, Generation>();
  const copies = createCopies();
  const groups = createGroupIndex();
  const index: GenerationIndex = {
    open,
    lost,
    known: copies.known,
    readAt: (key) => reads.get(key),
    knownAt: (key) => copies.known.get(key),
    group: groups.open,
    ended: groups.ended,
    hasGroup: groups.has,
    *all() {
      yield* open;
      for (const path of groups.paths()) yield* groups.ended(path);
    },
    groups: groups.paths,
    groupsAdded: () => groups.added,
    copiesOf: copies.of,
  };
  return { index, open, lost, reads, copies, groups };
}

export function createGenerations(): Generations {
  const { index, open, lost, reads, copies, groups } = createIndex();
  /** Ended generations that are in no file any more. */
  const deleted = new Set<Generation>();

  const change = (generation: Generation, changes: Partial<Generation>) => {
    Object.assign(generation as Mutable<Generation>, changes, { record: undefined });
  };
  /** Puts a generation, after changes, at the end of its group. */
  const replace = (generation: Generation, changes: Partial<Generation>) => {
    groups.leave(generation);
    change(generation, changes);
    groups.enter(generation);
  };
  const vacate = (generation: Generation) => {
    const { place } = generation;
    if (place && reads.get(fileKey(place)) === generation) reads.delete(fileKey(place));
  };
  const keepDeleted = (generation: Generation) => {
    if (generation.status !== 'ended' || copies.has(generation)) return;
    deleted.add(generation);
    const [oldest] = deleted;
    if (deleted.size > deletedLimit && oldest) all.remove(oldest);
  };

  const all: Generations = {
    ...index,
    lastNumber: 0,
    nextNumber: () => ++all.lastNumber,

    add(generation, place) {
      change(generation, { place, status: place ? 'followed' : generation.status });
      if (place) reads.set(fileKey(place), generation);
      if (generation.status === 'lost') lost.add(generation);
      if (generation.status !== 'ended') open.add(generation);
      groups.enter(generation);
      keepDeleted(generation);
    },
    remove(generation) {
      for (const file of copies.of(generation)) copies.remove(file);
      deleted.delete(generation);
      open.delete(generation);
      lost.delete(generation);
      vacate(generation);
      groups.leave(generation);
    },
    update: change,
    relocate(generation, changes) {
      Object.assign(generation.place as Mutable<Place>, changes);
      generation.record = undefined;
    },
    move: (generation, group) => replace(generation, { group }),
    arrange(path, members) {
      for (const generation of members) change(generation, { number: all.nextNumber() });
      groups.renumbered(path);
    },
    lose(generation, lostBy) {
      const { place, size } = generation;
      vacate(generation);
      const key = place ? fileKey(place) : '';
      // The size of an archive says nothing about its generation, and neither does the size of what was written in its place.
      const isItsOwn = place && !place.isGzip && lostBy === 'vanished';
      const told = isItsOwn ? Math.max(size, place.size) : size;
      change(generation, { status: 'lost', lostBy, place: undefined, size: told });
      generation.lost = { key, dev: place?.dev, wasLive: place?.state === 'live' };
      lost.add(generation);
    },
    settle(generation, place) {
      const before = copies.known.get(fileKey(place));
      if (before) all.forget(before);
      vacate(generation);
      lost.delete(generation);
      deleted.delete(generation);
      replace(generation, { status: 'followed', place, lostBy: undefined, lost: undefined });
      open.add(generation);
      reads.set(fileKey(place), generation);
    },
    end(generation, lostBy) {
      vacate(generation);
      open.delete(generation);
      lost.delete(generation);
      const restBytes = generation.rest.length;
      const none = { place: undefined, lost: undefined, names: '' };
      replace(generation, { ...none, status: 'ended', lostBy, restBytes });
      keepDeleted(generation);
    },
    know(file) {
      const before = copies.known.get(fileKey(file));
      if (before) all.forget(before);
      copies.add(file);
      deleted.delete(file.of);
      file.of.record = undefined;
    },
    forget(file) {
      copies.remove(file);
      file.of.record = undefined;
      keepDeleted(file.of);
    },
  };
  return all;
}
