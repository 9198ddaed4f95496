import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { createByteReader, type Pace, readThrottled } from './byte-stream.ts';
import { crc32c, headOf } from './manifest.ts';
import { type ByteReader, Truncated } from './pgdump.ts';
import { UnknownFormat } from './wal-segment.ts';

/**
 * Verifies the files of InnoDB in a physical backup (MariaDB, storage/innobase/include/fil0fil.h and fsp0types.h). Every page has
 * a CRC-32C, of the whole page (full_crc32) or of its header and its body (crc32). Pages of a backup that is not prepared yet are
 * valid, too.
 */

const flagsAt = 54;
const spacePagesAt = 46;
const pageTypeAt = 24;
const isFullCrc32 = 0x10;
const usualPageBytes = 16_384;
/** Types of pages that are compressed or encrypted, in MySQL and MariaDB; they do not have the usual checksum. */
const transformed: ReadonlySet<number> = new Set([14, 15, 16, 17, 34_354, 37_400, 37_401, 37_402]);

const crcOf = (bytes: Buffer) => (crc32c(bytes, 0xffffffff) ^ 0xffffffff) >>> 0;

function hasChecksum(page: Buffer): boolean {
  const end = page.length;
  if (crcOf(page.subarray(0, end - 4)) === page.readUInt32BE(end - 4)) return true;
  const split = (crcOf(page.subarray(4, 26)) ^ crcOf(page.subarray(38, end - 8))) >>> 0;
  return split === page.readUInt32BE(0);
}

interface Tablespace {
  pageBytes: number;
  /** Whether pages have another size or length than the pages of the tablespace. */
  isCompressed: boolean;
}

/** The properties of a tablespace, from the flags in its first page. */
export function spaceOf(head: Buffer): Tablespace {
  const flags = head.readUInt32BE(flagsAt);
  if (flags & isFullCrc32) return { pageBytes: 512 << (flags & 0xf), isCompressed: (flags & 0xe0) !== 0 };
  const size = (flags >> 6) & 0xf;
  return { pageBytes: size === 0 ? usualPageBytes : 512 << size, isCompressed: (flags & 0x1e) !== 0 };
}

const zeros = Buffer.alloc(65_536);

function checkPage(page: Buffer, number: number): void {
  // The page is not used yet.
  if (page.equals(zeros.subarray(0, page.length)) || hasChecksum(page)) return;
  if (transformed.has(page.readUInt16BE(pageTypeAt)))
    throw new UnknownFormat('a page is compressed or encrypted');
  throw new Error(`page ${number} does not match its checksum`);
}

/** Reads a tablespace to its end; returns the number of its pages. */
async function checkSpace(path: string, bytes: ByteReader, pageBytes: number | undefined): Promise<number> {
  const head = await headOf(path, 64);
  if (head.length < 64) throw new Truncated(head.length);
  const space = pageBytes === undefined ? spaceOf(head) : { pageBytes, isCompressed: false };
  if (space.isCompressed) throw new UnknownFormat('its pages are compressed');
  if (space.pageBytes > zeros.length || space.pageBytes < 4096) throw new Error('its first page is damaged');
  let pages = 0;
  for (; !(await bytes.isAtEnd()); pages++) checkPage(await bytes.take(space.pageBytes), pages);
  if (pageBytes === undefined && pages < head.readUInt32BE(spacePagesAt)) throw new Truncated(bytes.position);
  return pages;
}

const [moreFollows, lastBlock] = [0x78747261, 0x58545241];

/** Verifies the changed pages of an incremental backup: each block is a page with page numbers, followed by these pages. */
async function checkDelta(bytes: ByteReader, pageBytes: number): Promise<number> {
  let pages = 0;
  for (;;) {
    const index = Buffer.from(await bytes.take(pageBytes));
    const magic = index.readUInt32BE(0);
    if (magic !== moreFollows && magic !== lastBlock) throw new Error('the list of its pages is damaged');
    for (let at = 4; at < pageBytes && index.readUInt32BE(at) !== 0xffffffff; at += 4, pages++)
      checkPage(await bytes.take(pageBytes), index.readUInt32BE(at));
    if (magic === lastBlock) break;
  }
  if (!(await bytes.isAtEnd())) throw new Error('it is longer than its list of pages');
  return pages;
}

const isSpace = (name: string) => /(?:\.ibd|^ibdata\d+|^undo[_\d]\w*)$/.test(name);
const isDelta = (name: string) => name.endsWith('.delta');

interface InnodbFiles {
  files: number;
  pages: number;
  /** Why something cannot be verified; undefined if everything can. */
  unverified?: string;
}

/**
 * Verifies the InnoDB files of a physical backup. Throws an error that states the fault and the file. Files of other engines have
 * no checksums that could be verified.
 */
export async function verifyInnodbFiles(directory: string, pace: Pace): Promise<InnodbFiles> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => ({ path: join(parentPath, name), name }));
  await checkRedoLog(directory);
  const found: InnodbFiles = { files: 0, pages: 0 };
  // Files of the system tablespace after the first file may begin with any of its pages.
  const systemPageBytes = spaceOf(await firstPageOf(join(directory, 'ibdata1'))).pageBytes;
  for (const { path, name } of files) {
    if (!isSpace(name) && !isDelta(name)) continue;
    const bytes = createByteReader(readThrottled(path, pace));
    try {
      found.pages += isDelta(name)
        ? await checkDelta(bytes, await pageBytesOfDelta(path))
        : await checkSpace(path, bytes, name.startsWith('ibdata') ? systemPageBytes : undefined);
      found.files += 1;
    } catch (thrown) {
      if (thrown instanceof UnknownFormat) found.unverified ??= `${name}: ${thrown.message}`;
      else if (thrown instanceof Truncated) throw new Error(`${relative(directory, path)} is cut off`);
      else if ((thrown as NodeJS.ErrnoException).code) throw thrown;
      else throw new Error(`${relative(directory, path)}: ${(thrown as Error).message}`, { cause: thrown });
    }
  }
  if (files.some(({ name }) => /\.(?:qp|lz4|zst|xbcrypt)$/.test(name)))
    found.unverified ??= 'its files are compressed or encrypted';
  return found;
}

/**
 * The first page of a tablespace; if it is not there, as in an incremental backup, a page with the flags of the usual page size.
 */
export const firstPageOf = async (path: string): Promise<Buffer> => {
  const head = await headOf(path, 64).catch(() => Buffer.alloc(0));
  return head.length === 64 ? head : Buffer.alloc(64);
};

async function pageBytesOfDelta(path: string): Promise<number> {
  const meta = await readFile(path.replace(/\.delta$/, '.meta'), 'utf8');
  const pageBytes = Number(/^page_size = (\d+)/m.exec(meta)?.[1]);
  if (/^zip_size = [1-9]/m.test(meta)) throw new UnknownFormat('its pages are compressed');
  if (!(pageBytes >= 4096 && pageBytes <= zeros.length))
    throw new Error('its description (.meta) is damaged');
  return pageBytes;
}

const [redoMagic, redoHeaderBytes] = ['Phys', 12_288];

/** Verifies the copied redo log, without which a backup cannot be prepared. MariaDB's format from 10.8 on states its length. */
async function checkRedoLog(directory: string): Promise<void> {
  const checkpoints = await readFile(join(directory, 'xtrabackup_checkpoints'), 'utf8').catch(() =>
    readFile(join(directory, 'mariadb_backup_checkpoints'), 'utf8'),
  );
  if (/^backup_type = (?:full-prepared|log-applied)/m.test(checkpoints)) return;
  const names = await readdir(directory);
  const redo = ['ib_logfile0', 'xtrabackup_logfile'].find((name) => names.includes(name));
  if (redo === undefined) throw new Error('the redo log (ib_logfile0 or xtrabackup_logfile) is missing');
  const head = await headOf(join(directory, redo), 16);
  if (head.subarray(0, 4).toString('latin1') !== redoMagic) return;
  const end = /^last_lsn = (\d+)/m.exec(checkpoints)?.[1];
  const length = end === undefined ? 0n : BigInt(end) - head.readBigUInt64BE(8);
  const { size } = await stat(join(directory, redo));
  if (BigInt(size) < length + BigInt(redoHeaderBytes)) throw new Error(`${redo} is cut off`);
}
