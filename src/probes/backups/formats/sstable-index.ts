import { open } from 'node:fs/promises';

/**
 * A file of an SSTable that leads to its rows (Apache Cassandra). Such files have no checksum: their lengths, positions and
 * counts show that they are cut off, but not that a bit in a key is flipped.
 */
interface IndexFile {
  path: string;
  /** The number of partitions according to the statistics. */
  partitions: number | undefined;
  read(path: string): AsyncIterable<Buffer>;
}

const checks: Readonly<Record<string, (file: IndexFile) => Promise<boolean>>> = {
  '-Filter.db': isWholeFilter,
  '-Partitions.db': isWholeTrie,
  '-Index.db': isWholeIndex,
};

/** The suffix of the first of these files that is there and is not whole. */
export async function cutIndexOf(
  pathWith: (suffix: string) => string,
  rest: Omit<IndexFile, 'path'>,
): Promise<string | undefined> {
  for (const [suffix, isWhole] of Object.entries(checks)) {
    try {
      if (!(await isWhole({ path: pathWith(suffix), ...rest }))) return suffix;
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') continue;
      // A read beyond the end throws a RangeError: the file is cut off.
      if (!(thrown instanceof RangeError)) throw thrown;
      return suffix;
    }
  }
  return undefined;
}

/** The size of a file, and at most so many bytes of its beginning and of its end. */
async function endsOf(path: string, mostBytes: number) {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const length = Math.min(size, mostBytes);
    const [head, tail] = [Buffer.alloc(length), Buffer.alloc(length)];
    await file.read(head, 0, length, 0);
    await file.read(tail, 0, length, size - length);
    return { size, head, tail };
  } finally {
    await file.close();
  }
}

/** A Bloom filter: the number of hashes and the number of words, then the words (BloomFilterSerializer). */
async function isWholeFilter({ path }: IndexFile): Promise<boolean> {
  const { size, head } = await endsOf(path, 8);
  return size === 8 + 8 * head.readInt32BE(4);
}

const [footerBytes, mostKeyBytes] = [24, 2 + 65_535];

/** The trie of the format `bti`: the first and the last key, and the positions of the keys and of the root (PartitionIndex). */
async function isWholeTrie({ path, partitions }: IndexFile): Promise<boolean> {
  const { size, tail } = await endsOf(path, footerBytes + 2 * mostKeyBytes);
  const footer = tail.length - footerBytes;
  const [keys, count, root] = [0, 8, 16].map((at) => Number(tail.readBigInt64BE(footer + at)));
  let end = keys! - (size - tail.length);
  for (let key = 0; key < 2; key++) end += 2 + tail.readUInt16BE(end);
  return end === footer && root! < keys! && count === (partitions ?? count);
}

/**
 * The index of the format `big` from version `ma` on. Each partition has an entry: its key, its position, and its own index
 * (RowIndexEntry).
 */
async function isWholeIndex({ path, partitions, read }: IndexFile): Promise<boolean> {
  let held: Buffer = Buffer.alloc(0);
  let [at, before, count] = [0, -1, 0];
  for await (const piece of read(path)) {
    const done = Math.min(at, held.length);
    held = Buffer.concat([held.subarray(done), piece]);
    at -= done;
    for (let entry = entryAt(held, at); entry !== undefined; entry = entryAt(held, at)) {
      if (entry.position <= before) return false;
      [at, before] = [entry.end, entry.position];
      count += 1;
    }
  }
  return at === held.length && count === (partitions ?? count) && count > 0;
}

/**
 * The entry that begins at a position; undefined if the bytes end within its beginning. Its end may be beyond the end of the
 * bytes.
 */
function entryAt(bytes: Buffer, at: number): { position: number; end: number } | undefined {
  if (at + 2 > bytes.length) return undefined;
  const position = readVint(bytes, at + 2 + bytes.readUInt16BE(at));
  const own = position && readVint(bytes, position.end);
  return own && { position: position.value, end: own.end + own.value };
}

/**
 * An unsigned number (VIntCoding): the first byte has as many leading one bits as bytes follow it. Undefined if bytes are
 * missing.
 */
function readVint(bytes: Buffer, at: number): { value: number; end: number } | undefined {
  if (at >= bytes.length) return undefined;
  const first = bytes[at]!;
  const more = Math.clz32(~(first << 24));
  if (at + more >= bytes.length) return undefined;
  let value = more >= 7 ? 0 : first & (0xff >> (more + 1));
  for (let nth = 1; nth <= more; nth++) value = value * 256 + bytes[at + nth]!;
  return { value, end: at + 1 + more };
}
