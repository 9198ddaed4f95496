import type { IncomingHttpHeaders } from 'node:http';
import { createGunzip, type Gunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../../core/ports.ts';
import type { Exposition } from '../exposition/page-reader.ts';
import { failureOf, ScrapeFailure } from '../failure.ts';

/** Receives a page chunk by chunk. An exception ends the request. */
export interface PageSink {
  begin(format: Exposition): void;
  write(bytes: Buffer): void;
}

/** `wholeBody`: the transport guarantees that the body is complete. */
export interface Arrival {
  wholeBody: boolean;
}

export interface ExchangeDeps {
  clock: Clock;
  timeoutMs: number;
  sink: PageSink;
  /** Called when the response begins. */
  onAnswer(): void;
  /** Closes a connection that is not open yet. */
  abandon(): void;
}

/** A request and its response, in the form of undici's dispatch. `arrival` rejects with `ScrapeFailure`. */
export interface Exchange {
  handler: Dispatcher.DispatchHandler;
  arrival: Promise<Arrival>;
}

const text = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;

function refuseStatus(status: number, headers: IncomingHttpHeaders): void {
  if (status === 200) return;
  if (status === 508) throw new ScrapeFailure('own_endpoint', 'the target is this agent itself');
  if (status >= 300 && status < 400) {
    const where = text(headers.location) ?? 'nowhere';
    throw new ScrapeFailure('redirect', `the target redirects (${status}) to ${where}`);
  }
  throw new ScrapeFailure('status', `the target answers with status ${status}`);
}

/** A body with a known length, in chunks or with a checksum cannot be cut off unnoticed. */
function isFramed(headers: IncomingHttpHeaders): boolean {
  const framing = ['content-length', 'transfer-encoding', 'content-encoding'];
  return framing.some((name) => headers[name] !== undefined);
}

export function createExchange({ clock, timeoutMs, sink, onAnswer, abandon }: ExchangeDeps): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let decoder: Decoder | undefined;
  let wholeBody = false;
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
      isAnswered = true;
      onAnswer();
      try {
        answered(status, headers);
      } catch (error) {
        fail(error);
      }
    },
    onResponseData(flow, chunk) {
      if (!isSettled && decoder?.write(chunk) === false) flow.pause();
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
 * The format of a Content-Type. A missing or blank one, or `text/plain` without a version, is text 0.0.4, as old
 * exporters send it. Throws `ScrapeFailure` for any other type, such as HTML.
 */
export function expositionOf(contentType: string | undefined): Exposition {
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

/** Decompresses a body on the way to the reader. */
interface Decoder {
  /** False: the sender must pause until `resume` is called. */
  write(chunk: Buffer): boolean;
  /** Ends the body; `done` is called after its last byte was read. */
  end(): void;
  destroy(): void;
}

interface DecoderHooks {
  /** Receives decoded bytes; may throw. */
  take(bytes: Buffer): void;
  resume(): void;
  done(): void;
  fail(error: unknown): void;
}

function plain({ take, done, fail }: DecoderHooks): Decoder {
  return {
    write(chunk) {
      try {
        take(chunk);
      } catch (error) {
        fail(error);
      }
      return true;
    },
    end: done,
    destroy() {},
  };
}

/** Decompresses chunk by chunk, so that a small body that expands to a huge one stops at the reader's limit. */
function gunzip({ take, resume, done, fail }: DecoderHooks): Decoder {
  const stream: Gunzip = createGunzip({ chunkSize: 64 * 1024 });
  stream.on('data', (bytes: Buffer) => {
    if (stream.destroyed) return;
    try {
      take(bytes);
    } catch (error) {
      stream.destroy();
      fail(error);
    }
  });
  stream.on('drain', resume);
  stream.on('end', done);
  stream.on('error', (error: NodeJS.ErrnoException) => {
    const isShort = error.code === 'Z_BUF_ERROR';
    fail(
      isShort
        ? new ScrapeFailure('cut_off', 'the compressed body ends too early', error)
        : new ScrapeFailure('invalid_body', 'the body does not match its Content-Encoding', error),
    );
  });
  return {
    write: (chunk) => stream.write(chunk),
    end: () => stream.end(),
    destroy: () => stream.destroy(),
  };
}

/** The decoder for a Content-Encoding. Throws `ScrapeFailure` for one that was not requested. */
function createDecoder(encoding: string | undefined, hooks: DecoderHooks): Decoder {
  const name = (encoding ?? '').trim().toLowerCase();
  if (name === '' || name === 'identity') return plain(hooks);
  if (name === 'gzip' || name === 'x-gzip') return gunzip(hooks);
  throw new ScrapeFailure(
    'content_encoding',
    `the target answers with Content-Encoding ${JSON.stringify(encoding)}`,
  );
}
