import files from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { createSecureContext } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import build from 'undici/lib/core/connect.js';
import Client from 'undici/lib/dispatcher/client.js';
import {
  authorizationOf,
  type ClientAuth,
  type ClientTls,
  type ReadSecret,
  scrapeMarkHeader,
} from '../../core/access.ts';
import { type Address, isLoopback, isWildcard } from '../../core/address.ts';
import { connectionTls, type TlsFileError } from '../../core/client-tls.ts';
import type { Clock } from '../../core/ports.ts';
import { withoutUrlSecrets } from '../../core/redacted.ts';
import { regularFileReader } from '../../core/regular-file.ts';
import { createSlice } from '../../core/slices.ts';
import { excerpt } from '../../core/text-formats.ts';
import type { ScrapeOptions } from './block.ts';
import { createDecoder, type Decoder } from './decoder.ts';
import type { Exposition } from './exposition/page-reader.ts';
import { failureOf, ScrapeFailure } from './scrape-status.ts';
import { readIntoSharedBuffer } from './shared-read-buffer.ts';

export interface FetchDeps {
  clock: Clock;
  readSecret: ReadSecret;
  /** The addresses to which the agent's own listeners are bound now; a target at such an address is refused. */
  ownListeners(): readonly Address[];
  /** Identifies this agent in `scrapeMarkHeader`. */
  mark: string;
}

/** The connection to one target, kept alive between pages. */
interface Fetch {
  /**
   * Requests a page; must not be called again before it settles. Resolves when the sink has the last byte. Rejects with
   * `ScrapeFailure`. The whole request, with the connection, is limited to `timeoutMs`.
   */
  page(sink: PageSink): Promise<Arrival>;
  close(): Promise<void>;
}

export function createFetch(options: ScrapeOptions, deps: FetchDeps): Fetch {
  const { timeoutMs, intervalMs, tls } = options;
  const { clock, ownListeners } = deps;
  const { origin, pathname, search } = new URL(options.url);
  const connect = createConnect({ clock, timeoutMs, tls, ownListeners });
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

  const request = (sink: PageSink, headers: Record<string, string>): Promise<Arrival> => {
    const abandon = (): void => void close();
    const { handler, arrival } = createExchange({ clock, timeoutMs, sink, abandon });
    client ??= createClient();
    client.dispatch({ path: pathname + search, method: 'GET', headers }, handler);
    return arrival;
  };

  return {
    async page(sink) {
      const headers = await requestHeaders(options, deps);
      const before = connections;
      try {
        return await request(sink, headers);
      } catch (error) {
        // The target may close an idle connection just when it is used again. This is not a failure: the request is sent once
        // more. A response that is cut off has another reason.
        const isStale = error instanceof ScrapeFailure && error.reason === 'reset' && connections === before;
        if (!isStale) throw error;
        return await request(sink, headers);
      }
    },
    close,
  };
}

/**
 * The Accept header. Text 0.0.4 is preferred: in OpenMetrics many clients rename their counters (`_total`), while the rules of
 * the catalog use the names that a role registered.
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

/** The headers of a request. Rejects with `ScrapeFailure` if a credential cannot be read. */
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
  // On the same machine compression costs more than it saves.
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  if (!isLoopback(host)) headers['accept-encoding'] = 'gzip';
  const credentials = await authorization(auth, readSecret);
  if (credentials !== undefined) headers.authorization = credentials;
  return headers;
}

interface ScrapeConnectOptions {
  clock: Clock;
  timeoutMs: number;
  tls?: ClientTls;
  /** The addresses to which the agent's own listeners are bound now. */
  ownListeners(): readonly Address[];
}

const readFile = regularFileReader(files);

const tlsOptions = (tls: ClientTls): Promise<object> =>
  connectionTls(tls, { readFile, createSecureContext }).catch((error: TlsFileError) => {
    throw new ScrapeFailure('credentials', error.message, error.cause);
  });

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
 * Opens connections to a target. TLS files are read for each connection, so that renewed certificates are used. A connection that
 * leads to the agent itself is refused.
 */
function createConnect({
  clock,
  timeoutMs,
  tls,
  ownListeners,
}: ScrapeConnectOptions): buildConnector.connector {
  return (target, callback) => {
    const open = (options: object, adopt: (socket: Socket) => void): void => {
      build({ timeout: timeoutMs, ...options } as buildConnector.BuildOptions)(target, (...result) => {
        const [error, socket] = result;
        if (error !== null) callback(error, null);
        else if (isOwn(socket, ownListeners())) {
          socket.destroy();
          const what = `the target ${socket.remoteAddress}:${socket.remotePort} is a listener of this agent`;
          callback(new ScrapeFailure('own_endpoint', what), null);
        } else {
          adopt(socket);
          callback(null, socket);
        }
      });
    };
    if (tls === undefined) {
      const { options, adopt } = readIntoSharedBuffer(createSlice({ sliceMs: 10, clock }));
      open(options, adopt);
    } else {
      // A TLS socket decrypts into its own memory.
      const openTls = (options: object): void => open(options, () => {});
      tlsOptions(tls).then(openTls, (error: Error) => callback(error, null));
    }
  };
}

/** Receives a page chunk by chunk. An exception ends the request. */
interface PageSink {
  begin(format: Exposition): void;
  write(bytes: Buffer): void;
}

/** `wholeBody`: the transport guarantees that the body is complete. */
interface Arrival {
  wholeBody: boolean;
}

interface ExchangeDeps {
  clock: Clock;
  timeoutMs: number;
  sink: PageSink;
  /** Closes a connection that is still being opened. */
  abandon(): void;
}

/** A request and its response, in the form of undici's dispatch. `arrival` rejects with `ScrapeFailure`. */
interface Exchange {
  handler: Dispatcher.DispatchHandler;
  arrival: Promise<Arrival>;
}

const text = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;

function refuseStatus(status: number, headers: IncomingHttpHeaders): void {
  if (status === 200) return;
  if (status === 508) throw new ScrapeFailure('own_endpoint', 'the target is this agent itself');
  if (status >= 300 && status < 400) {
    const where = excerpt(withoutUrlSecrets(text(headers.location) ?? 'nowhere'));
    throw new ScrapeFailure('redirect', `the target redirects (${status}) to ${where}`);
  }
  throw new ScrapeFailure('status', `the target answers with status ${status}`);
}

/** Whether a body cannot be cut off unnoticed: it has a known length, comes in chunks or has a checksum. */
function isFramed(headers: IncomingHttpHeaders): boolean {
  const framing = ['content-length', 'transfer-encoding', 'content-encoding'];
  return framing.some((name) => headers[name] !== undefined);
}

function createExchange({ clock, timeoutMs, sink, abandon }: ExchangeDeps): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let decoder: Decoder | undefined;
  let wholeBody = false;
  /** The number of bytes that are missing from a body with a length. */
  let leftBytes = Number.NaN;
  let isAnswered = false;
  let isSettled = false;
  let succeed: (arrival: Arrival) => void;
  let reject: (failure: ScrapeFailure) => void;
  const arrival = new Promise<Arrival>((...settle) => {
    [succeed, reject] = settle;
  });

  const fail = (thrown: unknown): void => {
    if (isSettled) return;
    isSettled = true;
    cancelTimer();
    const failure = failureOf(thrown, isAnswered);
    decoder?.destroy();
    if (controller === undefined) abandon();
    else controller.abort(failure);
    reject(failure);
  };
  const done = (): void => {
    if (isSettled) return;
    isSettled = true;
    cancelTimer();
    succeed({ wholeBody });
  };
  const cancelTimer = clock.after(timeoutMs, () =>
    fail(new ScrapeFailure('too_slow', `the target has not answered within ${timeoutMs} ms`)),
  );
  const answered = (status: number, headers: IncomingHttpHeaders): void => {
    refuseStatus(status, headers);
    sink.begin(expositionOf(text(headers['content-type'])));
    wholeBody = isFramed(headers);
    leftBytes = Number(headers['content-length']);
    const take = (bytes: Buffer): void => sink.write(bytes);
    const resume = (): void => controller?.resume();
    decoder = createDecoder(text(headers['content-encoding']), { take, resume, done, fail });
  };

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started;
      if (isSettled) started.abort(new ScrapeFailure('too_slow', 'cancelled before the request was sent'));
    },
    onResponseStart(_, status, headers) {
      // An interim response, such as 103 of a proxy, comes before the response.
      if (status < 200) return;
      isAnswered = true;
      try {
        answered(status, headers);
      } catch (error) {
        fail(error);
      }
    },
    onResponseData(flow, chunk) {
      leftBytes -= chunk.length;
      // A pause after the last byte would leave the response open until the decoder has caught up, and the response would fail if
      // the sender closed the connection meanwhile.
      if (!isSettled && decoder?.write(chunk) === false && leftBytes !== 0) flow.pause();
    },
    onResponseEnd() {
      if (!isSettled) decoder?.end();
    },
    onResponseError: (_, error) => fail(error),
  };
  return { handler, arrival };
}

const versions: Readonly<Record<string, { format: Exposition; versions: readonly string[] }>> = {
  'text/plain': { format: 'text', versions: ['0.0.4', '1.0.0'] },
  'application/openmetrics-text': { format: 'openmetrics', versions: ['0.0.1', '1.0.0'] },
};

/**
 * The format of a Content-Type. A missing or blank type, or `text/plain` without a version, is text 0.0.4, as old exporters send
 * it. Throws `ScrapeFailure` for any other type, such as HTML.
 */
function expositionOf(contentType: string | undefined): Exposition {
  const [type, ...parameters] = (contentType ?? '').split(';').map((part) => part.trim());
  if (type === '' || type === undefined) return 'text';
  const known = versions[type.toLowerCase()];
  const version = parameters
    .map((parameter) => /^version="?([^"]*)"?$/i.exec(parameter)?.[1])
    .find((value) => value !== undefined);
  if (known === undefined || (version !== undefined && !known.versions.includes(version))) {
    throw new ScrapeFailure(
      'content_type',
      `the target answers with ${JSON.stringify(contentType)}, not with metrics; set the path of its metrics`,
    );
  }
  return known.format;
}
