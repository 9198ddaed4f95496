import {
  binlogPosition,
  clusterOf,
  directoriesOf,
  enginesCheck,
  isLeftOut,
  isReadOnly,
  lockWaitsCheck,
  logState,
  mysqlChecks,
  replicationOf,
  semiSyncStatus,
  sourcesOf,
  standbysCheck,
  transactionsCheck,
  variableNames,
} from './mysql-checks.ts';
import { mysqlFault, openSession } from './mysql-connection.ts';
import {
  byName,
  createAsker,
  type MysqlAnswer,
  mysqlNumber,
  type NamedValues,
  type Question,
  type RunStatements,
  sqlName,
  sqlTexts,
} from './mysql-questions.ts';
import { escapedText } from './sql-text.ts';
import {
  type DatabaseReport,
  type LogWriter,
  type PollAnswer,
  type PollRequest,
  type ServerReport,
  type StoreKind,
  type StoreTarget,
  versionIn,
} from './store-report.ts';

/** Servers that speak MySQL's protocol: MySQL itself, MariaDB, and compatible servers. */
export const mysql: StoreKind = {
  async connect(target, _, trace, signal) {
    const session = await openSession(target, trace, signal);
    return {
      tlsNotAfterMs: session.tlsNotAfterMs,
      sessionId: session.id,
      stillOpen: (ids) => stillOpen(session.run, ids),
      poll: createMysqlPoll(session.run, session.announcedVersion, target),
      close: () => session.close(),
    };
  },
  faultOf: mysqlFault,
};

/** A user sees its own sessions without any right. */
async function stillOpen(run: RunStatements, ids: readonly number[]): Promise<number[]> {
  const { results } = await run([
    `SELECT ID AS id FROM information_schema.PROCESSLIST WHERE ID IN (${ids.join(', ')})`,
  ]);
  return (results[0] ?? []).map(({ id }) => Number(id));
}

/** The statements that differ between MySQL and MariaDB. */
interface Flavour {
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

const flavourOf = (version: string): Flavour => (/mariadb/i.test(version) ? mariadbFlavour : mysqlFlavour);

/** How long a poll waits for a lock at most; the next poll tries again. */
const longestLockWaitSeconds = 1;
const mostRows = 1000;

/** Statements that protect the server from the agent, and from a configured statement that writes, hangs or returns too much. */
const sessionQuestions = ({ timeLimit }: Flavour, timeoutMs: number): Question[] =>
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
const statusForms = (tables: readonly string[]) => [
  ...tables.map((table) => [
    `SELECT VARIABLE_NAME AS name, VARIABLE_VALUE AS value, UNIX_TIMESTAMP() AS now
        FROM ${table} WHERE VARIABLE_NAME IN (${sqlTexts(statusNames)})`,
  ]),
  [`SHOW GLOBAL STATUS WHERE Variable_name IN (${sqlTexts(statusNames)})`],
];

const serverQuestions = ({ statusTables, replication, position }: Flavour): Question[] => [
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
const sessionsQuestion = (databases: readonly string[]): Question => {
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

function databaseQuestions(database: string, schema: PollRequest['schema']): Question[] {
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

/** The poll over one connection. It remembers which forms of a question the server supports. */
export function createMysqlPoll(
  run: RunStatements,
  announcedVersion: string,
  { timeoutMs, databases }: Pick<StoreTarget, 'timeoutMs' | 'databases'>,
): (request: PollRequest) => Promise<PollAnswer> {
  let roundTripMs = Number.POSITIVE_INFINITY;
  const ask = createAsker(async (statements) => {
    const startedMs = performance.now();
    const ran = await run(statements);
    roundTripMs = Math.min(roundTripMs, performance.now() - startedMs);
    return ran;
  });
  let flavour = flavourOf(announcedVersion);
  let session = sessionQuestions(flavour, timeoutMs);
  const sessions = sessionsQuestion(databases);

  const askServer = async (others: readonly Question[]): Promise<Record<string, MysqlAnswer>> => {
    const answers = await ask([...session, ...serverQuestions(flavour), ...others, sessions]);
    session = [];
    const { version, comment } = answers.version!.rows?.[0] ?? {};
    const isReally = flavourOf(`${version} ${comment}`);
    // A proxy may announce another version than the server's.
    if (isReally === flavour) return answers;
    flavour = isReally;
    return ask([...sessionQuestions(flavour, timeoutMs), ...serverQuestions(flavour), ...others, sessions]);
  };

  return async ({ database, schema, server }) => {
    roundTripMs = Number.POSITIVE_INFINITY;
    const questions = database === undefined ? [] : databaseQuestions(database, schema);
    const answers = server ? await askServer(questions) : await ask([...session, ...questions]);
    session = [];
    const status = server ? await statusOf(answers.status!, flavour, ask) : undefined;
    return {
      roundTripMs,
      ...(status && { server: serverReport(flavour, answers, status, databases) }),
      database:
        database === undefined
          ? { checks: [] }
          : {
              ...(schema && schemaReport(answers.schema!, database, schema.query)),
              tables: answers.tables!.rows?.map(({ name }) => `${database}.${name}`),
              checks: [enginesCheck(answers.engines!, answers.rights!)],
            },
    };
  };
}

interface Status {
  values: NamedValues;
  /** The server's clock at the same moment, whole seconds since the epoch. */
  nowSeconds?: number;
}

/** Reads the counters. A table of counters may exist and be empty: then the next form is used. */
async function statusOf(
  answer: MysqlAnswer,
  { statusTables }: Flavour,
  ask: (questions: readonly Question[]) => Promise<Record<string, MysqlAnswer>>,
): Promise<Status> {
  let { rows = [] } = answer;
  for (
    let forms = statusForms(statusTables).slice(1);
    rows.length === 0 && forms.length > 0;
    forms = forms.slice(1)
  )
    rows = (await ask([{ name: 'status', forms }])).status!.rows ?? [];
  return { values: byName(rows), nowSeconds: mysqlNumber(rows[0]?.now) };
}

function startedAtMs({ values, nowSeconds }: Status): number | undefined {
  const uptimeSeconds = mysqlNumber(values.get('uptime'));
  if (uptimeSeconds === undefined || nowSeconds === undefined) return undefined;
  return (nowSeconds - uptimeSeconds) * 1000;
}

/**
 * The connections. The server's own threads may be among the running threads, so no more threads count as running than are
 * connected.
 */
function connectionsOf({ values }: Status): ServerReport['connections'] {
  const connected = mysqlNumber(values.get('threads_connected'));
  const running = mysqlNumber(values.get('threads_running'));
  if (connected === undefined || running === undefined) return undefined;
  const busy = Math.min(running, connected);
  return { running: busy, idle: connected - busy };
}

/**
 * The identity of the data: the id of a Galera cluster, because its nodes have the same data; otherwise MySQL's server_uuid,
 * which is in the data directory. MariaDB has no such id: its server_id differs between servers that replicate each other, and
 * its data directory may be the same on servers that do not replicate each other. The host name is not used: a container's host
 * name changes while its data stays.
 */
function serverIdentity(variables: NamedValues, { values }: Status): string | undefined {
  const cluster = clusterOf(values);
  if (cluster !== undefined) return cluster;
  const uuid = variables.get('server_uuid');
  if (uuid) return uuid;
  const [id, directory] = [variables.get('server_id'), variables.get('datadir')];
  return id && directory ? `${id}:${directory}` : undefined;
}

function writerOf(variables: NamedValues, { values }: Status): LogWriter | undefined {
  return clusterOf(values) === undefined ? mysqlNumber(variables.get('server_id')) : 'cluster';
}

function serverReport(
  flavour: Flavour,
  answers: Record<string, MysqlAnswer>,
  status: Status,
  databases: readonly string[],
): ServerReport {
  const { version, comment, user } = answers.version!.rows?.[0] ?? {};
  const variables = byName(answers.variables!.rows ?? []);
  const { replica, channels, checks } = replicationOf(answers.replication!);
  const position = binlogPosition(answers.position!);
  const leavesOut = databases.filter((name) => isLeftOut(answers.position!, name));
  return {
    serverVersion: version ?? '',
    readOnly: isReadOnly(variables),
    replica,
    connections: connectionsOf(status),
    connectionsMax: mysqlNumber(variables.get('max_connections')),
    startedAtMs: startedAtMs(status),
    ...(status.nowSeconds !== undefined && { nowMs: status.nowSeconds * 1000 }),
    identity: serverIdentity(variables, status),
    directories: directoriesOf(variables),
    ...(position && {
      log: {
        ...logState(position, replica, variables.get('gtid_binlog_pos')),
        ...{ leavesOut, writer: writerOf(variables, status) },
      },
    }),
    checks: [
      ...mysqlChecks(variables, leavesOut),
      ...checks,
      ...standbysCheck(variables, status.values),
      transactionsCheck(answers.sessions!, user ?? ''),
      lockWaitsCheck(answers.sessions!, user ?? ''),
    ],
    details: {
      flavour: flavour.name,
      distribution: comment ?? undefined,
      binaryLog: position,
      sources: channels.length > 0 ? channels : undefined,
      follows: sourcesOf(answers.replication!),
      connectionsMaxUsed: mysqlNumber(status.values.get('max_used_connections')),
      connectsAborted: mysqlNumber(status.values.get('aborted_connects')),
    },
  };
}

const noSuchTable = 1146;

/**
 * The report on the schema. A user without permission gets an error about permissions; only a user with permission gets the error
 * that the table does not exist.
 */
function schemaReport(
  answer: MysqlAnswer,
  database: string,
  query: string | undefined,
): Omit<DatabaseReport, 'checks'> {
  if (answer.rows === undefined)
    return answer.errno === noSuchTable
      ? { schemaMissing: answer.unknown }
      : { schemaUnknown: answer.unknown };
  return versionIn(Object.values(answer.rows[0] ?? {})[0], database, query);
}
