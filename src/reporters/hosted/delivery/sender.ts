import type { Dispatcher } from 'undici';
import Client from 'undici/lib/dispatcher/client.js';
import type { ReadSecret } from '../../../core/access.ts';
import type { Clock } from '../../../core/ports.ts';
import type { Answer } from '../batch.ts';
import type { HostedOptions } from '../options.ts';
import { createConnect } from './connect.ts';
import { failureOf, HostedFailure } from './failure.ts';
import { configuredHeaders } from './request-headers.ts';

export interface SenderDeps {
  clock: Clock;
  readSecret: ReadSecret;
  version: string;
}

/** One connection to the hosted platform; one request at a time. */
export interface Sender {
  /** Posts a body. Rejects with `HostedFailure` when there is no whole answer within the configured time. */
  post(body: Buffer, headers: Readonly<Record<string, string>>): Promise<Answer>;
  /** Ends the connection, and a request under way with it. */
  close(): Promise<void>;
}

/** Of an answer's body only this much is kept; the rest is read and passed over. */
const mostAnswerBytes = 65_536;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Gathers an answer as undici hands it in. */
function handlerOf(
  succeed: (answer: Answer) => void,
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

export function createSender(options: HostedOptions, { clock, readSecret, version }: SenderDeps): Sender {
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
  const request = (body: Buffer, headers: Record<string, string>): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const slow = () => new HostedFailure('too_slow', `no whole answer within ${timeoutMs} ms`);
      const cancel = clock.after(timeoutMs, () => reject(slow()));
      const succeed = (answer: Answer): void => {
        cancel();
        resolve(answer);
      };
      const fail = (error: unknown): void => {
        cancel();
        reject(failureOf(error));
      };
      client ??= new Client(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect });
      client.dispatch({ path, method: 'POST', headers, body }, handlerOf(succeed, fail));
    });

  return {
    async post(body, headers) {
      if (isClosed) throw new HostedFailure('failed', 'the reporter has ended');
      const configured = await configuredHeaders(options, readSecret);
      try {
        return await request(body, { ...configured, ...headers, 'user-agent': `svc-agent/${version}` });
      } catch (error) {
        // Whatever state the connection is in; the next one also looks the name up again.
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
