import { viewOf } from './fields.ts';
import { type Judge, maxLineBytes } from './judge.ts';
import type { LineTally } from './tally.ts';
import type { Unwrapped } from './unwrapped.ts';

/** The beginning of a line that its runtime cut into pieces. */
export interface PartialLine {
  text: Buffer;
  /** What its pieces take in the file, wrapping included. */
  fileBytes: number;
  /** Already longer than a line may be: its text is not kept. */
  isTooLong: boolean;
}

/** Holds the unfinished lines of a wrapped file by stream. */
export interface Partials {
  holds(stream: string): boolean;
  hold(piece: Unwrapped, pieceBytes: number): void;
  /** The last piece of a stream's line: has the whole of it counted. */
  join(piece: Unwrapped, pieceBytes: number): void;
  /** The file is finished: what is held are lines. */
  flush(): void;
  readonly held: ReadonlyMap<string, PartialLine>;
}

const ending = Buffer.from('\n');

export function createPartials(
  judge: Judge,
  tally: LineTally,
  carried: ReadonlyMap<string, PartialLine> = new Map(),
): Partials {
  const held = new Map(carried);
  const finish = (stream: string, line: PartialLine) => {
    held.delete(stream);
    if (line.isTooLong) {
      tally.dropped('too_long', line.fileBytes);
      return;
    }
    const whole = Buffer.concat([line.text, ending]);
    judge.line(whole, viewOf(whole), 0, line.fileBytes - whole.length);
  };
  const grow = (piece: Unwrapped, pieceBytes: number): PartialLine => {
    const before = held.get(piece.stream);
    const fileBytes = (before?.fileBytes ?? 0) + pieceBytes;
    const length = (before?.text.length ?? 0) + piece.to - piece.from;
    const isTooLong = before?.isTooLong === true || length > maxLineBytes;
    if (isTooLong) return { text: ending.subarray(1), fileBytes, isTooLong };
    const added = piece.bytes.subarray(piece.from, piece.to);
    return { text: Buffer.concat(before ? [before.text, added] : [added]), fileBytes, isTooLong };
  };
  return {
    held,
    holds: (stream) => held.has(stream),
    hold(piece, pieceBytes) {
      held.set(piece.stream, grow(piece, pieceBytes));
    },
    join(piece, pieceBytes) {
      finish(piece.stream, grow(piece, pieceBytes));
    },
    flush() {
      for (const [stream, line] of held) finish(stream, line);
    },
  };
}
