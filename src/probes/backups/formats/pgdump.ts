import { createInflate, type Inflate } from 'node:zlib';
import type { WallTime } from './wall-time.ts';

/**
 * Reads an archive of `pg_dump -Fc` to its end, as pg_restore would: header, table of contents, then every block of data. The
 * table of contents is at the front, so reading it alone finds neither a truncated file nor a flipped bit. Compressed data is
 * inflated, which checks its checksum; uncompressed data has none, so only its framing is checked. Source: pg_backup_archiver.c
 * and pg_backup_custom.c of PostgreSQL 9.6 to 18.
 */

/** Returns the next bytes of the file, exactly `length` of them; throws `Truncated` at its end. */
export interface ByteReader {
  take(length: number): Promise<Buffer>;
  /** The number of bytes read so far. */
  readonly position: number;
  /** Whether nothing follows. */
  isAtEnd(): Promise<boolean>;
}

export class Truncated extends Error {
  constructor(position: number) {
    super(`the file ends at byte ${position}, in the middle of its data`);
    this.name = 'Truncated';
  }
}

export interface PgDump {
  /** Version of the archive format, such as `1.14`. */
  version: string;
  database: string;
  /** When the dump started, before its snapshot, in the local time of the host that made it. */
  startWall: WallTime;
  compression: 'none' | 'gzip' | 'lz4' | 'zstd';
  entries: number;
  /** Dump ids of the entries with data in this file. */
  withData: readonly number[];
  /** Tables with a definition, as `SCHEMA.TABLE`. */
  tables: readonly string[];
  /** Tables with a definition and without data. */
  withoutData: readonly string[];
  /** Tables with data and without a definition. */
  withoutTable: readonly string[];
}

/** The first bytes of an archive. */
export const pgDumpMagic = Buffer.from('PGDMP');

const blockData = 1;
const blockLargeObjects = 3;
const customFormat = 1;
const offsetNoData = 3;
/** No definition is longer than this. The limit bounds the memory that a damaged length can allocate. */
const longestString = 256 * 1024 * 1024;
const compressions = ['none', 'gzip', 'lz4', 'zstd'] as const;

interface Scalars {
  byte(): Promise<number>;
  int(): Promise<number>;
  string(): Promise<string | undefined>;
  offset(): Promise<void>;
}

function scalarsOf(reader: ByteReader, intSize: number, offsetSize: number): Scalars {
  const byte = async () => (await reader.take(1))[0]!;
  const int = async () => {
    const sign = await byte();
    const bytes = await reader.take(intSize);
    if (sign > 1) throw new Error(`invalid sign of a number at byte ${reader.position}`);
    const value = bytes.readUIntLE(0, intSize);
    return sign === 1 ? -value : value;
  };
  return {
    byte,
    int,
    async string() {
      const length = await int();
      if (length < 0) return undefined;
      if (length > longestString) throw new Error(`a text of ${length} bytes at byte ${reader.position}`);
      return (await reader.take(length)).toString('utf8');
    },
    offset: async () => void (await reader.take(offsetSize)),
  };
}

/** Reads header and table of contents. Throws `Truncated`, or an error that describes the fault. */
export async function readPgDumpContents(reader: ByteReader): Promise<{ dump: PgDump; scalars: Scalars }> {
  const magic = await reader.take(5);
  if (!magic.equals(pgDumpMagic)) throw new Error('not an archive of pg_dump');
  const [major, minor] = [...(await reader.take(2))] as [number, number];
  const since = (wanted: number) => major > 1 || minor >= wanted;
  if (major !== 1 || minor < 12 || minor > 16) throw new Error(`unknown archive version ${major}.${minor}`);
  await reader.take(1);
  const [intSize, offsetSize, format] = [...(await reader.take(3))] as [number, number, number];
  if (format !== customFormat) throw new Error('an archive of pg_dump, but not in custom format');
  if (intSize < 2 || intSize > 6 || offsetSize > 16) throw new Error('invalid sizes in the header');
  const scalars = scalarsOf(reader, intSize, offsetSize);
  const compression = since(15)
    ? compressions[await scalars.byte()]
    : compressions[(await scalars.int()) === 0 ? 0 : 1];
  if (compression === undefined) throw new Error('unknown compression in the header');
  const [second, minute, hour, day, month, year] = await numbers(scalars, 6);
  const isSummer = await scalars.int();
  const database = (await scalars.string()) ?? '';
  await scalars.string(); // Version of the server.
  await scalars.string(); // Version of pg_dump.
  const entries = await scalars.int();
  if (entries < 0 || entries > 10_000_000) throw new Error(`${entries} entries in the table of contents`);
  const read: Entry[] = [];
  for (let i = 0; i < entries; i++) read.push(await readEntry(scalars, since));
  const ms = Date.UTC(year! + 1900, month!, day, hour, minute, second);
  return {
    dump: {
      version: `${major}.${minor}`,
      database,
      startWall: { ms, isSummer: isSummer > 0 },
      compression,
      entries,
      withData: read.filter(({ hasData }) => hasData).map(({ id }) => id),
      ...tablesOf(read),
    },
    scalars,
  };
}

/** The tables of a dump. A partitioned table has no data of its own. */
function tablesOf(entries: readonly Entry[]): Pick<PgDump, 'tables' | 'withoutData' | 'withoutTable'> {
  const named = (wanted: string) => entries.filter(({ what }) => what === wanted);
  const nameOf = ({ namespace, tag }: Entry) => `${namespace}.${tag}`;
  const tables = named('TABLE');
  const data = named('TABLE DATA').map(nameOf);
  const [defined, have] = [new Set(tables.map(nameOf)), new Set(data)];
  return {
    tables: [...defined],
    withoutData: tables
      .filter((table) => !table.isPartitioned)
      .map(nameOf)
      .filter((name) => !have.has(name)),
    withoutTable: data.filter((name) => !defined.has(name)),
  };
}

async function numbers(scalars: Scalars, count: number): Promise<number[]> {
  const read: number[] = [];
  for (let i = 0; i < count; i++) read.push(await scalars.int());
  return read;
}

interface Entry {
  id: number;
  hasData: boolean;
  /** The kind of the entry, such as `TABLE` or `TABLE DATA`. */
  what: string;
  tag: string;
  namespace: string;
  isPartitioned: boolean;
}

async function readEntry(scalars: Scalars, since: (minor: number) => boolean): Promise<Entry> {
  const id = await scalars.int();
  const hasDumper = await scalars.int();
  await scalars.string(); // Table oid.
  await scalars.string(); // Oid.
  const tag = (await scalars.string()) ?? '';
  const what = (await scalars.string()) ?? '';
  await scalars.int(); // Section.
  const definition = (await scalars.string()) ?? '';
  await scalars.string(); // Drop statement.
  await scalars.string(); // Copy statement.
  const namespace = (await scalars.string()) ?? '';
  await scalars.string(); // Tablespace.
  if (since(14)) await scalars.string(); // Table access method.
  if (since(16)) await scalars.int(); // Kind of relation.
  await scalars.string(); // Owner.
  await scalars.string(); // "false" for oids.
  while ((await scalars.string()) !== undefined); // Dependencies.
  const state = await scalars.byte();
  await scalars.offset();
  if (state > offsetNoData) throw new Error(`invalid state of entry ${id}`);
  // A dump that was written to a pipe does not state the positions of its data.
  const hasData = hasDumper !== 0 && state !== offsetNoData;
  return { id, hasData, what, tag, namespace, isPartitioned: /^PARTITION BY /m.test(definition) };
}

/** Inflates the blocks of one entry, and fails at the first invalid byte. */
function createCheck(compression: PgDump['compression']) {
  if (compression !== 'gzip') return { write: async (_: Buffer) => {}, end: async () => {} };
  const inflate: Inflate = createInflate();
  let failure: Error | undefined;
  // The callback of a failed write may never be called, so the end of the stream is awaited, too.
  const closed = new Promise<void>((resolve) => inflate.once('close', resolve));
  inflate.on('error', (error) => {
    failure ??= error;
  });
  inflate.resume();
  const throwFailure = () => {
    if (failure) throw new Error(`compressed data is damaged: ${failure.message}`, { cause: failure });
  };
  return {
    async write(chunk: Buffer) {
      await Promise.race([closed, new Promise<void>((resolve) => inflate.write(chunk, () => resolve()))]);
      throwFailure();
    },
    async end() {
      inflate.end();
      await closed;
      throwFailure();
    },
  };
}

async function readStream(
  reader: ByteReader,
  scalars: Scalars,
  compression: PgDump['compression'],
): Promise<void> {
  const check = createCheck(compression);
  let isEmpty = true;
  for (let length = await scalars.int(); length !== 0; length = await scalars.int()) {
    if (length < 0) throw new Error(`a block of ${length} bytes at byte ${reader.position}`);
    isEmpty = false;
    for (let left = length; left > 0; ) {
      const chunk = await reader.take(Math.min(left, 1024 * 1024));
      left -= chunk.length;
      await check.write(chunk);
    }
  }
  if (!isEmpty) await check.end();
}

/** Reads all data. Throws `Truncated`, or an error that says what is damaged, or that `lz4` and `zstd` cannot be read here. */
export async function verifyPgDump(reader: ByteReader): Promise<PgDump> {
  const { dump, scalars } = await readPgDumpContents(reader);
  const missing = new Set(dump.withData);
  while (!(await reader.isAtEnd())) {
    const type = await scalars.byte();
    const id = await scalars.int();
    if (type === blockData) await readStream(reader, scalars, dump.compression);
    else if (type === blockLargeObjects) {
      while ((await scalars.int()) !== 0) await readStream(reader, scalars, dump.compression);
    } else throw new Error(`unknown block type ${type} at byte ${reader.position}`);
    missing.delete(id);
  }
  if (missing.size > 0) throw new Truncated(reader.position);
  return dump;
}
