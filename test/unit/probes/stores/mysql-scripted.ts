import type { MysqlRow, RunStatements } from '../../../../src/probes/stores/mysql-questions.ts';

/** The answer of a server: rows, or an error. */
export type Reply = readonly MysqlRow[] | { errno: number; sqlState: string; sqlMessage: string };

/**
 * A server with scripted answers: the first pattern that a statement matches is used; a statement that matches none is a syntax
 * error. Records each statement, and the number of round trips.
 */
export function scripted(answers: readonly (readonly [RegExp, Reply])[]) {
  const asked: string[] = [];
  const server = { asked, roundTrips: 0 };
  const run: RunStatements = async (statements) => {
    server.roundTrips += 1;
    const results: (readonly MysqlRow[])[] = [];
    for (const sql of statements) {
      asked.push(sql);
      const reply = answers.find(([pattern]) => pattern.test(sql))?.[1] ?? syntaxError;
      if ('errno' in reply) {
        const { errno, sqlState, sqlMessage } = reply;
        const thrown = Object.assign(new Error(sqlMessage), reply);
        return { results, refusal: { errno, sqlState, message: sqlMessage, thrown } };
      }
      results.push(reply as readonly MysqlRow[]);
    }
    return { results };
  };
  return Object.assign(server, { run });
}

export const syntaxError = {
  errno: 1064,
  sqlState: '42000',
  sqlMessage:
    'You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version',
};

export const variables = (values: Readonly<Record<string, string>>): MysqlRow[] =>
  Object.entries(values).map(([Variable_name, Value]) => ({ Variable_name, Value }));
