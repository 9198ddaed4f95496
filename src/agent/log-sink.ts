import { closeSync, openSync, writeSync } from 'node:fs';
import { systemCode } from '../core/errors.ts';

/** Where the entries of the agent's own log go. */
export interface LogSink {
  /** Writes one entry, with its line feed, at once. Never throws. */
  write(entry: string): void;
  /** Closes the file; stdout and stderr belong to the process and stay open. */
  close(): void;
}

/** How long an entry waits for a pipe that is full, as one is whose reader is slow. */
const waitMs = 100;
const pauseMs = 5;

const pausing = new Int32Array(new SharedArrayBuffer(4));
const pause = () => void Atomics.wait(pausing, 0, 0, pauseMs);

/**
 * Opens a file to append to, or a descriptor. An entry that cannot be written (a full disk, a terminal that was closed, a
 * pipe that nobody reads) is lost and reported; it is never kept and never stops the agent. Throws when the file cannot be
 * opened.
 */
export function openLogSink(to: string | number, onLost: () => void): LogSink {
  const descriptor = typeof to === 'string' ? openSync(to, 'a') : to;
  let isOpen = true;
  /** Part of an entry was written, whose line is ended before the next one. */
  let isTorn = false;
  /** After a loss, nothing waits until the reader takes entries again. */
  let isStuck = false;

  const writeAll = (bytes: Buffer) => {
    const untilMs = performance.now() + (isStuck ? 0 : waitMs);
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(descriptor, bytes, at);
        isTorn = at < bytes.length;
      } catch (thrown) {
        const isFull = systemCode(thrown) === 'EAGAIN';
        if (!isFull || performance.now() >= untilMs) throw thrown;
        pause();
      }
    }
  };

  return {
    write(entry) {
      if (!isOpen) return;
      try {
        writeAll(Buffer.from(isTorn ? `\n${entry}` : entry));
        isStuck = false;
      } catch {
        isStuck = true;
        onLost();
      }
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      if (typeof to === 'string') closeSync(descriptor);
    },
  };
}
