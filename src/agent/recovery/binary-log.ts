import { createReadStream, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { runCommand } from '../../probes/command.ts';

/**
 * The binary log of MySQL and MariaDB after a dump: which files are applied, from which position, and whether they can be
 * applied.
 */

interface LogPosition {
  file: string;
  position: number;
}

interface DumpHeader {
  /** The version as the server reported it, such as `10.11.6-MariaDB`. */
  serverVersion?: string;
  isMariadb: boolean;
  /** MySQL and MariaDB only: the position in the binary log, if the dump states it. */
  log?: LogPosition;
}

/** How much of a dump is read: more than the comments and settings at the beginning of any dump. */
const headBytes = 262_144;

/** Reads the first lines of a dump in SQL. Throws the file system's error. */
export async function readDumpHeader(file: string): Promise<DumpHeader> {
  const text = await headOf(file);
  const log =
    /^(?:-- )?CHANGE (?:MASTER|REPLICATION SOURCE) TO (?:MASTER|SOURCE)_LOG_FILE='([^']+)', (?:MASTER|SOURCE)_LOG_POS=(\d+)/m.exec(
      text,
    );
  return {
    serverVersion: /^-- (?:Server version\s+|Dumped from database version )(\S+)/m.exec(text)?.[1],
    isMariadb: /^(?:\/\*.*\*\/\s*)?-- MariaDB dump/m.test(text),
    ...(log && { log: { file: log[1]!, position: Number(log[2]) } }),
  };
}

async function headOf(file: string): Promise<string> {
  const raw = createReadStream(file, { end: headBytes });
  const packed = file.endsWith('.gz');
  const stream = packed ? raw.pipe(createGunzip()) : raw;
  let text = '';
  const failed = new Promise<never>((_, reject) => raw.once('error', reject));
  failed.catch(() => {});
  const read = async () => {
    try {
      for await (const chunk of stream) {
        text += (chunk as Buffer).toString('latin1');
        if (text.length > headBytes) break;
      }
    } catch (thrown) {
      // The part that is read may end within compressed data.
      if (!packed || text === '') throw thrown;
    }
    return text;
  };
  try {
    return await Promise.race([read(), failed]);
  } finally {
    raw.destroy();
  }
}

/** The log files from the one that the position names to `last`, or to the first gap. Empty if the first file is missing. */
export function logFiles(directory: string, { file }: LogPosition, last: string | undefined): string[] {
  const at = /^(.*\.)(\d+)$/.exec(file);
  if (at === null || !existsSync(directory)) return [];
  const names = new Set(readdirSync(directory));
  const files: string[] = [];
  for (let number = Number(at[2]); ; number++) {
    const name = `${at[1]}${String(number).padStart(at[2]!.length, '0')}`;
    if (!names.has(name)) return files;
    files.push(join(directory, name));
    if (name === last) return files;
  }
}

/** The command words that print the log of one database as statements. */
export function printLog(
  files: readonly string[],
  { position }: LogPosition,
  database: string,
  { isMariadb, until }: { isMariadb: boolean; until?: Date },
): readonly string[] {
  return [
    // The option takes local time.
    ...['env', 'TZ=UTC', 'mysqlbinlog', `--start-position=${position}`, `--database=${database}`],
    // A server of MySQL skips transactions whose ids it has executed before. The log of a MariaDB server may contain ids twice,
    // after a restore that kept them; older programs do not know that option.
    isMariadb ? '--loose-skip-gtid-strict-mode' : '--skip-gtids',
    ...(until ? [`--stop-datetime=${until.toISOString().slice(0, 19).replace('T', ' ')}`] : []),
    ...files,
  ];
}

/**
 * Removes the ids of MariaDB's transactions, so that the server gives new ones. With the old ids its own log would contain them
 * twice, and could not be applied again.
 */
export const withoutIds: readonly string[] = [
  'sed',
  '/^\\/\\*M!100001 SET @@session\\.gtid_seq_no=[0-9]*\\*\\/\\/\\*!\\*\\/;$/d',
];

const longestScanMs = 4 * 36e5;
const longestLine = 64 << 20;
const write = /^(?:insert|update|delete|replace|load|create|alter|drop|truncate|rename)\b/i;
const ofDatabase = /^(create|drop|alter)\s+(?:database|schema)\b/i;

/** What the log contains besides changes of rows and tables. */
interface LogContent {
  /**
   * The first statement that names the database but would be left out when only this database is selected, because it was written
   * without `USE`. Row events name their database themselves.
   */
  leftOut?: string;
  /** When the database was last dropped, ms since the epoch. */
  droppedMs?: number;
  /** Whether the database was not created again after that. */
  isGone?: boolean;
  /** Time of the last event, ms since the epoch. */
  lastMs?: number;
}

/** The time of an event as in `#261124  0:41:32 server id 1`, in UTC. */
const eventTime = /^#(\d\d)(\d\d)(\d\d)\s+(\d{1,2}):(\d\d):(\d\d) server id /;

function timeOfEvent(line: string): number | undefined {
  const parts = eventTime.exec(line)?.slice(1).map(Number);
  if (parts === undefined) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts;
  return Date.UTC(2000 + year, month - 1, day, hour, minute, second);
}

/**
 * Reads the log to its end in the same way as it will be applied, but for all databases. Throws `ProbeError` if it cannot be
 * read.
 */
export async function readLog(
  command: readonly string[],
  database: string,
  env: Readonly<Record<string, string>>,
): Promise<LogContent> {
  let selected: string | undefined;
  const content: LogContent = {};
  const mentions = new RegExp(`(?<![\\w$])${database.replace(/[^\w]/g, '\\$&')}(?![\\w$])`);
  const statement = (line: string) => {
    const [, verb] = ofDatabase.exec(line) ?? [];
    if (verb === undefined) {
      if (selected !== database) content.leftOut ??= line.slice(0, 120);
    } else if (verb.toLowerCase() !== 'alter') {
      content.isGone = verb.toLowerCase() === 'drop';
      if (content.isGone) content.droppedMs = content.lastMs;
    }
  };
  await runCommand(
    command.filter((word) => !word.startsWith('--database=')),
    {
      signal: AbortSignal.timeout(longestScanMs),
      maxBytes: longestLine,
      env,
      onLine(line) {
        const use = /^use `((?:[^`]|``)*)`/.exec(line);
        if (use) selected = use[1]!.replaceAll('``', '`');
        else if (write.test(line) && mentions.test(line)) statement(line);
        else content.lastMs = timeOfEvent(line) ?? content.lastMs;
      },
    },
  );
  return content;
}

/** When the last event before a position was written, ms since the epoch. Throws `ProbeError`. */
export async function timeOfPosition(
  file: string,
  { position }: LogPosition,
  env: Readonly<Record<string, string>>,
): Promise<number | undefined> {
  let newestMs: number | undefined;
  await runCommand(['env', 'TZ=UTC', 'mysqlbinlog', `--stop-position=${position}`, file], {
    signal: AbortSignal.timeout(longestScanMs),
    maxBytes: longestLine,
    env,
    onLine(line) {
      newestMs = timeOfEvent(line) ?? newestMs;
    },
  });
  return newestMs;
}
