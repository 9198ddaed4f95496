import type { buildConnector, Client, Dispatcher } from 'undici';
import type { Trace } from '../connection/connect.ts';
import { connectTo } from '../connection/connect.ts';
import { ProbeError } from '../probe-error.ts';
import { failureOf } from './failure.ts';

export interface Answer {
  status: number;
  /** By its name in lower case; the first of several. */
  header(name: string): string | undefined;
  body: Buffer;
}

/** One connection to one origin, kept from request to request; opened again when the server has closed it. */
export interface Connection {
  /** Follows no redirect. Throws ProbeError, soon after the signal aborts too. */
  get(path: string, headers: Readonly<Record<string, string>>): Promise<Answer>;
  close(): Promise<void>;
}

export interface ConnectionOptions {
  /** Scheme, host and port. */
  origin: string;
  /** File of certificates to trust instead of the usual ones. */
  caFile?: string;
  /** Bytes of an answer's body that are taken at most. */
  maxBytes: number;
}

export interface ConnectionDeps {
  /** Is told of each step. */
  trace: Trace;
  /** Ends all of it. */
  signal: AbortSignal;
}

/** Loads the HTTP client; connects with the first request. */
export async function openConnection(options: ConnectionOptions, deps: ConnectionDeps): Promise<Connection> {
  const { default: HttpClient } = await import('undici/lib/dispatcher/client.js');
  const client = new HttpClient(options.origin, {
    pipelining: 1,
    // The signal bounds the whole of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: dialling(options, deps),
  });
  return {
    get: (path, headers) => exchange(client, { path, method: 'GET', headers }, options.maxBytes, deps),
    close: () => client.destroy(null),
  };
}

function dialling({ origin, caFile }: ConnectionOptions, deps: ConnectionDeps): buildConnector.connector {
  const { protocol, hostname, port } = new URL(origin);
  const tls = protocol === 'https:' ? { caFile } : undefined;
  const host = hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: Number(port) || (tls ? 443 : 80) };
  return (_, callback) => {
    connectTo(address, { tls, protocols: tls && ['http/1.1'], trace: deps.trace }, deps.signal).then(
      ({ socket }) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

function exchange(
  client: Client,
  request: Dispatcher.DispatchOptions,
  maxBytes: number,
  { trace, signal }: ConnectionDeps,
): Promise<Answer> {
  const late = new ProbeError('too_slow', 'the object store has not answered in time');
  if (signal.aborted) return Promise.reject(late);
  let controller: Dispatcher.DispatchController | undefined;
  // As long as there is no connection, it is the dialling that ends, and says how far it came.
  const abort = (): void => controller?.abort(late);
  signal.addEventListener('abort', abort, { once: true });
  const answer = new Promise<Answer>((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let head: Pick<Answer, 'status' | 'header'>;
    client.dispatch(request, {
      onRequestStart(started) {
        controller = started;
        trace.enter('first_byte');
        if (signal.aborted) started.abort(late);
      },
      onResponseStart(_, status, headers) {
        trace.enter('body');
        head = { status, header: (name) => [headers[name] ?? []].flat()[0] };
      },
      onResponseData(flow, chunk) {
        size += chunk.length;
        if (size <= maxBytes) chunks.push(chunk);
        else flow.abort(new ProbeError('too_large', `the answer has more than ${maxBytes} bytes`));
      },
      onResponseEnd: () => resolve({ ...head, body: Buffer.concat(chunks) }),
      onResponseError: (_, error) => reject(signal.aborted && controller ? late : failureOf(error)),
    });
  });
  return answer.finally(() => {
    signal.removeEventListener('abort', abort);
    trace.end();
  });
}
