import type { Clock } from '../../core/ports.ts';
import type { Trace } from '../connection.ts';
import { ProbeError } from '../probe.ts';
import type { StoreOptions } from './store-options.ts';
import type {
  PollAnswer,
  PollRequest,
  ServerReport,
  StoreConnection,
  StoreKind,
  StoreReport,
  StoreTarget,
} from './store-report.ts';

/** How long the store may take to confirm the end of a session; after that the connection is closed without the confirmation. */
const sessionEndMs = 500;

/**
 * How many sessions may be left on a server that hangs. It notices the end of a session only once the statement ends, so that each
 * poll would leave one more, until the agent has used up the connections of its account or of the service.
 */
const mostLeft = 3;

/** Polls the databases of one store, one at a time. */
export interface StoreServer {
  /**
   * Opens a session, polls, and ends the session. Throws errors that the kind's `faultOf` explains. `trace` shows how far it
   * came. When the signal aborts, the connection is destroyed.
   */
  poll(
    target: StoreTarget,
    request: Omit<PollRequest, 'server'>,
    trace: Trace,
    signal: AbortSignal,
  ): Promise<StoreReport>;
}

/**
 * Creates the server of a store. Each poll logs in again. A session that stayed open would continue even if nothing new could
 * connect, because the server does not accept connections, the role may not log in, or the address leads to another server; and
 * it would prevent a database from being renamed. The server's report of one poll is used for all databases that are polled
 * within the interval after it, so that what concerns the whole server is queried only once, whatever the number of its
 * databases.
 */
export function createStoreServer(
  { intervalMs }: Pick<StoreOptions, 'intervalMs'>,
  kind: StoreKind,
  clock: Pick<Clock, 'monotonicMs' | 'after'>,
): StoreServer {
  let lastReport:
    | { server: ServerReport; askedFor: string | undefined; atMs: number; answeredMs: number }
    | undefined;
  /** Sessions that the server still had when the agent last asked, although their polls are over. */
  let left: readonly number[] = [];

  /** Refuses to ask a server that still has too many earlier sessions of the agent. */
  const expectFew = async (connection: StoreConnection) => {
    if (left.length > 0) left = (await connection.stillOpen?.(left)) ?? [];
    if (left.length < mostLeft) return;
    await connection.close();
    throw new ProbeError(
      'too_slow',
      `the server is still busy with ${left.length} earlier statements of the agent, which got no answer`,
    );
  };

  return {
    async poll(target, request, trace, signal) {
      const { database } = request;
      const nowMs = clock.monotonicMs();
      const isReusable =
        lastReport && lastReport.askedFor !== database && nowMs - lastReport.atMs < intervalMs;
      const asked: PollRequest = { ...request, server: !isReusable };
      const end = new AbortController();
      const limit = AbortSignal.any([signal, end.signal]);
      const connection = await kind.connect(target, database, trace, limit);
      try {
        await expectFew(connection);
        const answer = await pollOn(connection, asked, trace);
        const cancel = clock.after(sessionEndMs, () => end.abort());
        await connection.close().finally(cancel);
        const answeredMs = clock.monotonicMs();
        if (answer.server)
          lastReport = { server: answer.server, askedFor: database, atMs: nowMs, answeredMs };
        const { server, atMs } = lastReport!;
        return {
          ...server,
          askedAtMonotonicMs: atMs,
          answeredAtMonotonicMs: lastReport!.answeredMs,
          ...answer.database,
          checks: [...server.checks, ...answer.database.checks],
          roundTripMs: answer.roundTripMs,
          tlsNotAfterMs: connection.tlsNotAfterMs,
        };
      } catch (thrown) {
        const { sessionId } = connection;
        if (signal.aborted && sessionId !== undefined) left = [...left, sessionId];
        throw thrown;
      } finally {
        // Connections that are not closed by now are destroyed.
        end.abort();
      }
    },
  };
}

async function pollOn(connection: StoreConnection, request: PollRequest, trace: Trace): Promise<PollAnswer> {
  trace.enter('queries');
  try {
    return await connection.poll(request);
  } finally {
    trace.end();
  }
}
