/** One row by column; every value as the text that the server sent, or null. */
export type Row = Readonly<Record<string, string | null>>;

/** Asks the server one statement; rejects with the driver's error. */
export type Ask = (sql: string) => Promise<readonly Row[]>;

/** What a statement that the server may refuse gave: rows, or why there are none. */
export type Answer = { rows: readonly Row[]; unknown?: undefined } | { rows?: undefined; unknown: string };

/** An error that the server itself sent (dev.mysql.com/doc/mysql-errors, mariadb.com/kb/en/mariadb-error-code-reference). */
interface Refusal {
  errno: number;
  sqlState: string;
  message: string;
}

/** What was thrown, if the server sent it; undefined for the driver's and the network's errors. */
export function refusalOf(thrown: unknown): Refusal | undefined {
  const { errno, sqlState, sqlMessage } = (thrown ?? {}) as Record<string, unknown>;
  if (typeof errno !== 'number' || typeof sqlMessage !== 'string') return undefined;
  return { errno, sqlState: typeof sqlState === 'string' ? sqlState : '', message: sqlMessage };
}

/** Not known to this server: a statement, a table, a variable. */
const absent: ReadonlySet<number> = new Set([1064, 1109, 1146, 1193, 1682, 3167]);
/** Somebody holds a lock, or it takes too long. */
const late: ReadonlySet<number> = new Set([1205, 1969, 3024]);
/** Bad data, a read-only session, no database chosen, no right or no such thing. */
const harmless = /^(?:21|22|25|3D|42)/;
/** Of the same classes, but no matter of rights: no such database; a table that its engine has lost. */
const grave: ReadonlySet<number> = new Set([1049, 1932]);

function isHarmless({ errno, sqlState }: Refusal): boolean {
  if (grave.has(errno)) return false;
  return absent.has(errno) || late.has(errno) || harmless.test(sqlState);
}

/**
 * The answer to the first of these statements that this server knows. What the rights, the version or a lock keep
 * from us is unknown, in the server's words; any other error is thrown on.
 */
export async function answerOf(ask: Ask, ...statements: readonly string[]): Promise<Answer> {
  let unknown = '';
  for (const sql of statements) {
    try {
      return { rows: await ask(sql) };
    } catch (thrown) {
      const refusal = refusalOf(thrown);
      if (refusal === undefined || !isHarmless(refusal)) throw thrown;
      unknown = refusal.message;
      if (!absent.has(refusal.errno)) break;
    }
  }
  return { unknown };
}

/** Rows of a name and a value; names in lower case. */
export type Named = ReadonlyMap<string, string>;

export function byName(rows: readonly Row[]): Named {
  return new Map(
    rows.map((row) => {
      const [name, value] = Object.values(row);
      return [(name ?? '').toLowerCase(), value ?? ''];
    }),
  );
}

/** A number as the server wrote it; undefined for no text, or for one that is none. */
export function numberOf(text: string | null | undefined): number | undefined {
  if (text === undefined || text === null || text.trim() === '') return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}

/** A text as a literal of SQL. */
export function literal(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

/** A name as an identifier of SQL. */
export function identifier(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** Names as literals, for `IN (…)`. */
export function listed(names: readonly string[]): string {
  return names.map(literal).join(', ');
}
