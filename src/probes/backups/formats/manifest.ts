import { createHash, type Hash } from 'node:crypto';
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A range of write-ahead log that a base backup needs. Positions are written as in PostgreSQL, `0/3000028`. */
export interface WalRange {
  timeline: number;
  start: string;
  end: string;
}

/** The parts of the manifest that are read. */
interface WrittenManifest {
  Files: {
    Path?: string;
    'Encoded-Path'?: string;
    Size: number;
    'Checksum-Algorithm'?: string;
    Checksum?: string;
    'Last-Modified'?: string;
  }[];
  'WAL-Ranges'?: { Timeline: number; 'Start-LSN': string; 'End-LSN': string }[];
  'Manifest-Checksum': string;
}

export interface ManifestFile {
  path: string;
  sizeBytes: number;
  algorithm?: string;
  checksum?: string;
}

export interface BackupManifest {
  files: readonly ManifestFile[];
  walRanges: readonly WalRange[];
  /** When the server began the backup, ms since the epoch: the time of the label, which it writes at that moment. */
  startMs?: number;
}

/**
 * Reads `backup_manifest` of a base backup and compares it with its own checksum. Throws if the manifest is cut off, damaged or
 * has an unknown form. Source: PostgreSQL, "Backup Manifest Format".
 */
function parseBackupManifest(text: Buffer): BackupManifest {
  const parsed = JSON.parse(text.toString('utf8')) as WrittenManifest;
  if (!Array.isArray(parsed?.Files)) throw new Error('backup_manifest has no list of files');
  const at = text.lastIndexOf('"Manifest-Checksum"');
  const digest = createHash('sha256').update(text.subarray(0, at)).digest('hex');
  if (digest !== parsed['Manifest-Checksum'])
    throw new Error('backup_manifest does not match its own checksum');
  const label = parsed.Files.find(({ Path }) => Path === 'backup_label')?.['Last-Modified'];
  const startMs = label === undefined ? Number.NaN : Date.parse(label);
  return {
    ...(!Number.isNaN(startMs) && { startMs }),
    files: parsed.Files.map((file) => ({
      path: file.Path ?? Buffer.from(file['Encoded-Path'] ?? '', 'hex').toString('utf8'),
      sizeBytes: file.Size,
      algorithm: file['Checksum-Algorithm'],
      checksum: file.Checksum,
    })),
    walRanges: (parsed['WAL-Ranges'] ?? []).map((range) => ({
      timeline: range.Timeline,
      start: range['Start-LSN'],
      end: range['End-LSN'],
    })),
  };
}

export async function readBackupManifest(directory: string): Promise<BackupManifest> {
  return parseBackupManifest(await readFile(join(directory, 'backup_manifest')));
}

/**
 * The first difference between a base backup in plain format and its manifest; undefined if there is none. Compares sizes and,
 * with `withChecksums`, the checksums, too.
 */
export async function manifestFault(
  directory: string,
  { files }: BackupManifest,
  withChecksums: boolean,
  read: (path: string) => AsyncIterable<Buffer>,
): Promise<string | undefined> {
  for (const file of files) {
    const path = join(directory, file.path);
    const stats = await stat(path).catch(() => undefined);
    if (!stats) return `${file.path} is missing`;
    if (stats.size !== file.sizeBytes)
      return `${file.path} has ${stats.size} bytes, expected ${file.sizeBytes}`;
    if (!withChecksums || file.checksum === undefined) continue;
    const digest = await checksumOf(read(path), file.algorithm ?? '');
    if (digest === undefined) return undefined;
    if (digest !== file.checksum.toLowerCase()) return `${file.path} does not match its checksum`;
  }
  return undefined;
}

const hashNames: Readonly<Record<string, string>> = {
  SHA224: 'sha224',
  SHA256: 'sha256',
  SHA384: 'sha384',
  SHA512: 'sha512',
};

export async function checksumOf(
  chunks: AsyncIterable<Buffer>,
  algorithm: string,
): Promise<string | undefined> {
  if (algorithm.toUpperCase() === 'CRC32C') {
    let crc = 0xffffffff;
    for await (const chunk of chunks) crc = crc32c(chunk, crc);
    // PostgreSQL writes the bytes of the number as they are in memory, least significant first.
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE((crc ^ 0xffffffff) >>> 0);
    return bytes.toString('hex');
  }
  const name = hashNames[algorithm.toUpperCase()];
  if (name === undefined) return undefined;
  const hash: Hash = createHash(name);
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest('hex');
}

const crc32cTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0x82f63b78 ^ (value >>> 1) : value >>> 1;
  return value;
});

/** CRC-32C (Castagnoli), which Node lacks. Argument and result are the inverted remainder. */
export function crc32c(bytes: Uint8Array, crc: number): number {
  let value = crc;
  for (let i = 0; i < bytes.length; i++) value = crc32cTable[(value ^ bytes[i]!) & 0xff]! ^ (value >>> 8);
  return value;
}

/**
 * The checksum beside a backup, from `FILE.sha256` and similar files in the form of sha256sum; undefined if there is none. Throws
 * if such a file contains no checksum.
 */
export async function sidecarChecksum(
  path: string,
): Promise<{ algorithm: string; digest: string } | undefined> {
  for (const [suffix, length] of [
    ['sha512', 128],
    ['sha256', 64],
    ['sha1', 40],
    ['md5', 32],
  ] as const) {
    const text = await readFile(`${path}.${suffix}`, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const digest = new RegExp(`\\b[0-9a-fA-F]{${length}}\\b`).exec(text)?.[0];
    if (digest === undefined) throw new Error(`${path}.${suffix} holds no ${suffix} checksum`);
    return { algorithm: suffix, digest: digest.toLowerCase() };
  }
  return undefined;
}

export async function fileDigest(chunks: AsyncIterable<Buffer>, algorithm: string): Promise<string> {
  const hash = createHash(algorithm);
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest('hex');
}

/** The first bytes of a file; fewer if the file is shorter. */
export async function headOf(path: string, length: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(length);
    const { bytesRead } = await file.read(head, 0, length, 0);
    return head.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
