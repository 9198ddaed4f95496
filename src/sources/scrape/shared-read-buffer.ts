import type { OnReadOpts, Socket } from 'node:net';
import type { Slice } from '../../core/slices.ts';

/** The size of a read, several times what a socket reads at once by default: fewer calls for a page of megabytes. */
const readBytes = 256 * 1024;

let shared: Buffer | undefined;

/**
 * Lets connections read into one shared buffer, which holds a chunk only while the chunk is delivered. A socket usually allocates
 * 64 KiB outside the heap for each read: a page of 14 MB then costs a collection of the whole heap, which takes as long as
 * reading the page. `options` are for `net.connect` (its `onread`), `adopt` is for the socket that `net.connect` returned.
 *
 * The reader of the socket gets a view of the buffer, valid until the `readable` event has been handled. Bytes that are needed
 * for longer must be copied. A chunk that the handlers of that event leave unread is copied here.
 *
 * A socket is read to its end in one turn of the event loop: up to 8 MB of a fast sender. Once the slice is used up, the next
 * bytes and the end of the connection wait in the kernel for a later turn.
 */
export function readIntoSharedBuffer(slice: Slice): {
  options: { onread: OnReadOpts };
  adopt(socket: Socket): void;
} {
  shared ??= Buffer.allocUnsafeSlow(readBytes);
  let unread: Buffer | undefined;

  function deliver(this: Socket, bytes: number, buffer: Uint8Array): boolean {
    const chunk = (buffer as Buffer).subarray(0, bytes);
    // Bytes that are queued come first.
    if (this.readableLength > 0) return this.push(Buffer.from(chunk));
    unread = chunk;
    this.emit('readable');
    if (unread !== undefined) {
      unread = undefined;
      return this.push(Buffer.from(chunk));
    }
    if (!slice.isOver()) return true;
    void slice.next().then(() => this.destroyed || this.resume());
    return false;
  }

  return {
    options: { onread: { buffer: shared, callback: deliver as OnReadOpts['callback'] } },
    adopt(socket) {
      const read = socket.read.bind(socket);
      const unshift = socket.unshift.bind(socket);
      socket.read = (size) => {
        if (unread === undefined || size !== undefined) return read(size);
        const chunk = unread;
        unread = undefined;
        return chunk;
      };
      socket.unshift = (chunk, encoding) =>
        unshift(typeof chunk === 'string' ? chunk : Buffer.from(chunk), encoding);
    },
  };
}
