import { createReadStream } from 'node:fs';
import { headOf } from './manifest.ts';

/**
 * Reads the operations on files in MariaDB's redo log (storage/innobase/include/mtr0types.h, FILE_CREATE and those after it). The
 * log names every tablespace that was changed since the last checkpoint.
 */
interface FileOperation {
  /** The name as `database/table`, in the form of file names. */
  name: string;
  /** Whether the table exists after the operation. */
  isThere: boolean;
}

const redoMagic = 'Phys';
/** The high half of the first byte of a record, for each operation. */
const [create, remove, rename, modify] = [0x80, 0x90, 0xa0, 0xb0];
const path = /\.\/([^/\0]{1,192}\/[^/\0]{1,192})\.ibd/g;
/** The overlap of two reads: longer than a record with two paths. */
const overlapBytes = 2048;
const headBytes = 12;

/** The operations in the order of the log; none from a file in another format. */
export async function readFileOperations(file: string): Promise<FileOperation[]> {
  const head = await headOf(file, 4).catch(() => undefined);
  if (head?.toString('latin1') !== redoMagic) return [];
  const found: FileOperation[] = [];
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
    const bytes: Buffer = Buffer.concat([rest, chunk as Buffer]);
    const end = Math.max(0, bytes.length - overlapBytes);
    found.push(...operationsIn(bytes, rest.length === 0 ? 0 : headBytes, end));
    rest = bytes.subarray(Math.max(0, end - headBytes));
  }
  return [...found, ...operationsIn(rest, found.length === 0 ? 0 : headBytes, rest.length)];
}

/** The operations whose path begins between two positions. */
function operationsIn(bytes: Buffer, from: number, to: number): FileOperation[] {
  const text = bytes.toString('latin1');
  return [...text.matchAll(path)].flatMap(({ 0: all, 1: name, index }) => {
    if (index < from || index >= to) return [];
    // The new name follows the old name.
    if (bytes[index - 1] === 0 && text.startsWith('.ibd\0./', index + all.length - 4)) {
      return operationAt(bytes, index) === rename ? [{ name: name!, isThere: false }] : [];
    }
    const type = operationAt(bytes, index);
    if (type === undefined) {
      const isRenamed = bytes[index - 1] === 0 && text.slice(Math.max(0, index - 5), index - 1) === '.ibd';
      return isRenamed ? [{ name: name!, isThere: true }] : [];
    }
    return [{ name: name!, isThere: type === create || type === modify }];
  });
}

/** The length of a number in bytes, according to its first byte. */
const numberBytes = (first: number) => (first < 0x80 ? 1 : first < 0xc0 ? 2 : first < 0xe0 ? 3 : 4);

/**
 * The kind of the record that ends with a path at this position. A record has kind, length, number of the tablespace, and page 0.
 */
function operationAt(bytes: Buffer, at: number): number | undefined {
  if (bytes[at - 1] !== 0) return undefined;
  for (const spaceBytes of [1, 2, 3, 4]) {
    const space = at - 1 - spaceBytes;
    if (space < 2 || numberBytes(bytes[space]!) !== spaceBytes) continue;
    for (const lengthBytes of [1, 2]) {
      const length = space - lengthBytes;
      if (length < 1 || numberBytes(bytes[length]!) !== lengthBytes) continue;
      const type = bytes[length - 1]!;
      if ([create, remove, rename, modify].includes(type)) return type;
    }
  }
  return undefined;
}
