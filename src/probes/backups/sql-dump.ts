import type { BackupContent } from './evidence.ts';
import type { BinlogPlace } from './formats/segments.ts';
import { offsetOfName, wallTime } from './formats/wall-time.ts';
import { gtidsIn } from './physical.ts';

/** Dumps in SQL: the line with which each tool begins a dump, and the line that it writes at the end. */
const tools = [
  { name: 'mysqldump', first: /^(?:\/\*M?!.*\n)?-- (?:MySQL|MariaDB) dump/, last: /^-- Dump completed/ },
  {
    name: 'pg_dump',
    first: /^--\n-- PostgreSQL database (?:cluster )?dump/,
    last: /^-- PostgreSQL database (?:cluster )?dump complete/,
  },
] as const;

/** Whether a text is the beginning of a dump in SQL. */
export const isSqlDump = (head: string): boolean => tools.some(({ first }) => first.test(head));

interface SqlDump {
  fault?: string;
  /** What was read, for people. */
  msg: string;
  content: BackupContent;
}

/** Reads a dump in SQL to its end. The comments in it contain what its tool says about it. */
export async function readSqlDump(chunks: AsyncIterable<Buffer>): Promise<SqlDump> {
  const found = createNotes();
  const comments = createComments(found.take);
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    comments.write(chunk);
  }
  comments.end();
  const { tool, isComplete, partial, ...content } = found.content();
  const msg = `${bytes} bytes, with the last line of ${tool}`;
  const cut = `the last line that ${tool} writes is missing: the dump is not complete`;
  return { fault: isComplete ? partial : cut, msg, content };
}

/** The maximum length of a comment; longer comments are not needed. */
const longestComment = 1024;

/**
 * Finds lines that begin with `-- `, and other lines that say something about the dump. A line break in a value is escaped, or is
 * two characters in PostgreSQL's COPY. The rows of a COPY are left out, because their first column may look like such a line.
 */
function createComments(take: (line: string) => void) {
  // The first line is treated like every other line.
  let rest: Buffer = Buffer.from('\n');
  let isInRows = false;
  const marker = Buffer.from('\n-- ');
  // Rows that are cut off end where the next dump in the file begins.
  const endsOfRows = ['\n\\.', '\n--\n-- PostgreSQL database '].map((text) => Buffer.from(text));
  const statements = [
    ...['\nCHANGE ', '\nPARTITION BY ', '\nSET GLOBAL gtid_slave_pos', '\n) ENGINE='],
    ...['\nCOPY ', '\nLOCK TABLES ', '\nUNLOCK TABLES', '\n/*!40000 ALTER TABLE '],
  ].map((text) => Buffer.from(text));
  const longest = Math.max(...[...endsOfRows, ...statements].map(({ length }) => length));
  const read = (isEnd: boolean) => {
    let at = 0;
    for (;;) {
      const next = (isInRows ? endsOfRows : [marker, ...statements])
        .map((each) => rest.indexOf(each, at))
        .filter((found) => found >= 0);
      if (next.length === 0) break;
      at = Math.min(...next);
      const end = rest.indexOf('\n', at + 1);
      if (end < 0 && !isEnd && rest.length - at < longestComment) {
        rest = rest.subarray(at);
        return;
      }
      const line = rest.toString('utf8', at + 1, Math.min(end < 0 ? rest.length : end, at + longestComment));
      isInRows = !isInRows && /^COPY (?:.* FROM stdin;$|[^;]*$)/.test(line);
      take(line);
      at += 1;
    }
    rest = rest.subarray(Math.max(at, rest.length - longest));
  };
  return {
    write(chunk: Buffer) {
      rest = Buffer.concat([rest, chunk]);
      read(false);
    },
    end: () => read(true),
  };
}

/** Comments that name a database, as mysqldump, pg_dump --create and pg_dumpall write them. */
const databaseNames = [
  ...[/^-- Host: .*\sDatabase: (\S.*)$/, /^-- Current Database: `(.+)`$/],
  ...[/^-- Name: (.+); Type: DATABASE; Schema: -; /, /^-- Database "(.+)" dump$/],
];

/** Collects the information in the comments of a dump. */
function createNotes() {
  const databases = new Set<string>();
  /** Which parts of each table the dump contains. */
  const tables = new Map<string, { isDefined?: true; hasData?: true }>();
  let table: string | undefined;
  let where: string | undefined;
  let database = '';
  let tool = 'its tool';
  const parts = createParts();
  const rows = createRows();
  let start: Pick<BackupContent, 'startMs' | 'startWall'> = {};
  let endWall: BackupContent['endWall'];
  let binlog: BackupContent['binlog'];
  let gtids: Pick<BinlogPlace, 'gtids'> = {};
  let withoutLog: string | undefined;
  let isOfSource = false;
  const take = (line: string) => {
    if (/^-- (?:MySQL|MariaDB) dump /.test(line)) tool = 'mysqldump';
    else if (/^-- PostgreSQL database (?:cluster )?dump$/.test(line)) tool = 'pg_dump';
    const named = databaseNames.map((pattern) => pattern.exec(line)?.[1]).find((name) => name !== undefined);
    if (named !== undefined) {
      database = named.trim();
      databases.add(database);
    }
    where ??= /^-- WHERE: +(.*)$/.exec(line)?.[1];
    const found = partOf(line, database);
    if (found) {
      table = found.table;
      tables.set(table, { ...tables.get(table), ...found.has });
    }
    // The partitions have the data.
    if (line.startsWith('PARTITION BY ') && table !== undefined)
      tables.set(table, { isDefined: true, hasData: true });
    const position =
      /(?:MASTER|SOURCE)_LOG_FILE\s*=\s*'([^']+)',\s*(?:MASTER|SOURCE)_LOG_POS\s*=\s*(\d+)/.exec(line);
    if (position) binlog ??= { file: position[1]!, position: Number(position[2]) };
    const following = /^(?:-- )?SET GLOBAL gtid_slave_pos\s*=\s*'([^']*)'/.exec(line)?.[1];
    if (following !== undefined) gtids = gtids.gtids === undefined ? gtidsIn(following) : gtids;
    rows.take(line, table);
    if (database !== 'mysql') withoutLog ??= whyWithoutLog(line, table);
    isOfSource ||= ofSource.test(line);
    // The first of several dumps in one file began before the others.
    if (Object.keys(start).length === 0) start = startOf(line) ?? start;
    const end = /^-- Dump completed on (\S+ +\S+)$/.exec(line)?.[1];
    if (end !== undefined) endWall = wallTime(end);
    parts.take(line);
  };
  return {
    take,
    content: () => ({
      ...{
        tool,
        isComplete: parts.areComplete(),
        ...start,
        endWall: isOfSource ? undefined : endWall,
        withoutLog,
      },
      binlog: binlog && { ...binlog, ...gtids },
      databases: databases.size > 0 ? [...databases] : undefined,
      tables: [...tables.keys()],
      partial: rows.cut() ?? partialOf(tables, where),
      ...(isOfSource && { unknown: replicated }),
      ...(!isOfSource && Object.keys(start).length === 0 && { unknown: whyUntimed(tool) }),
    }),
  };
}

/**
 * Tracks the statements that mysqldump writes before and after the rows of a table. With --force it goes on after an error, with
 * the next table and to its last line, and leaves out what would have followed the last row that it got.
 */
function createRows() {
  let open: string | undefined;
  let cut: string | undefined;
  return {
    take(line: string, table: string | undefined) {
      if (/^UNLOCK TABLES|^\/\*!40000 ALTER TABLE .* ENABLE KEYS/.test(line)) open = undefined;
      else if (/^LOCK TABLES `.*` WRITE|^\/\*!40000 ALTER TABLE .* DISABLE KEYS/.test(line)) open = table;
      else if (open !== undefined && (open !== table || line.startsWith('-- Dump completed'))) cut ??= open;
    },
    cut: () => {
      const name = cut ?? open;
      return (
        name && `the rows of ${name.replace(/^\./, '')} end early: its tool went on after an error (--force)`
      );
    },
  };
}

/**
 * Tracks the dumps in one file: a script may append one to another, and pg_dumpall puts one for each database between its own
 * first and last line. Each dump that begins must end.
 */
function createParts() {
  const open = new Set<string>();
  let ended = 0;
  let isCut = false;
  return {
    take(line: string) {
      const [, begun] =
        /^-- ((?:MySQL|MariaDB|PostgreSQL database(?: cluster)?) dump)(?: |$)/.exec(line) ?? [];
      const isEnd = tools.some(({ last }) => last.test(line));
      const kind = /cluster/.exec(line)?.[0] ?? 'database';
      if (isEnd) {
        open.delete(kind);
        ended += 1;
      } else if (begun !== undefined) {
        isCut ||= open.has(kind);
        open.add(kind);
      }
    },
    areComplete: () => ended > 0 && open.size === 0 && !isCut,
  };
}

/** With --dump-slave the position is that of the source. The dumped server lags behind the source. */
const ofSource =
  /^-- (?:Position to start replication or point-in-time recovery from \(the |The following is the SQL position of the replication )/;
const replicated =
  'it is a dump of a replica (--dump-slave), and does not state how far the replica was behind; only the binary log shows it';

/** Engines whose rows a dump in one transaction reads as of one moment, the moment of its position. */
const transactional: readonly string[] = ['innodb', 'rocksdb', 'tokudb', 'sequence', 'ndbcluster'];

function whyWithoutLog(line: string, table: string | undefined): string | undefined {
  const engine = /^\) ENGINE=(\w+)/.exec(line)?.[1];
  if (engine === undefined || transactional.includes(engine.toLowerCase())) return undefined;
  return `${table} has the engine ${engine}: a dump may have rows of it that were written after its position in the log; use InnoDB`;
}

/**
 * The table that a comment announces, and the part that follows. For PostgreSQL the table is `SCHEMA.TABLE`, otherwise
 * `DATABASE.TABLE`.
 */
function partOf(line: string, database: string) {
  const [, what, name] = /^-- (Table structure|Dumping data) for table `(.+)`$/.exec(line) ?? [];
  if (name !== undefined)
    return {
      table: `${database}.${name}`,
      has: what === 'Dumping data' ? { hasData: true as const } : { isDefined: true as const },
    };
  const [, data, tag, kind, schema] =
    /^-- (Data for )?Name: (.+); Type: (TABLE(?: DATA)?); Schema: (.+?); Owner: /.exec(line) ?? [];
  if (tag === undefined) return undefined;
  const isData = data !== undefined && kind === 'TABLE DATA';
  return {
    table: `${schema}.${tag}`,
    has: isData ? { hasData: true as const } : { isDefined: true as const },
  };
}

/** What is left out of a dump by the options of its tool. */
function partialOf(
  tables: ReadonlyMap<string, { isDefined?: true; hasData?: true }>,
  where: string | undefined,
): string | undefined {
  if (where !== undefined) return `it has only rows that fit ${where.slice(0, 50)} (--where)`;
  const listed = (names: readonly (readonly [string, unknown])[]) =>
    names.slice(0, 3).map(([name]) => name.replace(/^\./, ''));
  // Logs of the server itself are dumped without rows.
  const empty = listed([...tables].filter(([name, { hasData }]) => !hasData && !name.startsWith('mysql.')));
  if (empty.length > 0) return `it has no data of ${empty.join(', ')} (--no-data, --schema-only)`;
  const bare = listed([...tables].filter(([, { isDefined }]) => !isDefined));
  if (bare.length > 0) return `it has no definition of ${bare.join(', ')} (--no-create-info, --data-only)`;
  return undefined;
}

/** The start of a dump, which is written with --verbose. The abbreviation of its zone may stand for several zones. */
function startOf(line: string): Pick<BackupContent, 'startMs' | 'startWall'> | undefined {
  const [, text = '', zone = ''] = /^-- Started on (\S+ \S+) (\S+)$/.exec(line) ?? [];
  const startWall = wallTime(text);
  const offsetMs = offsetOfName(zone);
  if (startWall === undefined) return undefined;
  return offsetMs === undefined ? { startWall } : { startMs: startWall.ms - offsetMs };
}

const whyUntimed = (tool: string): string =>
  tool === 'pg_dump'
    ? 'a dump of PostgreSQL in SQL does not say when it began; use --format=custom'
    : 'a dump of mysqldump says when it ended, not when it began; run it by svc-agent backup run';
