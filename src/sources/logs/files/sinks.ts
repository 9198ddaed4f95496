import type { SkipReason } from '../../../core/reasons.ts';
import type { LineSink, OpenSink } from '../sink.ts';
import { append, appendRest, cutOff } from './chain.ts';
import { type Generation, noBytes, restKeptBytes } from './generation.ts';
import type { Generations } from './generations.ts';

/** Hands a generation's bytes to its sink. The offset moves in the same step in which the lines are counted. */
export interface Sinks {
  /**
   * Presents `bytes[start, end)`, which begin at the offset and come after the bytes of the tail; returns how many bytes the sink
   * consumed.
   */
  write(of: Generation, bytes: Buffer, start: number, end: number): number;
  /**
   * Counts the unfinished line as a line, because nothing follows it any more. It does not count if it `isCut`: then its
   * continuation was lost.
   */
  finish(of: Generation, isCut?: boolean): void;
  /** Handles a file that lost its unfinished line and no more: the line counts, and the file goes on where the line began. */
  cut(of: Generation): void;
  skip(of: Generation, reason: SkipReason, bytes: number): void;
  /** Closes the sink. The next sink gets its state. */
  reopen(of: Generation): void;
}

export function createSinks(generations: Generations, openSink: () => OpenSink): Sinks {
  const sinkOf = (of: Generation): LineSink => {
    const { group: path, claimants, sinkState: state } = of;
    of.sink ??= openSink()({ path, claimants, state });
    if (state) generations.update(of, { sinkState: undefined });
    return of.sink;
  };
  return {
    write(of, bytes, start, end) {
      const taken = sinkOf(of).write(bytes, start, end) - start;
      const restBytes = end - start - taken;
      const isKept = restBytes > 0 && restBytes <= restKeptBytes;
      generations.update(of, {
        chain: append(of.chain, bytes, start, start + taken),
        restBytes,
        rest: isKept ? Buffer.from(bytes.subarray(start + taken, end)) : noBytes,
      });
      return taken;
    },
    finish(of, isCut = false) {
      const { rest } = of;
      const length = isCut ? 0 : rest.length;
      if (of.sink || of.sinkState || length > 0) sinkOf(of).finish(rest, 0, length);
      const chain = length > 0 ? appendRest(of.chain, rest) : of.chain;
      generations.update(of, {
        chain,
        restBytes: of.restBytes - rest.length,
        rest: noBytes,
        sink: undefined,
      });
    },
    cut(of) {
      const { rest } = of;
      if (rest.length > 0) sinkOf(of).finish(rest, 0, rest.length);
      generations.update(of, {
        chain: cutOff(of.chain),
        restBytes: 0,
        rest: noBytes,
        size: Math.max(of.chain.offset, of.size - rest.length),
        sink: undefined,
      });
    },
    skip(of, reason, bytes) {
      if (bytes > 0) sinkOf(of).skip(reason, bytes);
      generations.update(of, {});
    },
    reopen(of) {
      generations.update(of, { sinkState: of.sink ? of.sink.state() : of.sinkState, sink: undefined });
    },
  };
}
