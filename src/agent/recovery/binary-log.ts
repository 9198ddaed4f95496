import { createReadStream, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { runCommand } from '../../probes/command.ts';

/** The binary log of MySQL and MariaDB behind a dump: which files, from which position, and whether they can be applied. */

export interface LogPosition {
  file: string;
  position: number;
}

export interface DumpHeader {
  /** As the server reported it, such as `10.11.6-MariaDB`. */
  serverVersion?: string;
  isMariadb: boolean;
  /** Of PostgreSQL, or of MySQL and MariaDB where the dump was taken with its place in the binary log. */
  log?: LogPosition;
}

/** More than the comments and settings at the beginning of any dump. */
const headBytes = 262_144;

/** What the first lines of a dump in SQL say. Throws the file system's error. */
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
      // The end of the part that is read cuts compressed data off.
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

/** The files from the one that the position names to `last`, or to the first gap. Empty if the first one is missing. */
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

/** The words that print the log of one database as statements. */
export function printLog(
  files: readonly string[],
  { position }: LogPosition,
  database: string,
  { isMariadb, until }: { isMariadb: boolean; until?: Date },
): readonly string[] {
  return [
    // The option takes local time.
    ...['env', 'TZ=UTC', 'mysqlbinlog', `--start-position=${position}`, `--database=${database}`],
    // A server skips transactions whose ids it has executed once.
    ...(isMariadb ? [] : ['--skip-gtids']),
    ...(until ? [`--stop-datetime=${until.toISOString().slice(0, 19).replace('T', ' ')}`] : []),
    ...files,
  ];
}

const longestScanMs = 4 * 36e5;
const longestLine = 64 << 20;
const write = /^(?:insert|update|delete|replace|load|create|alter|drop|truncate|rename)\b/i;

/**
 * Reads the log to its end as it will be applied, but for all databases. Returns the first statement that the selection
 * of one database would leave out although it names that database: a statement that was written without `USE`. Row
 * events name their database themselves. Throws `ProbeError` if the log cannot be read.
 */
export async function leftOut(
  command: readonly string[],
  database: string,
  env: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  let selected: string | undefined;
  let found: string | undefined;
  const mentions = new RegExp(`(?<![\\w$])${database.replace(/[^\w]/g, '\\$&')}(?![\\w$])`);
  await runCommand(
    command.filter((word) => !word.startsWith('--database=')),
    {
      signal: AbortSignal.timeout(longestScanMs),
      maxBytes: longestLine,
      env,
      onLine(line) {
        const use = /^use `((?:[^`]|``)*)`/.exec(line);
        if (use) selected = use[1]!.replaceAll('``', '`');
        else if (selected !== database && write.test(line) && mentions.test(line))
          found ??= line.slice(0, 120);
      },
    },
  );
  return found;
}
