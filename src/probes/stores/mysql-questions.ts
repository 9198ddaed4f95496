import { escapedText } from './sql-text.ts';

// Sends questions to a MySQL-compatible server in few round trips.

/** One row by column; every value is the text that the server sent, or null. */
export type MysqlRow = Readonly<Record<string, string | null>>;

/** Rows, or the reason why there are none: too few rights, a missing table or variable, a lock. */
export type MysqlAnswer =
  | { rows: readonly MysqlRow[]; unknown?: undefined }
  | { rows?: undefined; unknown: string; errno?: number };

/** A question, in the forms that versions of the server understand; the first form that a server supports is used. */
export interface Question {
  name: string;
  /** The forms. Each is one or more statements; the last statement returns the rows. */
  forms: readonly (readonly string[])[];
}

/** Runs statements in order until one fails. */
export type RunStatements = (statements: readonly string[]) => Promise<Ran>;
interface Ran {
  /** The rows of each statement that succeeded; none for a statement without rows. */
  results: readonly (readonly MysqlRow[])[];
  /** The server's answer to the next statement, if it was an error. Any other error is thrown. */
  refusal?: MysqlRefusal & { thrown: unknown };
}

/**
 * An error that the server itself sent (dev.mysql.com/doc/mysql-errors,
 * mariadb.com/kb/en/mariadb-error-code-reference).
 */
export interface MysqlRefusal {
  errno: number;
  sqlState: string;
  message: string;
}

/** Errors of a server that does not know a statement, a table or a variable. */
const absent: ReadonlySet<number> = new Set([1064, 1109, 1146, 1193, 1682, 3167]);
/** Errors for a lock of another session, or a statement that takes too long. */
const late: ReadonlySet<number> = new Set([1205, 1969, 3024]);
/** Classes of harmless errors: bad data, a read-only session, no database chosen, a missing right or a missing object. */
const harmless = /^(?:21|22|25|3D|42)/;
/**
 * Errors of these classes that are faults: a missing database, which a user without a right on it cannot distinguish from a
 * forbidden one; and a table that its engine has lost.
 */
const faults: ReadonlySet<number> = new Set([1044, 1049, 1932]);

function isHarmless({ errno, sqlState }: MysqlRefusal): boolean {
  if (faults.has(errno)) return false;
  return absent.has(errno) || late.has(errno) || harmless.test(sqlState);
}

/** Errors of a server or a proxy that accepts only one statement at a time. */
const oneStatementOnly: ReadonlySet<number> = new Set([1064, 8130]);

/** Whether an error stays the same within a session, such as a missing right, or an unknown statement or variable. */
const isLasting = ({ errno }: MysqlRefusal) => errno !== 1146 && !late.has(errno);

/**
 * Sends many questions in few round trips: first all at once, then again those after a refused one. A form that the server does
 * not know or allow is not sent again over the same connection.
 */
export function createAsker(
  run: RunStatements,
): (questions: readonly Question[]) => Promise<Record<string, MysqlAnswer>> {
  /** Forms that were refused, with the reason. */
  const refused = new Map<string, MysqlAnswer & { rows?: undefined }>();
  /** Whether statements are sent one at a time, which a proxy may require. */
  let oneByOne = false;
  const keyOf = (form: readonly string[]) => form.join(';');

  const runAll: RunStatements = async (statements) => {
    if (!oneByOne) return run(statements);
    const results: (readonly MysqlRow[])[] = [];
    for (const statement of statements) {
      const ran = await run([statement]);
      if (ran.refusal) return { results, refusal: ran.refusal };
      results.push(ran.results[0] ?? []);
    }
    return { results };
  };

  return async (questions) => {
    const answers: Record<string, MysqlAnswer> = {};
    const refusedHere = new Map<string, MysqlAnswer & { rows?: undefined }>(refused);
    let open = questions;
    while (open.length > 0) {
      const asked: { name: string; form: readonly string[] }[] = [];
      for (const { name, forms } of open) {
        const known = (form: readonly string[]) => refusedHere.get(keyOf(form));
        // A question that the server supports but does not allow is not sent in another form.
        const form = forms.find((one) => !absent.has(known(one)?.errno ?? 0));
        const refusal = known(form ?? forms.at(-1)!);
        if (refusal) answers[name] = refusal;
        else asked.push({ name, form: form! });
      }
      if (asked.length === 0) return answers;
      const { results, refusal } = await runAll(asked.flatMap(({ form }) => form));
      let at = 0;
      const failed = asked.findIndex(({ name, form }) => {
        at += form.length;
        if (at > results.length) return true;
        answers[name] = { rows: results[at - 1]! };
        return false;
      });
      if (refusal === undefined) return answers;
      const { form } = asked[failed]!;
      if (!oneByOne && asked.length > 1 && results.length === 0 && oneStatementOnly.has(refusal.errno))
        oneByOne = true;
      else if (isHarmless(refusal)) {
        const answer = { unknown: refusal.message, errno: refusal.errno };
        refusedHere.set(keyOf(form), answer);
        if (isLasting(refusal)) refused.set(keyOf(form), answer);
      } else throw refusal.thrown;
      open = open.filter(({ name }) => answers[name] === undefined);
    }
    return answers;
  };
}

/** The rows as values by name; the names are in lower case. */
export type NamedValues = ReadonlyMap<string, string>;

export function byName(rows: readonly MysqlRow[]): NamedValues {
  return new Map(
    rows.map((row) => {
      const [name, value] = Object.values(row);
      return [(name ?? '').toLowerCase(), value ?? ''];
    }),
  );
}

/** The number that a text of the server is; undefined for no text, or a text that is not a number. */
export function mysqlNumber(text: string | null | undefined): number | undefined {
  if (text === undefined || text === null || text.trim() === '') return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : undefined;
}

export const sqlName = (name: string): string => `\`${name.replaceAll('`', '``')}\``;
export const sqlTexts = (texts: readonly string[]): string => texts.map(escapedText).join(', ');
