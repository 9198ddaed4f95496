import { join } from 'node:path';
import { compressionOf, createByteReader, decompress, type Pace, readThrottled } from './byte-stream.ts';
import { type BackupManifest, checksumOf, headOf, type ManifestFile } from './manifest.ts';
import type { ByteReader } from './pgdump.ts';

/** Verifies a base backup of PostgreSQL in tar format: `base.tar`, and `OID.tar` for each tablespace, compressed or not. */

const blockBytes = 512;
const pieceBytes = 65_536;
/** The types of entries: files, names that are too long for a header (GNU), and PAX headers. */
const [fileTypes, longName, paxHeader] = [['0', '\0'], 'L', 'x'];

interface TarEntry {
  name: string;
  type: string;
  sizeBytes: number;
}

function entryOf(header: Buffer): TarEntry {
  const text = (from: number, length: number) =>
    header.toString('utf8', from, from + length).replace(/\0.*$/s, '');
  const prefix = text(345, 155);
  // Sizes of 8 GiB and more are a number in base 256.
  const isBinary = (header[124]! & 0x80) !== 0;
  const sizeBytes = isBinary
    ? Number(header.readBigUInt64BE(128))
    : Number.parseInt(text(124, 12).trim() || '0', 8);
  if (!Number.isSafeInteger(sizeBytes)) throw new Error('an entry of the archive is damaged');
  return {
    name: prefix ? `${prefix}/${text(0, 100)}` : text(0, 100),
    type: String.fromCharCode(header[156]!),
    sizeBytes,
  };
}

async function* contentOf(bytes: ByteReader, length: number): AsyncGenerator<Buffer> {
  for (let rest = length; rest > 0; ) {
    const piece = await bytes.take(Math.min(rest, pieceBytes));
    rest -= piece.length;
    yield piece;
  }
}

async function textOf(bytes: ByteReader, length: number): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of contentOf(bytes, length)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Calls `take` with each file of a tar archive, which must read all of its content. */
async function readTar(
  bytes: ByteReader,
  take: (name: string, sizeBytes: number, content: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  let long: string | undefined;
  while (!(await bytes.isAtEnd())) {
    const header = Buffer.from(await bytes.take(blockBytes));
    if (header.every((byte) => byte === 0)) break;
    const { name, type, sizeBytes } = entryOf(header);
    if (type === longName) long = (await textOf(bytes, sizeBytes)).replace(/\0.*$/s, '');
    else if (type === paxHeader) long = /^\d+ path=(.*)$/m.exec(await textOf(bytes, sizeBytes))?.[1];
    else {
      const content = contentOf(bytes, sizeBytes);
      if (fileTypes.includes(type)) await take((long ?? name).replace(/^\.\//, ''), sizeBytes, content);
      else for await (const _ of content);
      long = undefined;
    }
    await bytes.take((blockBytes - (sizeBytes % blockBytes)) % blockBytes);
  }
  while (!(await bytes.isAtEnd())) await bytes.take(1);
}

/**
 * Compares the files in the archives with the manifest; returns `backup_label` and `pg_control`. Throws at an archive that is cut
 * off or damaged.
 */
export async function verifyBaseArchives(
  path: string,
  names: readonly string[],
  { files }: BackupManifest,
  pace: Pace,
): Promise<{ fault?: string; label: Buffer; control: Buffer }> {
  const kept = { backup_label: Buffer.alloc(0), 'global/pg_control': Buffer.alloc(0) };
  const wanted = new Map(files.map((file) => [file.path, file]));
  let fault: string | undefined;
  for (const name of names) {
    const [, which] = /^(base|\d+)\.tar(?:\.(?:gz|zst|lz4))?$/.exec(name) ?? [];
    if (which === undefined) continue;
    const file = join(path, name);
    const compression = compressionOf(await headOf(file, 8));
    const source = readThrottled(file, pace);
    const bytes = createByteReader(compression ? decompress(source, compression) : source);
    await readTar(bytes, async (entry, sizeBytes, content) => {
      const inManifest = which === 'base' ? entry : `pg_tblspc/${which}/${entry}`;
      const isKept = inManifest === 'backup_label' || inManifest === 'global/pg_control';
      const chunks: Buffer[] = [];
      const read = isKept ? remembered(content, chunks) : content;
      fault ??= await faultOf(wanted.get(inManifest), sizeBytes, read);
      if (isKept) kept[inManifest] = Buffer.concat(chunks);
      wanted.delete(inManifest);
    });
  }
  const [missing] = wanted.keys();
  return {
    fault: fault ?? (missing === undefined ? undefined : `${missing} is missing`),
    label: kept.backup_label,
    control: kept['global/pg_control'],
  };
}

async function* remembered(content: AsyncIterable<Buffer>, chunks: Buffer[]): AsyncGenerator<Buffer> {
  for await (const chunk of content) {
    chunks.push(Buffer.from(chunk));
    yield chunk;
  }
}

async function faultOf(
  file: ManifestFile | undefined,
  sizeBytes: number,
  content: AsyncIterable<Buffer>,
): Promise<string | undefined> {
  const digest = await checksumOf(content, file?.algorithm ?? 'CRC32C');
  // The rest of the content, if the algorithm is not known.
  for await (const _ of content);
  if (file === undefined) return undefined;
  if (sizeBytes !== file.sizeBytes) return `${file.path} has ${sizeBytes} bytes, expected ${file.sizeBytes}`;
  const isEqual =
    file.checksum === undefined || digest === undefined || digest === file.checksum.toLowerCase();
  return isEqual ? undefined : `${file.path} does not match its checksum`;
}
