import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock, Drops } from '../../core/ports.ts';

/** An answer that leaves in pieces. Pieces wait in memory until the reader takes them. */
export interface Body {
  write(piece: Uint8Array): void;
  end(): void;
  /** Breaks off, so that the reader sees an incomplete answer, never a short one. */
  cut(): void;
  /** True once it was delivered whole or can no longer be. */
  readonly done: boolean;
}

/** The answer to one request; a HEAD request gets the head alone. */
export interface Reply {
  /** Answers at once. */
  send(status: number, body: string | Uint8Array, headers?: OutgoingHttpHeaders): void;
  /** Starts an answer in pieces. */
  open(status: number, headers?: OutgoingHttpHeaders): Body;
  /** True once the head was sent. */
  readonly begun: boolean;
  /** True once nobody waits for the answer any more. */
  readonly gone: boolean;
}

export interface ReplyDeps {
  clock: Clock;
  drops: Drops;
}

const always: OutgoingHttpHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/**
 * A reply over Node's response. A reader that has not taken everything `writeMs` after the first byte was
 * ready is cut off and counted `slow_reader`, however steadily it drips.
 */
export function createReply(response: ServerResponse, writeMs: number, { clock, drops }: ReplyDeps): Reply {
  let closed = false;
  let cancel = (): void => {};
  response.once('close', () => {
    closed = true;
    cancel();
  });
  // A reader that leaves in the middle is no error of ours; 'close' tells.
  response.on('error', () => {});

  const begin = (status: number, headers: OutgoingHttpHeaders): void => {
    response.writeHead(status, { ...always, ...headers });
    cancel = clock.after(writeMs, () => {
      drops.count('pull', 'slow_reader');
      response.destroy();
    });
  };

  return {
    send(status, body, headers) {
      if (closed) return;
      const text = { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(body) };
      begin(status, { ...text, ...headers });
      response.end(body);
    },
    open(status, headers = {}) {
      if (!closed) begin(status, headers);
      return {
        write: (piece) => void (closed || response.write(piece)),
        end: () => void (closed || response.end()),
        cut: () => void response.destroy(),
        get done() {
          return closed;
        },
      };
    },
    get begun() {
      return response.headersSent;
    },
    get gone() {
      return closed;
    },
  };
}
