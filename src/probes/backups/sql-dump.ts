import type { BackupContent } from './evidence.ts';
import { offsetOfName, wallTime } from './wall-time.ts';

/** Dumps in SQL, and the line that their tools write when all is written. */
const tools = [
  { name: 'mysqldump', first: /^(?:\/\*M?!.*\n)?-- (?:MySQL|MariaDB) dump/, last: /^-- Dump completed/ },
  {
    name: 'pg_dump',
    first: /^--\n-- PostgreSQL database (?:cluster )?dump/,
    last: /^-- PostgreSQL database (?:cluster )?dump complete/,
  },
] as const;

/** Whether a dump in SQL begins like that. */
export const isSqlDump = (head: string): boolean => tools.some(({ first }) => first.test(head));

export interface SqlDump {
  fault?: string;
  /** What was read, for people. */
  msg: string;
  content: BackupContent;
}

/** Reads a dump in SQL to its end. What its tool says of it stands in comments. */
export async function readSqlDump(chunks: AsyncIterable<Buffer>): Promise<SqlDump> {
  const found = createNotes();
  const comments = createComments(found.take);
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    comments.write(chunk);
  }
  comments.end();
  const { tool, isComplete, withoutData, ...content } = found.content();
  const msg = `${bytes} bytes, with the last line of ${tool}`;
  const cut = `the last line that ${tool} writes is missing: the dump is not complete`;
  const missing = `it has no data of ${withoutData.slice(0, 3).join(', ')} (--no-data)`;
  return { fault: isComplete ? (withoutData.length > 0 ? missing : undefined) : cut, msg, content };
}

/** The longest comment that is of interest. */
const longestComment = 1024;

/**
 * Finds lines that begin with `-- `. A line break in a value is escaped, or stands in a value of PostgreSQL's COPY as two
 * characters, so that no data looks like one.
 */
function createComments(take: (line: string) => void) {
  // The first line begins like any other.
  let rest: Buffer = Buffer.from('\n');
  const marker = Buffer.from('\n-- ');
  const statement = Buffer.from('\nCHANGE ');
  const read = (isEnd: boolean) => {
    let at = 0;
    for (;;) {
      const next = [marker, statement].map((each) => rest.indexOf(each, at)).filter((found) => found >= 0);
      if (next.length === 0) break;
      at = Math.min(...next);
      const end = rest.indexOf('\n', at + 1);
      if (end < 0 && !isEnd && rest.length - at < longestComment) {
        rest = rest.subarray(at);
        return;
      }
      take(rest.toString('utf8', at + 1, Math.min(end < 0 ? rest.length : end, at + longestComment)));
      at += 1;
    }
    rest = rest.subarray(Math.max(at, rest.length - statement.length));
  };
  return {
    write(chunk: Buffer) {
      rest = Buffer.concat([rest, chunk]);
      read(false);
    },
    end: () => read(true),
  };
}

/** Collects what the comments of a dump say. */
function createNotes() {
  const databases = new Set<string>();
  const tables = new Map<string, boolean>();
  let database = '';
  let tool = 'its tool';
  let isComplete = false;
  let start: Pick<BackupContent, 'startMs' | 'startWall'> = {};
  let endWall: BackupContent['endWall'];
  let binlog: BackupContent['binlog'];
  const take = (line: string) => {
    if (/^-- (?:MySQL|MariaDB) dump /.test(line)) tool = 'mysqldump';
    else if (/^-- PostgreSQL database (?:cluster )?dump$/.test(line)) tool = 'pg_dump';
    const named =
      /^-- Host: .*\sDatabase: (\S.*)$/.exec(line)?.[1] ?? /^-- Current Database: `(.+)`$/.exec(line)?.[1];
    if (named !== undefined) {
      database = named.trim();
      databases.add(database);
    }
    const [, what, table] = /^-- (Table structure|Dumping data) for table `(.+)`$/.exec(line) ?? [];
    const key = `${database}.${table}`;
    if (what !== undefined) tables.set(key, what === 'Dumping data' || (tables.get(key) ?? false));
    const position =
      /(?:MASTER|SOURCE)_LOG_FILE\s*=\s*'([^']+)',\s*(?:MASTER|SOURCE)_LOG_POS\s*=\s*(\d+)/.exec(line);
    if (position) binlog = { file: position[1]!, position: Number(position[2]) };
    start = startOf(line) ?? start;
    const end = /^-- Dump completed on (\S+ +\S+)$/.exec(line)?.[1];
    if (end !== undefined) endWall = wallTime(end);
    isComplete = tools.some(({ last }) => last.test(line)) || isComplete;
  };
  return {
    take,
    content: () => ({
      ...{ tool, isComplete, ...start, endWall, binlog },
      databases: databases.size > 0 ? [...databases] : undefined,
      withoutData: [...tables].filter(([, hasData]) => !hasData).map(([name]) => name.replace(/^\./, '')),
      ...(Object.keys(start).length === 0 && { unknown: whyUntimed(tool) }),
    }),
  };
}

/** Written with --verbose, with an abbreviation of the zone that several zones may share. */
function startOf(line: string): Pick<BackupContent, 'startMs' | 'startWall'> | undefined {
  const [, text = '', zone = ''] = /^-- Started on (\S+ \S+) (\S+)$/.exec(line) ?? [];
  const startWall = wallTime(text);
  const offsetMs = offsetOfName(zone);
  if (startWall === undefined) return undefined;
  return offsetMs === undefined ? { startWall } : { startMs: startWall.ms - offsetMs };
}

const whyUntimed = (tool: string): string =>
  tool === 'pg_dump'
    ? 'a dump of PostgreSQL in SQL does not say when it was begun; use --format=custom'
    : 'a dump of mysqldump says when it ended, not when it was begun; run it by svc-agent backup run';
