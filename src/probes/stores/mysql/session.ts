import type { Socket } from 'node:net';
import type { Connection, QueryError } from 'mysql2';
import { formatAddress } from '../../../core/address.ts';
import { connectTo, createTrace, type Trace } from '../../connection/connect.ts';
import { ProbeError } from '../../probe-error.ts';
import type { StoreTarget } from '../store.ts';
import type { Ask, Row } from './answer.ts';
import { greeting } from './greeting.ts';
import { type Inner, type LogIn, preparedLogin } from './login.ts';

/** One statement; rejects as well when something else than its answer ends the connection. */
function askOver(connection: Connection, end: Promise<never>): Ask {
  const asked = (sql: string): Promise<readonly Row[]> =>
    new Promise((resolve, reject) => {
      connection.query(sql, (error: QueryError | null, rows: unknown) => {
        if (error) reject(error);
        // A statement that gives no rows gives a summary instead.
        else resolve(Array.isArray(rows) ? (rows as Row[]) : []);
      });
    });
  return (sql) => Promise.race([asked(sql), end]);
}

/** Takes leave, so that the server does not count an aborted client. */
async function leave(connection: Connection): Promise<void> {
  connection.end(() => {});
  const { stream } = connection as unknown as Inner;
  if (stream.closed) return;
  const closed = new Promise((resolve) => stream.once('close', resolve));
  stream.destroySoon();
  await closed;
}

/** What was not answered, for the sentence on a look that took too long. */
type Waiting = 'no greeting came' | 'the login was not answered' | 'a statement was not answered';

interface Steps {
  socket: Socket;
  trace: Trace;
  logIn: LogIn;
  waitingFor(what: Waiting): void;
}

async function opened({
  socket,
  trace,
  logIn,
  waitingFor,
}: Steps): Promise<{ connection: Connection; ask: Ask }> {
  let broken: (error: Error) => void = () => {};
  const end = new Promise<never>((_, reject) => {
    broken = reject;
  });
  end.catch(() => {});
  socket.setNoDelay();
  trace.enter('first_byte');
  waitingFor('no greeting came');
  await greeting(socket);
  waitingFor('the login was not answered');
  const connection = await Promise.race([logIn({ socket, trace, broken }), end]);
  trace.end();
  waitingFor('a statement was not answered');
  return { connection, ask: askOver(connection, end) };
}

/**
 * Leads work over one connection, logged in. It is left politely when the work is done, destroyed when the work
 * throws or the signal aborts; it has ended when this settles. Throws what befell the connection, what the driver
 * throws, or what the work throws.
 */
export async function withSession<T>(
  target: StoreTarget,
  signal: AbortSignal,
  work: (ask: Ask, trace: Trace) => Promise<T>,
): Promise<T> {
  const trace = createTrace();
  const logIn = await preparedLogin(target);
  const { socket } = await connectTo(target.address, { trace }, signal);
  let waiting: Waiting = 'no greeting came';
  const waitingFor = (what: Waiting): void => {
    waiting = what;
  };
  try {
    const { connection, ask } = await opened({ socket, trace, logIn, waitingFor });
    const done = await work(ask, trace);
    await leave(connection);
    return done;
  } catch (thrown) {
    trace.end();
    if (!signal.aborted) throw thrown;
    const isInTls = trace.phase === 'tls';
    const what = isInTls ? 'the TLS handshake was not finished' : waiting;
    const msg = `${formatAddress(target.address)}: connected, but ${what} in time`;
    throw new ProbeError(isInTls ? 'tls' : 'too_slow', msg, thrown);
  } finally {
    socket.destroy();
  }
}
