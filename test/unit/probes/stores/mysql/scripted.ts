import type { Ask, Row } from '../../../../../src/probes/stores/mysql/answer.ts';

/** What a server answers: rows, or the error that it sends. */
export type Reply = readonly Row[] | { errno: number; sqlState: string; sqlMessage: string };

const replyError = (reply: Exclude<Reply, readonly Row[]>): Error =>
  Object.assign(new Error(reply.sqlMessage), reply);

/** A server by its answers: the first pattern that a statement matches counts; what matches none is a syntax error. */
export function scripted(answers: readonly (readonly [RegExp, Reply])[]): { ask: Ask; asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    ask: async (sql) => {
      asked.push(sql);
      const reply = answers.find(([pattern]) => pattern.test(sql))?.[1] ?? syntaxError;
      if ('errno' in reply) throw replyError(reply);
      return reply as readonly Row[];
    },
  };
}

export const syntaxError = {
  errno: 1064,
  sqlState: '42000',
  sqlMessage:
    'You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version',
};

export const variables = (values: Readonly<Record<string, string>>): Row[] =>
  Object.entries(values).map(([Variable_name, Value]) => ({ Variable_name, Value }));
