import { semiSyncStatus, variableNames } from './mysql-checks.ts';
import { type Question, sqlName, sqlTexts } from './mysql-questions.ts';
import { escapedText } from './sql-text.ts';
import type { PollRequest } from './store-report.ts';

/** The statements that differ between MySQL and MariaDB. */
export interface Flavour {
  name: 'MySQL' | 'MariaDB';
  /** The statement that limits how long the server runs a statement. */
  timeLimit(timeoutMs: number): string;
  /** The tables with the counters that `SHOW GLOBAL STATUS` shows. */
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
  // This is the only statement that shows every source.
  replication: ['SHOW ALL SLAVES STATUS'],
  position: ['SHOW MASTER STATUS'],
};

export const flavourOf = (version: string): Flavour =>
  /mariadb/i.test(version) ? mariadbFlavour : mysqlFlavour;

/** How long a poll waits for a lock at most; the next poll tries again. */
const longestLockWaitSeconds = 1;
const mostRows = 1000;

/** Statements that protect the server from the agent, and from a configured statement that writes, hangs or returns too much. */
export const sessionQuestions = ({ timeLimit }: Flavour, timeoutMs: number): Question[] =>
  [
    'SET SESSION TRANSACTION READ ONLY',
    `SET SESSION lock_wait_timeout = ${longestLockWaitSeconds}, sql_select_limit = ${mostRows}`,
    `SET SESSION ${timeLimit(Math.ceil(timeoutMs))}`,
  ].map((statement) => ({ name: statement, forms: [[statement]] }));

const statusNames = [
  'uptime',
  'threads_connected',
  'threads_running',
  'max_used_connections',
  'aborted_connects',
  'wsrep_cluster_state_uuid',
  'wsrep_cluster_status',
  'wsrep_cluster_size',
  'wsrep_ready',
  'wsrep_local_state_comment',
  ...semiSyncStatus,
];

/**
 * The statements for counters and clock together: both are whole seconds of the same moment, so that their difference is the same
 * in every poll until the server restarts. Without such a table the counters are read without the clock.
 */
export const statusForms = (tables: readonly string[]) => [
  ...tables.map((table) => [
    `SELECT VARIABLE_NAME AS name, VARIABLE_VALUE AS value, UNIX_TIMESTAMP() AS now
        FROM ${table} WHERE VARIABLE_NAME IN (${sqlTexts(statusNames)})`,
  ]),
  [`SHOW GLOBAL STATUS WHERE Variable_name IN (${sqlTexts(statusNames)})`],
];

export const serverQuestions = ({ statusTables, replication, position }: Flavour): Question[] => [
  {
    name: 'version',
    forms: [['SELECT VERSION() AS version, @@version_comment AS comment, CURRENT_USER() AS user']],
  },
  {
    name: 'variables',
    forms: [[`SHOW GLOBAL VARIABLES WHERE Variable_name IN (${sqlTexts(variableNames)})`]],
  },
  { name: 'status', forms: statusForms(statusTables) },
  { name: 'replication', forms: replication.map((statement) => [statement]) },
  { name: 'position', forms: position.map((statement) => [statement]) },
];

/**
 * The question about the sessions of other users, which needs PROCESS: transactions that wait for their client, and sessions of
 * these databases that wait for locks. A session is idle since its last statement, a prepared transaction without a session since
 * it began. The question comes last, because a refused statement costs the statements after it another round trip. The list of
 * processes alone is never refused: without the right it is empty.
 */
export const sessionsQuestion = (databases: readonly string[]): Question => {
  const ours = databases.length === 0 ? '' : `AND DB IN (${sqlTexts(databases)})`;
  const form = `(SELECT 'transaction' AS kind, trx_mysql_thread_id AS id, NULL AS what,
      COALESCE(TIME, TIMESTAMPDIFF(SECOND, trx_started, NOW())) AS age FROM information_schema.INNODB_TRX
      LEFT JOIN information_schema.PROCESSLIST ON ID = trx_mysql_thread_id WHERE trx_query IS NULL
      AND trx_mysql_thread_id <> CONNECTION_ID() AND COALESCE(COMMAND, 'Sleep') = 'Sleep' ORDER BY age DESC LIMIT 100)
    UNION ALL (SELECT 'wait', ID, STATE, TIME FROM information_schema.PROCESSLIST
      WHERE (STATE LIKE 'Waiting for % lock' OR STATE = 'Waiting for table flush') ${ours} ORDER BY TIME DESC LIMIT 400)
    UNION ALL (SELECT 'wait', trx_mysql_thread_id, 'Waiting for row lock', TIMESTAMPDIFF(SECOND, trx_wait_started, NOW())
      FROM information_schema.INNODB_TRX JOIN information_schema.PROCESSLIST ON ID = trx_mysql_thread_id
      WHERE trx_state = 'LOCK WAIT' ${ours} ORDER BY trx_wait_started LIMIT 400)`;
  return { name: 'sessions', forms: [[form]] };
};

const usualSchemaQuery = 'SELECT curr_version FROM schema_version WHERE db_name = {database}';

export function databaseQuestions(database: string, schema: PollRequest['schema']): Question[] {
  const use = `USE ${sqlName(database)}`;
  const filled = (query: string) => query.replaceAll('{database}', () => escapedText(database));
  const ask =
    schema?.query === undefined
      ? [filled(usualSchemaQuery)]
      : // Only a single statement can be prepared, however a configured text is written.
        [`PREPARE svc_agent FROM ${escapedText(filled(schema.query))}`, 'EXECUTE svc_agent'];
  return [
    ...enginesQuestions(database),
    { name: 'schema', forms: [schema === undefined ? [use] : [use, ...ask]] },
  ];
}

/**
 * Rights that show every table's name and engine if they are granted on a database or on all databases. Rights on single tables
 * do not.
 */
const showing = [
  'SELECT',
  'INSERT',
  'UPDATE',
  'DELETE',
  'CREATE',
  'DROP',
  'REFERENCES',
  'INDEX',
  'ALTER',
  'CREATE VIEW',
  'SHOW VIEW',
  'TRIGGER',
];

const enginesQuestions = (database: string): Question[] => [
  {
    // Only the necessary columns are read: any other column would make the server open every table.
    name: 'engines',
    forms: [
      [
        `SELECT ENGINE AS engine, COUNT(*) AS tables FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = ${escapedText(database)} AND TABLE_TYPE = 'BASE TABLE' GROUP BY ENGINE`,
      ],
    ],
  },
  {
    name: 'tables',
    forms: [
      [
        `SELECT TABLE_NAME AS name FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = ${escapedText(database)} AND TABLE_TYPE = 'BASE TABLE'`,
      ],
    ],
  },
  {
    // The database of a right may be written as a pattern.
    name: 'rights',
    forms: [
      [
        `SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES
    WHERE REPLACE(GRANTEE, '''', '') = CURRENT_USER() AND PRIVILEGE_TYPE IN (${sqlTexts(showing)})
  UNION SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES
    WHERE REPLACE(GRANTEE, '''', '') = CURRENT_USER() AND PRIVILEGE_TYPE IN (${sqlTexts(showing)})
    AND ${escapedText(database)} LIKE TABLE_SCHEMA`,
      ],
    ],
  },
];
