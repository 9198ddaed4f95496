import { type Ask, answerOf } from './answer.ts';

/** What the two families of servers are asked differently; of several statements the first that is known counts. */
export interface Flavour {
  name: 'MySQL' | 'MariaDB';
  /** How long a statement may run, as the server is told. */
  timeLimit(timeoutMs: number): string;
  /** Where the counters stand that `SHOW GLOBAL STATUS` shows. */
  statusTables: readonly string[];
  replication: readonly string[];
  position: readonly string[];
}

const mysqlFlavour: Flavour = {
  name: 'MySQL',
  timeLimit: (timeoutMs) => `max_execution_time = ${timeoutMs}`,
  statusTables: ['performance_schema.global_status', 'information_schema.GLOBAL_STATUS'],
  replication: ['SHOW REPLICA STATUS', 'SHOW SLAVE STATUS'],
  position: ['SHOW BINARY LOG STATUS', 'SHOW MASTER STATUS'],
};

const mariadbFlavour: Flavour = {
  name: 'MariaDB',
  timeLimit: (timeoutMs) => `max_statement_time = ${timeoutMs / 1000}`,
  statusTables: ['information_schema.GLOBAL_STATUS'],
  // The only one that shows every source.
  replication: ['SHOW ALL SLAVES STATUS'],
  position: ['SHOW MASTER STATUS'],
};

/** Which family a server is of, by what it says of itself. */
export function flavourOf(version: string, comment: string): Flavour {
  return /mariadb/i.test(`${version} ${comment}`) ? mariadbFlavour : mysqlFlavour;
}

/** Whoever holds a lock goes first: we ask again soon. */
const longestLockWaitSeconds = 1;
const mostRows = 1000;

/** Guards the server against us, and against a statement from the configuration that writes, hangs or floods. */
export async function restrain(ask: Ask, flavour: Flavour, timeoutMs: number): Promise<void> {
  await answerOf(ask, 'SET SESSION TRANSACTION READ ONLY');
  await answerOf(
    ask,
    `SET SESSION lock_wait_timeout = ${longestLockWaitSeconds}, sql_select_limit = ${mostRows}`,
  );
  await answerOf(ask, `SET SESSION ${flavour.timeLimit(Math.ceil(timeoutMs))}`);
}
