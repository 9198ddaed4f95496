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
  sourcesOf,
  standbysCheck,
  transactionsCheck,
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
} from './mysql-questions.ts';
import {
  databaseQuestions,
  type Flavour,
  flavourOf,
  serverQuestions,
  sessionQuestions,
  sessionsQuestion,
  statusForms,
} from './mysql-statements.ts';
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
