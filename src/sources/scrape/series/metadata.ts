import { hashByte, hashText, mixedSlot } from '../../../core/hashes.ts';
import type { Slice } from '../../../core/slices.ts';
import { type ExposedType, readComment } from '../exposition/line-syntax.ts';
import type { LineTable, Page } from '../exposition/line-table.ts';

/**
 * The TYPE and HELP lines of a page, by the name of the family as the page spells it. The first of two contradicting lines
 * counts. Most lines may belong to families that the registry refuses, so only the ids of the lines are stored, and each look-up
 * reads its line.
 */
export interface Metadata {
  readonly types: ByName<ExposedType>;
  readonly helps: ByName<string>;
  /** Records the new ids of all lines (`packLines`). */
  renumber(newIds: Int32Array): void;
}

export interface ByName<T> {
  get(name: string): T | undefined;
}

/** The metadata, with the lines that count. */
interface ReadMetadata extends Metadata {
  /** The ids of the lines in a hash table; an empty slot is -1. */
  readonly slots: Int32Array;
}

type Described = Exclude<ReturnType<typeof readComment>, 'invalid' | undefined | { about: 'end' }>;

function readLine({ keys }: LineTable, id: number): Described | undefined {
  const at = keys.keyAt[id]!;
  const comment = readComment(keys.arena, at, at + keys.keyLength[id]!);
  return comment === 'invalid' || comment?.about === 'end' ? undefined : comment;
}

const leastSlots = 16;
/** The slots per line: with many free slots, a look-up reads few lines. */
const slotsOfLine = 2;

export async function readMetadata(table: LineTable, page: Page, slice: Slice): Promise<ReadMetadata> {
  let comments = 0;
  for (let n = 0; n < page.count; n++) comments += table.comment[page.order[n]!]!;
  let size = leastSlots;
  while (size < slotsOfLine * comments) size *= 2;
  const slots = new Int32Array(size).fill(-1);
  /** The result of the last look-up: the lines of a family follow each other. */
  let last: Described | undefined;

  /** The slot of the line, or the empty slot for it. */
  const slotOf = (about: Described['about'], name: string): number => {
    const hash = hashByte(hashText(name), about === 'type' ? 1 : 2);
    for (let slot = mixedSlot(hash, size); ; slot = (slot + 1) & (size - 1)) {
      if (slots[slot] === -1) return slot;
      const line = readLine(table, slots[slot]!);
      if (line?.about !== about || line.name !== name) continue;
      last = line;
      return slot;
    }
  };
  const find = (about: Described['about'], name: string): Described | undefined => {
    if (last?.name === name && last.about === about) return last;
    return slots[slotOf(about, name)] === -1 ? undefined : last;
  };

  for (let n = 0; n < page.count; n++) {
    const id = page.order[n]!;
    if (table.comment[id] === 0) continue;
    if (slice.isOver()) await slice.next();
    const line = readLine(table, id);
    if (line === undefined) continue;
    const slot = slotOf(line.about, line.name);
    if (slots[slot] === -1) slots[slot] = id;
  }
  return {
    slots,
    types: {
      get(name) {
        const found = find('type', name);
        return found?.about === 'type' ? found.type : undefined;
      },
    },
    helps: {
      get(name) {
        const found = find('help', name);
        return found?.about === 'help' ? found.help : undefined;
      },
    },
    renumber(newIds) {
      for (let slot = 0; slot < size; slot++) if (slots[slot] !== -1) slots[slot] = newIds[slots[slot]!]!;
    },
  };
}

export const noMetadata: ReadMetadata = {
  slots: new Int32Array(0),
  types: new Map(),
  helps: new Map(),
  renumber() {},
};

/** The names whose type changed. The lines of both pages must be in the table. */
export async function changedTypes(
  table: LineTable,
  before: ReadMetadata,
  now: ReadMetadata,
  slice: Slice,
): Promise<Set<string>> {
  const changed = new Set<string>();
  const isIn = new Uint8Array(table.keys.end);
  for (const id of before.slots) if (id !== -1) isIn[id] = 1;
  for (const id of now.slots) if (id !== -1) isIn[id]! ^= 1;
  // A line that counts on both pages is the same on both.
  for (let id = 0; id < isIn.length; id++) {
    const line = isIn[id] === 1 ? readLine(table, id) : undefined;
    if (line?.about === 'type' && before.types.get(line.name) !== now.types.get(line.name))
      changed.add(line.name);
    if (slice.isOver()) await slice.next();
  }
  return changed;
}
