import type { Clock } from '../../core/ports.ts';
import type { Trace } from '../connection.ts';
import { type StoreOptions, storeRoles } from './store-options.ts';
import type {
  PollAnswer,
  PollRequest,
  ServerReport,
  StoreConnection,
  StoreKind,
  StoreReport,
  StoreTarget,
} from './store-report.ts';

/**
 * How long a connection is kept. It saves the handshakes and the password's hash at every poll; a new one now and
 * then shows that the store still lets the agent in.
 */
export const keptForMs = 300_000;

/** Time for the store to confirm the end of a session; after that the connection is closed without it. */
const sessionEndMs = 500;

/** Connections kept for one store: each of its databases has one where a connection belongs to a database. */
export const keptAtMost = storeRoles.length;

/** Polls the databases of one store, one at a time. */
export interface StoreServer {
  /**
   * Throws what the kind's `faultOf` explains. `trace` says how far it came; over a kept connection it has no phases of
   * connecting. When the signal aborts, the connection is destroyed.
   */
  poll(
    target: StoreTarget,
    request: Omit<PollRequest, 'server'>,
    trace: Trace,
    signal: AbortSignal,
  ): Promise<StoreReport>;
  close(): Promise<void>;
}

interface KeptConnection {
  connection: StoreConnection;
  end: AbortController;
  openedMs: number;
  /** User and password at that time. */
  login: string;
}

const loginOf = ({ user, password, tls }: StoreTarget) => JSON.stringify([user, password, tls]);

/**
 * The few kept connections of a store, and the server's report of one poll for the databases polled after it within
 * the interval: what concerns the whole server is queried once, whatever the number of its databases.
 */
export function createStoreServer(
  { intervalMs }: Pick<StoreOptions, 'intervalMs'>,
  kind: StoreKind,
  clock: Pick<Clock, 'monotonicMs' | 'after'>,
): StoreServer {
  const connections = createConnections(intervalMs, kind, clock);
  let lastReport: { server: ServerReport; askedFor: string | undefined; atMs: number } | undefined;

  /** A connection that has died meanwhile, or that does not answer in a third of the time, is replaced. */
  const pollKept = async (
    used: KeptConnection,
    request: PollRequest,
    timeoutMs: number,
    trace: Trace,
    signal: AbortSignal,
  ): Promise<PollAnswer | undefined> => {
    const cancel = clock.after(timeoutMs / 3, () => used.end.abort());
    try {
      return await pollOn(used, request, trace, signal);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      return undefined;
    } finally {
      cancel();
    }
  };

  return {
    async poll(target, request, trace, signal) {
      const { database } = request;
      const nowMs = clock.monotonicMs();
      const isReusable =
        lastReport && lastReport.askedFor !== database && nowMs - lastReport.atMs < intervalMs;
      const asked: PollRequest = { ...request, server: !isReusable };
      const taken = connections.takeKept(target, database);
      const overKept = taken && (await pollKept(taken, asked, target.timeoutMs, trace, signal));
      const used = overKept === undefined ? await connections.open(target, database, trace, signal) : taken!;
      const answer = overKept ?? (await pollOn(used, asked, trace, signal));
      await connections.release(used, signal);
      if (answer.server) lastReport = { server: answer.server, askedFor: database, atMs: nowMs };
      const server = answer.server ?? lastReport!.server;
      return {
        ...server,
        ...answer.database,
        checks: [...server.checks, ...answer.database.checks],
        roundTripMs: answer.roundTripMs,
        tlsNotAfterMs: used.connection.tlsNotAfterMs,
      };
    },
    close: connections.close,
  };
}

/** The connections of one store. */
interface StoreConnections {
  /** A kept connection for this database. Ends those that have died, or were opened with another password. */
  takeKept(target: StoreTarget, database: string | undefined): KeptConnection | undefined;
  /** A new connection; if the store is at its limit, once the kept ones are closed. */
  open(
    target: StoreTarget,
    database: string | undefined,
    trace: Trace,
    signal: AbortSignal,
  ): Promise<KeptConnection>;
  /** Keeps the connection for the next poll, or closes it where that would come too late. */
  release(used: KeptConnection, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

function createConnections(
  intervalMs: number,
  kind: StoreKind,
  clock: Pick<Clock, 'monotonicMs'>,
): StoreConnections {
  let kept: KeptConnection[] = [];
  let isClosed = false;

  const connect: StoreConnections['open'] = async (target, database, trace, signal) => {
    const end = new AbortController();
    const openedMs = clock.monotonicMs();
    const connect = () => kind.connect(target, database, trace, end.signal);
    const connection = await whileLinked(signal, end, connect);
    return { connection, end, openedMs, login: loginOf(target) };
  };

  const closeKept = async (signal: AbortSignal): Promise<void> => {
    const all = kept;
    kept = [];
    await Promise.all(all.map((one) => closeOne(one, signal)));
  };

  return {
    takeKept(target, database) {
      const isFit = ({ connection, login }: KeptConnection) => connection.isOpen && login === loginOf(target);
      for (const unfit of kept.filter((one) => !isFit(one))) unfit.end.abort();
      kept = kept.filter(isFit);
      const taken = kept.find(({ connection }) => connection.serves(database));
      kept = kept.filter((one) => one !== taken);
      return taken;
    },
    async open(target, database, trace, signal) {
      try {
        return await connect(target, database, trace, signal);
      } catch (thrown) {
        if (kept.length === 0 || signal.aborted || kind.faultOf(thrown).reason !== 'too_many_connections')
          throw thrown;
        await closeKept(signal);
        return connect(target, database, trace, signal);
      }
    },
    async release(used, signal) {
      const isWorthIt = clock.monotonicMs() + intervalMs < used.openedMs + keptForMs;
      if (isWorthIt && !isClosed && kept.length < keptAtMost && used.connection.isOpen) kept.push(used);
      else await closeOne(used, signal);
    },
    async close() {
      isClosed = true;
      await closeKept(AbortSignal.timeout(sessionEndMs));
    },
  };
}

const closeOne = ({ connection, end }: KeptConnection, signal: AbortSignal) =>
  whileLinked(signal, end, () => connection.close());

/** Polls over a connection; destroys it if that fails. */
async function pollOn(
  { connection, end }: KeptConnection,
  request: PollRequest,
  trace: Trace,
  signal: AbortSignal,
): Promise<PollAnswer> {
  trace.enter('queries');
  try {
    return await whileLinked(signal, end, () => connection.poll(request));
  } catch (thrown) {
    end.abort();
    throw thrown;
  } finally {
    trace.end();
  }
}

/** Aborts `end` when the signal aborts, for as long as the work takes. */
async function whileLinked<T>(signal: AbortSignal, end: AbortController, work: () => Promise<T>): Promise<T> {
  const abort = () => end.abort(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await work();
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
