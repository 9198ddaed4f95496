import { type EventEmitter, errorMonitor } from 'node:events';
import type { Socket } from 'node:net';
import { CqlFailure } from './failure.ts';

const firstByteOfAnswers = 0x80;
const newestProtocol = 6;
/** What a look may be sent; the clients of a busy node are a few hundred KB. */
const maxBytes = 16 * 1024 * 1024;

const closed = 'the server closed the connection, which it also does when it has too many';

/** What ends a connection before its time. */
export interface Breaking {
  /** Only ever rejects. */
  readonly broken: Promise<never>;
  /** Rejects it; the first call counts. */
  fail(error: unknown): void;
}

/** The driver waits for an answer for ever if the server goes away while it greets; so the socket is watched. */
function watchEnd(socket: Socket, signal: AbortSignal, fail: Breaking['fail']): void {
  let error: unknown;
  const late = (): void => fail(new CqlFailure('too_slow', 'the answer did not come in time', signal.reason));
  if (signal.aborted) late();
  signal.addEventListener('abort', late, { once: true });
  (socket as EventEmitter).on(errorMonitor, (thrown: unknown) => {
    error = thrown;
  });
  socket.once('close', () => {
    signal.removeEventListener('abort', late);
    fail(error ?? new CqlFailure('reset', closed));
  });
}

/** The driver takes any bytes for a frame, and may wait for gigabytes that the first ones announce. */
function watchBytes(socket: Socket, refuse: (msg: string) => void): void {
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    const version = (chunk[0] ?? 0) - firstByteOfAnswers;
    if (bytes === 0 && (version < 1 || version > newestProtocol))
      refuse(`the answer is not CQL: it begins with the bytes ${chunk.subarray(0, 8).toString('hex')}`);
    bytes += chunk.length;
    if (bytes > maxBytes) refuse(`the answers are over ${maxBytes} bytes`);
  });
}

/** Watches a socket that is open; one on which something else than CQL comes in is destroyed. */
export function watch(socket: Socket, signal: AbortSignal): Breaking {
  let fail: (error: unknown) => void = () => {};
  const broken = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // Whoever waits at that moment is told; mostly nobody does.
  broken.catch(() => {});
  watchEnd(socket, signal, fail);
  watchBytes(socket, (msg) => {
    fail(new CqlFailure('protocol', msg));
    socket.destroy();
  });
  return { broken, fail };
}
