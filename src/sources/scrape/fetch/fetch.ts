import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import build from 'undici/lib/core/connect.js';
import Client from 'undici/lib/dispatcher/client.js';
import {
  authorizationOf,
  type ClientAuth,
  type ClientTls,
  type ReadSecret,
  scrapeMarkHeader,
} from '../../../core/access.ts';
import { type Address, isLoopback, isWildcard } from '../../../core/address.ts';
import type { Clock } from '../../../core/ports.ts';
import { ScrapeFailure } from '../failure.ts';
import type { ScrapeOptions } from '../options.ts';
import { type Arrival, createExchange, type PageSink } from './response.ts';

export interface FetchDeps {
  clock: Clock;
  readSecret: ReadSecret;
  /** The agent's own listeners as bound now; a target among them is refused. */
  ownListeners(): readonly Address[];
  /** Identifies this agent in `scrapeMarkHeader`. */
  mark: string;
}

/** The connection to one target, kept alive between pages. */
export interface Fetch {
  /**
   * Requests a page; not called again before it settles. Resolves when the sink has the last byte. Rejects with
   * `ScrapeFailure`. The whole request, with the connection, is limited to `timeoutMs`.
   */
  page(sink: PageSink): Promise<Arrival>;
  close(): Promise<void>;
}

export function createFetch(options: ScrapeOptions, deps: FetchDeps): Fetch {
  const { timeoutMs, intervalMs, tls } = options;
  const { clock, ownListeners } = deps;
  const { origin, pathname, search } = new URL(options.url);
  const connect = createConnect({ timeoutMs, tls, ownListeners });
  let connections = 0;
  let client: Client | undefined;

  const createClient = (): Client =>
    new Client(origin, {
      pipelining: 1,
      // The exchange has one timer for the whole request.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: intervalMs * 2,
      connect: (target, callback) => {
        connections++;
        connect(target, callback);
      },
    });

  const close = async (): Promise<void> => {
    const closing = client;
    client = undefined;
    await closing?.destroy(null);
  };

  const request = (
    sink: PageSink,
    headers: Record<string, string>,
    onAnswer: () => void,
  ): Promise<Arrival> => {
    const abandon = (): void => void close();
    const { handler, arrival } = createExchange({ clock, timeoutMs, sink, onAnswer, abandon });
    client ??= createClient();
    client.dispatch({ path: pathname + search, method: 'GET', headers }, handler);
    return arrival;
  };

  return {
    async page(sink) {
      const headers = await requestHeaders(options, deps);
      const before = connections;
      let isAnswered = false;
      const onAnswer = (): void => {
        isAnswered = true;
      };
      try {
        return await request(sink, headers, onAnswer);
      } catch (error) {
        // The target may close an idle connection just when it is used again. That is not a failure: try once more.
        const isStale = error instanceof ScrapeFailure && error.reason === 'reset' && connections === before;
        if (!isStale || isAnswered) throw error;
        return await request(sink, headers, onAnswer);
      }
    },
    close,
  };
}

/**
 * Text 0.0.4 is preferred: in OpenMetrics many clients rename their counters (`_total`), while the rules of the
 * catalog use the names that a role registered.
 */
const accept =
  'text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,*/*;q=0.1';

async function authorization(
  auth: ClientAuth | undefined,
  readSecret: ReadSecret,
): Promise<string | undefined> {
  try {
    return await authorizationOf(auth, readSecret);
  } catch (error) {
    throw new ScrapeFailure('credentials', 'the credentials of the scrape cannot be read', error);
  }
}

/** Rejects with `ScrapeFailure` if a credential cannot be read. */
async function requestHeaders(
  { url, timeoutMs, auth }: ScrapeOptions,
  { mark, readSecret }: { mark: string; readSecret: ReadSecret },
): Promise<Record<string, string>> {
  const headers: Record<string, string> = {
    accept,
    'user-agent': 'svc-agent',
    'x-prometheus-scrape-timeout-seconds': String(timeoutMs / 1000),
    [scrapeMarkHeader]: mark,
  };
  // On the same machine compression costs more than the bytes it saves.
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  if (!isLoopback(host)) headers['accept-encoding'] = 'gzip';
  const credentials = await authorization(auth, readSecret);
  if (credentials !== undefined) headers.authorization = credentials;
  return headers;
}

export interface ConnectOptions {
  timeoutMs: number;
  tls?: ClientTls;
  /** The agent's own listeners as they are bound now. */
  ownListeners(): readonly Address[];
}

async function tlsOptions(tls: ClientTls): Promise<object> {
  const { caFile, certFile, keyFile } = tls;
  const read = (path: string | undefined) => (path === undefined ? undefined : readFile(path));
  try {
    const [ca, cert, key] = await Promise.all([read(caFile), read(certFile), read(keyFile)]);
    return { ca, cert, key, servername: tls.serverName, rejectUnauthorized: tls.insecure !== true };
  } catch (error) {
    throw new ScrapeFailure('credentials', `a TLS file cannot be read: ${String(error)}`, error);
  }
}

/** Whether the remote end of a connection is one of the agent's own listeners. */
function isOwn(socket: Socket, listeners: readonly Address[]): boolean {
  const remote = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const local = (socket.localAddress ?? '').replace(/^::ffff:/, '');
  if (!isLoopback(remote) && remote !== local) return false;
  return listeners.some(
    ({ host, port }) =>
      port === socket.remotePort &&
      (isWildcard(host) || host === remote || (isLoopback(host) && isLoopback(remote))),
  );
}

/**
 * Opens connections to a target. TLS files are read for each one, so that renewed certificates are used. A
 * connection that leads to the agent itself is refused.
 */
export function createConnect({ timeoutMs, tls, ownListeners }: ConnectOptions): buildConnector.connector {
  return (target, callback) => {
    const open = (options: object): void => {
      build({ timeout: timeoutMs, ...options } as buildConnector.BuildOptions)(target, (...result) => {
        const [error, socket] = result;
        if (error === null && isOwn(socket, ownListeners())) {
          socket.destroy();
          const what = `the target ${socket.remoteAddress}:${socket.remotePort} is a listener of this agent`;
          callback(new ScrapeFailure('own_endpoint', what), null);
        } else callback(...result);
      });
    };
    if (tls === undefined) open({});
    else tlsOptions(tls).then(open, (error: Error) => callback(error, null));
  };
}
