import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { BackupContent } from './evidence.ts';
import { firstPageOf, spaceOf } from './formats/innodb.ts';
import { readDictionary } from './formats/innodb-dictionary.ts';
import { readFileOperations } from './formats/innodb-redo.ts';
import { headOf } from './formats/manifest.ts';
import type { BinlogPlace } from './formats/segments.ts';
import { wallTime } from './formats/wall-time.ts';

const innodbEngine = 12;

/** The text of the first of these files that a backup contains. */
async function textOf(path: string, names: readonly string[], wanted: RegExp): Promise<string> {
  const name = names.find((each) => wanted.test(each));
  return name === undefined ? '' : readFile(join(path, name), 'utf8');
}

/**
 * What mariadb-backup and xtrabackup write into a backup: when it began, in local time, and the position in the binary log
 * that follows it.
 */
export async function physicalContent(path: string, names: readonly string[]): Promise<BackupContent> {
  const info = await textOf(path, names, /^(?:xtrabackup|mariadb_backup)_info$/);
  const startWall = wallTime(/^start_time\s*=\s*(\S+ \S+)\s*$/m.exec(info)?.[1] ?? '');
  const place = await textOf(path, names, /^(?:xtrabackup|mariadb_backup)_binlog_info$/);
  const [file, position, gtids] = place.trim().split(/\s+/);
  const serverId = await serverOf(path, names);
  return {
    ...(serverId !== undefined && { serverId }),
    ...(startWall ? { startWall } : { unknown: 'its information file has no start_time' }),
    ...(file &&
      /^\d+$/.test(position ?? '') && { binlog: { file, position: Number(position), ...gtidsIn(gtids) } }),
  };
}

/**
 * The beginning of Aria's control file, and the UUID in the file, which the server makes together with its data directory
 * (ma_control_file.c).
 */
const [ariaMagic, uuidAt, uuidBytes] = [Buffer.from([0xfe, 0xfe, 0x0c]), 4, 16];

/** The identifier of the server: the identifier of MySQL, which xtrabackup notes, or the UUID of MariaDB's engine Aria. */
async function serverOf(path: string, names: readonly string[]): Promise<string | undefined> {
  const settings = await textOf(path, names, /^backup-my\.cnf$/);
  const uuid = /^server_uuid\s*=\s*(\S+)\s*$/m.exec(settings)?.[1];
  if (uuid !== undefined || !names.includes('aria_log_control')) return uuid;
  const head = await headOf(join(path, 'aria_log_control'), uuidAt + uuidBytes);
  const isControl = head.length === uuidAt + uuidBytes && head.subarray(0, 3).equals(ariaMagic);
  return isControl ? head.subarray(uuidAt).toString('hex') : undefined;
}

/** MariaDB's positions in a text, in the order of their domains. */
export function gtidsIn(text = ''): Pick<BinlogPlace, 'gtids'> {
  const found = text.match(/\d+-\d+-\d+/g) ?? [];
  const domainOf = (gtid: string) => Number(gtid.split('-')[0]);
  found.sort((one, other) => domainOf(one) - domainOf(other));
  return found.length === 0 ? {} : { gtids: found.join() };
}

/** The suffixes of the files of a table, by the number of its engine in MariaDB's description of the table. */
const filesOfEngine: ReadonlyMap<number, readonly string[]> = new Map([
  [9, ['MYD', 'MYI']], // MyISAM
  [innodbEngine, ['ibd']],
  [42, ['MAD', 'MAI']], // Aria
]);

interface Files {
  has(path: string): boolean;
  /** The path of each file without its suffix. */
  paths: readonly string[];
}

/**
 * Whether a table has its data file. In an incremental backup this is the file with the changed pages, or `.new` for a table that
 * was created during the backup.
 */
const hasSpace = ({ has }: Files, table: string) =>
  ['ibd', 'ibd.delta', 'new'].some((suffix) => has(`${table}.${suffix}`));

/** The suffix of a partition, which has its own files. */
const partition = /#[Pp]#.*$/;

interface PhysicalTables {
  /** The tables as `DATABASE.TABLE`. */
  tables: readonly string[];
  /** A file that is missing, relative to the backup. */
  missing?: string;
  /**
   * Whether a table would not be missed if all its files were gone, because there is no dictionary that this code can read, as
   * with MySQL 8.
   */
  isUnlisted: boolean;
}

/**
 * The tables of a physical backup. Each table has its data; a table of MariaDB also has a description, and a table of InnoDB is
 * in the dictionary.
 */
export async function readTables(directory: string): Promise<PhysicalTables> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(directory, join(parentPath, name)));
  const there = new Set(paths);
  const files: Files = { has: (path) => there.has(path), paths };
  const ibdata = join(directory, 'ibdata1');
  const { pageBytes } = spaceOf(await firstPageOf(ibdata));
  const found = await readDictionary(ibdata, pageBytes);
  const dictionary = found ?? [];
  const tables = [...new Set(paths.flatMap((path) => tableOf(path) ?? []))];
  const result = (missing: string | undefined): PhysicalTables => ({
    ...{ tables, missing },
    // An incremental backup has the descriptions of all tables, and only the changes of the dictionary.
    isUnlisted: found === undefined && !paths.some((path) => path.endsWith('.frm')),
  });
  const inSystem = new Set(dictionary.filter(({ space }) => space === 0).map(({ name }) => name));
  const missing = await missingOfDescriptions(directory, files, inSystem);
  if (missing !== undefined) return result(missing);
  const known = new Set(dictionary.filter(({ space }) => space !== 0).map(({ name }) => name));
  // Changes that the server had not written to the dictionary yet are in the log.
  for (const { isThere, name } of await readFileOperations(join(directory, 'ib_logfile0'))) {
    if (isThere) known.add(name);
    else known.delete(name);
  }
  return result(missingOfDictionary([...known], files, await isPartial(directory)));
}

/** Decodes the name of a file, in which other characters than letters, digits and `_` are `@` and four hexadecimal digits. */
const decoded = (name: string) =>
  name.replace(/@([0-9a-f]{4})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));

function tableOf(path: string): string | undefined {
  const [, database, name] = /^([^/]+)\/([^/]+?)\.(?:frm|ibd|ibd\.delta|new|MYD|MAD)$/.exec(path) ?? [];
  return name === undefined ? undefined : `${decoded(database!)}.${decoded(name.replace(partition, ''))}`;
}

async function missingOfDescriptions(
  directory: string,
  files: Files,
  inSystem: ReadonlySet<string>,
): Promise<string | undefined> {
  const partitioned = new Set(
    files.paths.filter((path) => partition.test(path)).map((path) => path.replace(partition, '')),
  );
  for (const path of files.paths) {
    const table = path.replace(/\.frm$/, '');
    if (table === path || partitioned.has(table) || inSystem.has(table)) continue;
    const head = await headOf(join(directory, path), 4);
    const engine = head[0] === 0xfe && head[1] === 0x01 ? head[3]! : -1;
    if (engine === innodbEngine && hasSpace(files, table)) continue;
    const missing = filesOfEngine.get(engine)?.find((suffix) => !files.has(`${table}.${suffix}`));
    if (missing !== undefined) return `${table}.${missing}`;
  }
  return undefined;
}

/**
 * The first file that the dictionary lists and that is missing. The backup has a note for each table that was dropped or renamed
 * while it was taken.
 */
function missingOfDictionary(
  tables: readonly string[],
  files: Files,
  isPartial: boolean,
): string | undefined {
  const folders = new Set(files.paths.map((path) => path.split('/')[0]));
  for (const name of tables) {
    const [database = '', table = ''] = name.split('/');
    if (table === '' || table.startsWith('#sql') || (isPartial && !folders.has(database))) continue;
    if (['del', 'ren'].some((note) => files.has(`${name}.${note}`))) continue;
    if (!hasSpace(files, name)) return `${name}.ibd`;
    const description = `${name.replace(partition, '')}.frm`;
    if (!files.has(description)) return description;
  }
  return undefined;
}

/** Whether the backup was taken with --databases or --tables. */
const isPartial = async (directory: string) =>
  /^partial\s*=\s*Y/m.test(
    await textOf(directory, await readdir(directory), /^(?:xtrabackup|mariadb_backup)_info$/),
  );
