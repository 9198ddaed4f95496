import { spawn } from 'node:child_process';
import type { Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline, type Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { type ByteReader, Truncated } from './pgdump.ts';

/** Compression of a backup file, according to its first bytes. */
export type Compression = 'gzip' | 'zstd' | 'xz' | 'bzip2' | 'lz4';

const magics: readonly (readonly [Compression, Buffer])[] = [
  ['gzip', Buffer.from([0x1f, 0x8b])],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ['xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00])],
  ['bzip2', Buffer.from('BZh')],
  ['lz4', Buffer.from([0x04, 0x22, 0x4d, 0x18])],
];

export function compressionOf(head: Buffer): Compression | undefined {
  return magics.find(([, magic]) => head.subarray(0, magic.length).equals(magic))?.[0];
}

const encryptedBeginnings: readonly (readonly [string, RegExp])[] = [
  // pgBackRest encrypts like OpenSSL.
  ['OpenSSL', /^Salted__/],
  ['age', /^age-encryption\.org\/|^-----BEGIN AGE ENCRYPTED FILE/],
  // A packet with a session key (RFC 9580, section 5), in the formats of packets, or the same as text.
  ['OpenPGP', /^-----BEGIN PGP MESSAGE|^(?:[\x84\xc1].|\x85..)[\x03\x06]|^[\x8c\xc3].[\x04-\x06]/s],
];

/** What encrypted a file, according to its first 32 bytes; undefined if they do not show it. */
export function encryptionOf(head: Buffer): string | undefined {
  const text = head.toString('latin1', 0, 32);
  return encryptedBeginnings.find(([, beginning]) => beginning.test(text))?.[0];
}

/** Programs that decompress what Node cannot. */
const programs: Readonly<Record<Compression, string>> = {
  gzip: 'gzip',
  zstd: 'zstd',
  xz: 'xz',
  bzip2: 'bzip2',
  lz4: 'lz4',
};

/** The error if no program for this compression is on the PATH. */
export class NoDecompressor extends Error {
  constructor(compression: Compression) {
    super(`${compression} cannot be read here: install ${programs[compression]}`);
    this.name = 'NoDecompressor';
  }
}

/** How fast a file is read, and a callback for each chunk. */
export interface Pace {
  bytesPerSecond: number;
  onBytes?: (bytes: number) => void;
}

/** The file's bytes in chunks, at most `bytesPerSecond` of them in each second. */
export async function* readThrottled(
  path: string,
  { bytesPerSecond, onBytes }: Pace,
): AsyncGenerator<Buffer> {
  const startedMs = performance.now();
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    bytes += (chunk as Buffer).length;
    const aheadMs = (bytes / bytesPerSecond) * 1000 - (performance.now() - startedMs);
    if (aheadMs > 5) await new Promise((resolve) => setTimeout(resolve, aheadMs));
    onBytes?.((chunk as Buffer).length);
    yield chunk as Buffer;
  }
}

/** The same chunks, after the hashes have been updated with them. */
export async function* hashed(
  chunks: AsyncIterable<Buffer>,
  ...hashes: readonly Hash[]
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    for (const hash of hashes) hash.update(chunk);
    yield chunk;
  }
}

type ZstdModule = typeof zlib & { createZstdDecompress?(): NodeJS.ReadWriteStream & Readable };

/**
 * The plain bytes of a compressed stream. Throws on truncated and damaged data, and `NoDecompressor`. Node 20 has no zstd, and no
 * Node has xz, bzip2 or lz4: programs decompress these.
 */
export async function* decompress(
  source: AsyncIterable<Buffer>,
  compression: Compression,
): AsyncGenerator<Buffer> {
  const { createZstdDecompress } = zlib as ZstdModule;
  if (compression === 'gzip') yield* through(source, zlib.createGunzip());
  else if (compression === 'zstd' && createZstdDecompress) {
    yield* through(source, createZstdDecompress() as unknown as zlib.Gunzip);
  } else yield* throughProgram(source, compression);
}

async function* through(source: AsyncIterable<Buffer>, plain: zlib.Gunzip): AsyncGenerator<Buffer> {
  pipeline(source, plain, () => {});
  for await (const chunk of plain) yield chunk as Buffer;
}

async function* throughProgram(
  source: AsyncIterable<Buffer>,
  compression: Compression,
): AsyncGenerator<Buffer> {
  const program = programs[compression];
  const child = spawn(program, ['-dc'], { stdio: ['pipe', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.on('data', (chunk) => {
    complaint = (complaint + chunk).slice(0, 300);
  });
  const ended = new Promise<{ status: number | null; thrown?: NodeJS.ErrnoException }>((resolve) => {
    child.once('error', (thrown) => resolve({ status: null, thrown }));
    child.once('close', (status) => resolve({ status }));
  });
  pipeline(source, child.stdin, () => {});
  try {
    for await (const chunk of child.stdout) yield chunk as Buffer;
    const { status, thrown } = await ended;
    if (thrown?.code === 'ENOENT') throw new NoDecompressor(compression);
    if (status !== 0) throw new Error(`${program}: ${complaint.trim() || `exit status ${status}`}`);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Reads a stream of chunks in the lengths that a format has. */
export function createByteReader(chunks: AsyncIterable<Buffer>): ByteReader {
  const iterator = chunks[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  let position = 0;

  const more = async (): Promise<boolean> => {
    const next = await iterator.next();
    if (next.done) return false;
    held = held.length === 0 ? next.value : Buffer.concat([held, next.value]);
    return true;
  };

  return {
    get position() {
      return position;
    },
    async take(length) {
      while (held.length < length) {
        if (!(await more())) throw new Truncated(position + held.length);
      }
      const taken = held.subarray(0, length);
      held = held.subarray(length);
      position += length;
      return taken;
    },
    async isAtEnd() {
      while (held.length === 0) if (!(await more())) return true;
      return false;
    },
  };
}
