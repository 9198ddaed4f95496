import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../../core/ports.ts';
import type { Exposition } from '../exposition/page-reader.ts';
import { ScrapeFailure } from '../failure.ts';
import { failureOf } from './classify.ts';
import { expositionOf } from './content.ts';
import { createUnpacker, type Unpacker } from './unpack.ts';

/** Takes a page as it comes in. What it throws ends the request. */
export interface PageSink {
  begin(format: Exposition): void;
  write(bytes: Buffer): void;
}

/** How a page came: whether the transport vouches that its last byte is the last. */
export interface Arrival {
  wholeBody: boolean;
}

export interface ExchangeDeps {
  clock: Clock;
  timeoutMs: number;
  sink: PageSink;
  /** Tells that the target has begun to answer. */
  onAnswer(): void;
  /** Ends a connection that is not open yet. */
  giveUp(): void;
}

/** One request and its answer, as undici's dispatch wants to be told. `arrival` rejects with `ScrapeFailure`. */
export interface Exchange {
  handler: Dispatcher.DispatchHandler;
  arrival: Promise<Arrival>;
}

const text = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;

function refuseStatus(status: number, headers: IncomingHttpHeaders): void {
  if (status === 200) return;
  if (status === 508) throw new ScrapeFailure('own_endpoint', 'the target says that it is this agent itself');
  if (status >= 300 && status < 400) {
    const where = text(headers.location) ?? 'nowhere';
    throw new ScrapeFailure('redirect', `the target redirects (${status}) to ${where}`);
  }
  throw new ScrapeFailure('status', `the target answers with status ${status}`);
}

/** A body of known length, in chunks or with a checksum cannot end too early unnoticed. */
function isFramed(headers: IncomingHttpHeaders): boolean {
  const framing = ['content-length', 'transfer-encoding', 'content-encoding'];
  return framing.some((name) => headers[name] !== undefined);
}

export function createExchange({ clock, timeoutMs, sink, onAnswer, giveUp }: ExchangeDeps): Exchange {
  let controller: Dispatcher.DispatchController | undefined;
  let unpacker: Unpacker | undefined;
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
    unpacker?.destroy();
    if (controller === undefined) giveUp();
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
    unpacker = createUnpacker(text(headers['content-encoding']), { take, resume, done, fail });
  };

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      controller = started;
      if (isSettled) started.abort(new ScrapeFailure('too_slow', 'given up before it was sent'));
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
      if (!isSettled && unpacker?.write(chunk) === false) flow.pause();
    },
    onResponseEnd() {
      if (!isSettled) unpacker?.end();
    },
    onResponseError: (_, error) => fail(error),
  };
  return { handler, arrival };
}
