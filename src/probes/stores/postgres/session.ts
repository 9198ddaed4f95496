import type { Socket } from 'node:net';
import pg from 'pg';
import { errorText } from '../../../core/errors.ts';
import { usualStoreUser } from '../options.ts';
import type { StoreTarget } from '../store.ts';
import { endsSession, sqlStateOf } from './fault.ts';
import { forDriver, openSocket } from './socket.ts';

export type Row = Readonly<Record<string, unknown>>;

/** Rows, or why there are none: too few rights, a table or a function that is not there. */
export type Answer = { rows: readonly Row[] } | { unknown: string };

export interface Session {
  /** A statement of ours. Throws only when the session is at its end. */
  ask(sql: string): Promise<Answer>;
  /** A statement that somebody configured; only one, however it is written. */
  askConfigured(sql: string): Promise<Answer>;
  roundTripMs: number;
  tlsNotAfterMs?: number;
  phasesMs: Readonly<Record<string, number>>;
}

const usualDatabase = 'postgres';
const usualTimeoutMs = 10_000;
/** Whoever holds a lock goes first: we ask again soon. */
const longestLockWaitMs = 1000;

/**
 * Leads one read-only transaction over one connection. It is a transaction, and what it sets is set for it alone,
 * so that nothing of it stays behind in a connection that a pooler hands on.
 */
export async function withSession<T>(
  target: StoreTarget,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const { socket, trace } = await openSocket(target, signal);
  /** Why the connection broke between two statements: the next one is only told that it did. */
  let broken: unknown;
  try {
    const client = clientOver(socket, target);
    client.on('error', (thrown) => {
      broken ??= thrown;
    });
    trace.enter('first_byte');
    await client.connect();
    await begin(client, Math.min(target.timeoutMs ?? usualTimeoutMs, 2 ** 31 - 1));
    trace.end();
    const roundTripMs = await roundTrip(client);
    const { tlsNotAfterMs, phasesMs } = trace;
    const done = await work({ ...questions(client), roundTripMs, tlsNotAfterMs, phasesMs });
    // A pooler closes its own connection when a client goes in the middle of a transaction.
    await client.query('COMMIT');
    await client.end();
    return done;
  } catch (thrown) {
    throw sqlStateOf(thrown) === undefined ? (broken ?? thrown) : thrown;
  } finally {
    socket.destroy();
  }
}

function clientOver(socket: Socket, { address, user, password, database }: StoreTarget): pg.Client {
  return new pg.Client({
    stream: () => forDriver(socket),
    // We have seen to TLS; without this the environment would be asked.
    ssl: false,
    host: address.host,
    port: address.port,
    user: user ?? usualStoreUser,
    // A function, for otherwise the environment and files of the home directory would be asked.
    password: () => password ?? '',
    database: database ?? usualDatabase,
    application_name: 'svc-agent',
  });
}

async function begin(client: pg.Client, timeoutMs: number): Promise<void> {
  await client.query(
    `BEGIN READ ONLY; SET LOCAL statement_timeout = ${Math.ceil(timeoutMs)};` +
      ` SET LOCAL lock_timeout = ${longestLockWaitMs};` +
      ` SET LOCAL idle_in_transaction_session_timeout = ${Math.ceil(timeoutMs)}`,
  );
}

async function roundTrip(client: pg.Client): Promise<number> {
  const startedMs = performance.now();
  await client.query('SELECT 1');
  return performance.now() - startedMs;
}

function questions(client: pg.Client): Pick<Session, 'ask' | 'askConfigured'> {
  /** A statement that fails would end the transaction for those after it, so each has a point to go back to. */
  const guarded = async (asking: () => Promise<readonly Row[]>): Promise<Answer> => {
    try {
      return { rows: await asking() };
    } catch (thrown) {
      if (endsSession(thrown)) throw thrown;
      await client.query('ROLLBACK TO SAVEPOINT question');
      return { unknown: `${errorText(thrown)} (${sqlStateOf(thrown)})` };
    }
  };
  return {
    ask: (sql) =>
      guarded(async () => {
        const results = await client.query(`SAVEPOINT question; ${sql}; RELEASE SAVEPOINT question`);
        // One result for each statement, which the driver's types do not know.
        return (results as unknown as { rows: Row[] }[])[1]!.rows;
      }),
    askConfigured: (sql) =>
      guarded(async () => {
        await client.query('SAVEPOINT question');
        const { rows } = await client.query({
          text: sql,
          queryMode: 'extended',
          rowMode: 'array',
        } as pg.QueryArrayConfig);
        await client.query('RELEASE SAVEPOINT question');
        return rows.map(([first]) => ({ first }));
      }),
  };
}
