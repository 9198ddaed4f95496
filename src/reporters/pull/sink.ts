import { createGzip } from 'node:zlib';
import type { Body } from './reply.ts';

/** Where pieces of a page go: one body, or many as one. */
export type Sink = Body;

/** One sink for several; done when all are. */
export function together(sinks: readonly Sink[]): Sink {
  const each = (call: (sink: Sink) => void): void => sinks.forEach(call);
  return {
    write: (piece) => each((sink) => sink.write(piece)),
    end: () => each((sink) => sink.end()),
    cut: () => each((sink) => sink.cut()),
    get done() {
      return sinks.every(({ done }) => done);
    },
  };
}

/**
 * Compresses into `sink`, off the event loop. Level 1: on exposition text the default takes three times as
 * long to save a few percent of the page's size (bench/render.ts).
 */
export function gzipped(sink: Sink): Sink {
  const gzip = createGzip({ level: 1, chunkSize: 65_536 });
  gzip.on('data', (piece: Buffer) => sink.write(piece));
  gzip.on('end', () => sink.end());
  gzip.on('error', () => sink.cut());
  return {
    write: (piece) => void gzip.write(piece),
    end: () => void gzip.end(),
    cut() {
      gzip.destroy();
      sink.cut();
    },
    get done() {
      return sink.done;
    },
  };
}
