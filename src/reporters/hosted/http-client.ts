import files from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import build from 'undici/lib/core/connect.js';
import Client from 'undici/lib/dispatcher/client.js';
import {
  authorizationOf,
  type ClientAuth,
  type ClientTls,
  type ReadSecret,
  type Secret,
} from '../../core/access.ts';
import { connectionTls, type TlsFileError } from '../../core/client-tls.ts';
import { errorText, networkFault, systemCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { HostedFailureReason } from '../../core/reasons.ts';
import { regularFileReader } from '../../core/regular-file.ts';
import type { HostedOptions } from '../block.ts';
import type { ReceiverAnswer } from './protocol.ts';

interface HttpClientDeps {
  clock: Clock;
  readSecret: ReadSecret;
  version: string;
}

/** One connection to the receiver; one request at a time. */
export interface HttpClient {
  /** Posts a body. Rejects with `HostedFailure` if there is no complete response within the configured timeout. */
  post(body: Buffer, headers: Readonly<Record<string, string>>): Promise<ReceiverAnswer>;
  /** Closes the connection and aborts a request that is in progress. */
  close(): Promise<void>;
}

/** How many bytes of a response's body are collected; the rest is read and discarded. */
const mostAnswerBytes = 65_536;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Collects a response from undici's callbacks. */
function handlerOf(
  succeed: (answer: ReceiverAnswer) => void,
  fail: (error: unknown) => void,
): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = [];
  let keptBytes = 0;
  let status = 0;
  let headers: Headers = {};
  const header = (name: string): string | undefined => {
    const value = headers[name];
    return Array.isArray(value) ? value[0] : value;
  };
  return {
    onRequestStart() {},
    onResponseStart(_, answeredStatus, answeredHeaders) {
      status = answeredStatus;
      headers = answeredHeaders as Headers;
    },
    onResponseData(_, chunk) {
      const kept = chunk.subarray(0, mostAnswerBytes - keptBytes);
      keptBytes += kept.length;
      if (kept.length > 0) chunks.push(kept);
    },
    onResponseEnd: () => succeed({ status, header, body: Buffer.concat(chunks) }),
    onResponseError: (_, error) => fail(error),
  };
}

export function createHttpClient(
  options: HostedOptions,
  { clock, readSecret, version }: HttpClientDeps,
): HttpClient {
  const { timeoutMs, tls } = options;
  const { origin, pathname, search } = new URL(options.endpoint);
  const path = pathname + search;
  const connect = createConnect(timeoutMs, tls);
  let client: Client | undefined;
  let isClosed = false;

  const disconnect = async (): Promise<void> => {
    const closing = client;
    client = undefined;
    await closing?.destroy(null);
  };
  const request = (body: Buffer, headers: Record<string, string>): Promise<ReceiverAnswer> =>
    new Promise((resolve, reject) => {
      const slow = () => new HostedFailure('too_slow', `no complete response within ${timeoutMs} ms`);
      const cancel = clock.after(timeoutMs, () => reject(slow()));
      const succeed = (answer: ReceiverAnswer): void => {
        cancel();
        resolve(answer);
      };
      const fail = (error: unknown): void => {
        cancel();
        reject(hostedFailure(error));
      };
      client ??= new Client(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect });
      client.dispatch({ path, method: 'POST', headers, body }, handlerOf(succeed, fail));
    });

  return {
    async post(body, headers) {
      if (isClosed) throw new HostedFailure('failed', 'the reporter was stopped');
      const configured = await configuredHeaders(options, readSecret);
      try {
        return await request(body, { ...configured, ...headers, 'user-agent': `svc-agent/${version}` });
      } catch (error) {
        // The connection may be in any state. A new connection also resolves the name again.
        void disconnect();
        throw error;
      }
    },
    async close() {
      isClosed = true;
      await disconnect();
    },
  };
}

const readFile = regularFileReader(files);

const tlsOptions = (tls: ClientTls): Promise<object> =>
  connectionTls(tls, { readFile, createSecureContext }).catch((error: TlsFileError) => {
    throw new HostedFailure('credentials', error.message, error.cause);
  });

/** Opens connections. TLS files are read for each connection, so that a renewed certificate is used. */
function createConnect(timeoutMs: number, tls: ClientTls | undefined): buildConnector.connector {
  return (target, callback) => {
    const open = (options: object): void =>
      build({ timeout: timeoutMs, ...options } as buildConnector.BuildOptions)(target, callback);
    if (tls === undefined) open({});
    else tlsOptions(tls).then(open, (error: Error) => callback(error, null));
  };
}

/** Headers that the protocol sets; the configuration cannot override them. */
const reserved: ReadonlySet<string> = new Set([
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'connection',
  'host',
  'user-agent',
  'x-prometheus-remote-write-version',
]);

/**
 * The headers that the configuration adds to each request. Secrets are read again each time. Rejects with `HostedFailure`
 * (`credentials`) if a secret cannot be read.
 */
async function configuredHeaders(
  { headers, auth }: { headers: Readonly<Record<string, Secret>>; auth?: ClientAuth },
  readSecret: ReadSecret,
): Promise<Record<string, string>> {
  const read: Record<string, string> = {};
  try {
    for (const [name, secret] of Object.entries(headers)) {
      const lower = name.toLowerCase();
      if (!reserved.has(lower)) read[lower] = (await readSecret(secret)).trim();
    }
    const credentials = await authorizationOf(auth, readSecret);
    if (credentials !== undefined) read.authorization = credentials;
  } catch (error) {
    throw new HostedFailure('credentials', 'cannot read the credentials of hostedmetrics', error);
  }
  return read;
}

/** Why there was no response. */
export class HostedFailure extends Error {
  readonly reason: HostedFailureReason;

  constructor(reason: HostedFailureReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'HostedFailure';
    this.reason = reason;
  }
}

/** A `HostedFailure` for anything that a request throws. */
export function hostedFailure(thrown: unknown): HostedFailure {
  if (thrown instanceof HostedFailure) return thrown;
  const text = errorText(thrown) || (systemCode(thrown) ?? '');
  return new HostedFailure(networkFault(thrown) ?? 'failed', text, thrown);
}

/**
 * The time of a `Retry-After` header (RFC 9110, 10.2.3), seconds or date, as ms from now; undefined for anything else. A past
 * date is 0.
 */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Only the format of RFC 9110 is accepted: Date.parse accepts almost anything.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
