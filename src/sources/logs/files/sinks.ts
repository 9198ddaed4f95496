import type { SkipReason } from '../../../core/reasons.ts';
import type { LineSink, OpenSink } from '../sink.ts';
import { growTail } from './mark.ts';
import { noBytes, restKeptBytes, type Trail } from './trail.ts';

/** Hands a trail's bytes to its sink; what is counted and the offset move in the same step. */
export interface Sinks {
  /** Presents `bytes[start, end)`, which begin at the trail's offset; returns how many were taken. */
  write(trail: Trail, bytes: Buffer, start: number, end: number): number;
  /** The unfinished line is a line: nothing follows it any more. */
  finish(trail: Trail): void;
  /** The file lost its unfinished line and no more: the line counts, the file goes on where it began. */
  cut(trail: Trail): void;
  skip(trail: Trail, reason: SkipReason, bytes: number): void;
  /** Opens the trail's sink anew, with what the old one held. */
  reopen(trail: Trail): void;
}

export function createSinks(openSink: () => OpenSink): Sinks {
  const sinkOf = (trail: Trail): LineSink => {
    trail.sink ??= openSink()({ path: trail.path, claimants: trail.claimants, carry: trail.carry });
    trail.carry = undefined;
    return trail.sink;
  };

  const keepRest = (trail: Trail, bytes: Buffer, start: number, end: number) => {
    trail.restBytes = end - start;
    trail.rest =
      trail.restBytes > 0 && trail.restBytes <= restKeptBytes
        ? Buffer.from(bytes.subarray(start, end))
        : noBytes;
  };

  return {
    write(trail, bytes, start, end) {
      const taken = sinkOf(trail).write(bytes, start, end) - start;
      if (taken > 0) {
        trail.mark = { head: trail.mark.head, tail: growTail(trail.mark.tail, bytes, start, start + taken) };
        trail.offset += taken;
      }
      keepRest(trail, bytes, start + taken, end);
      trail.record = undefined;
      return taken;
    },
    finish(trail) {
      const { rest } = trail;
      if (trail.sink || trail.carry || rest.length > 0) sinkOf(trail).finish(rest, 0, rest.length);
      if (rest.length > 0) {
        trail.mark = { head: trail.mark.head, tail: growTail(trail.mark.tail, rest, 0, rest.length) };
        trail.offset += rest.length;
        trail.restBytes -= rest.length;
        trail.rest = noBytes;
      }
      trail.sink = undefined;
      trail.record = undefined;
    },
    cut(trail) {
      const { rest } = trail;
      if (rest.length > 0) sinkOf(trail).finish(rest, 0, rest.length);
      trail.size -= rest.length;
      trail.sink = undefined;
      trail.restBytes = 0;
      trail.rest = noBytes;
      trail.record = undefined;
    },
    skip(trail, reason, bytes) {
      if (bytes > 0) sinkOf(trail).skip(reason, bytes);
      trail.record = undefined;
    },
    reopen(trail) {
      trail.carry = trail.sink ? trail.sink.carry() : trail.carry;
      trail.sink = undefined;
      trail.record = undefined;
    },
  };
}
