import { crc32 } from 'node:zlib';
import { UnknownFormat } from './wal-segment.ts';

/**
 * The chunks of a compressed SSTable (Apache Cassandra, CompressionMetadata and CompressedSequentialWriter). `CompressionInfo.db`
 * says where each chunk of the data file begins and how long its content is. The file has no checksum, and without it no row can
 * be read. It is right if each chunk that it describes ends with the CRC-32 of that chunk.
 */
interface Chunks {
  compressor: string;
  /** The length of a chunk's content; the content of the last chunk may be shorter. */
  chunkBytes: number;
  /** A chunk that is at least as long as this is not compressed. */
  compressedBelow: number;
  /** The length of all contents. */
  contentBytes: number;
  /** Where each chunk begins in the data file. */
  starts: readonly number[];
}

const checksumBytes = 4;

/** Reads `CompressionInfo.db`; undefined if it is damaged. Throws `UnknownFormat` for a compressor of another author. */
export function readChunks(bytes: Buffer): Chunks | undefined {
  let at = 0;
  const text = () => {
    const length = bytes.readUInt16BE(at);
    at += 2 + length;
    return bytes.toString('latin1', at - length, at);
  };
  const int = () => {
    at += 4;
    return bytes.readInt32BE(at - 4);
  };
  const long = () => {
    at += 8;
    return Number(bytes.readBigInt64BE(at - 8));
  };
  try {
    const compressor = text();
    for (let options = int(); options > 0; options--) [text(), text()];
    if (!compressors.includes(compressor))
      throw new UnknownFormat(`its compressor ${compressor} is not known`);
    const [chunkBytes, compressedBelow, contentBytes, count] = [int(), int(), long(), int()];
    const rest = bytes.length - at;
    if (rest !== 8 * count || chunkBytes <= 0 || (chunkBytes & (chunkBytes - 1)) !== 0) return undefined;
    if (count !== Math.ceil(contentBytes / chunkBytes)) return undefined;
    const starts = Array.from({ length: count }, long);
    const isOrdered = starts.every(
      (start, nth) => start >= (nth === 0 ? 0 : starts[nth - 1]! + checksumBytes),
    );
    return isOrdered && (starts[0] ?? 0) === 0
      ? { compressor, chunkBytes, compressedBelow, contentBytes, starts }
      : undefined;
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

/** Each compressed content of this compressor begins with its length. */
const lz4 = 'LZ4Compressor';
const compressors = [lz4, 'SnappyCompressor', 'DeflateCompressor', 'ZstdCompressor', 'NoopCompressor'];
const lengthBytes = 4;

/** Compares the pieces of a data file of `size` bytes with its chunks, in their order. */
export function createChunkCheck(
  { compressor, chunkBytes, compressedBelow, contentBytes, starts }: Chunks,
  size: number,
) {
  let [nth, position, crc, isWrong] = [0, 0, 0, false];
  // The first bytes of the chunk, and its checksum.
  let head: Buffer = Buffer.alloc(0);
  let sum: Buffer = Buffer.alloc(0);
  const closeChunk = (end: number) => {
    const stored = end - starts[nth]! - checksumBytes;
    const isPlain = stored >= compressedBelow;
    const length = isPlain ? stored : head.length < lengthBytes ? -1 : head.readInt32LE(0);
    const isKnown = isPlain || compressor === lz4;
    if (isKnown && length !== Math.min(chunkBytes, contentBytes - nth * chunkBytes)) isWrong = true;
    if (sum.length < checksumBytes || crc !== sum.readUInt32BE(0)) isWrong = true;
    [nth, crc, head, sum] = [nth + 1, 0, Buffer.alloc(0), Buffer.alloc(0)];
  };
  return {
    take(piece: Buffer) {
      for (let rest = piece; rest.length > 0 && nth < starts.length && !isWrong; ) {
        const end = starts[nth + 1] ?? size;
        const ofContent = end - checksumBytes - position;
        const part = rest.subarray(0, Math.max(0, ofContent > 0 ? ofContent : end - position));
        if (part.length === 0) isWrong = true;
        if (ofContent > 0) {
          if (head.length < lengthBytes) head = Buffer.concat([head, part.subarray(0, lengthBytes)]);
          crc = crc32(part, crc);
        } else sum = Buffer.concat([sum, part]);
        rest = rest.subarray(part.length);
        position += part.length;
        if (position === end) closeChunk(end);
      }
    },
    /** Whether the file consists of these chunks. Must be called after the last piece. */
    isRight: () => !isWrong && nth === starts.length,
  };
}
