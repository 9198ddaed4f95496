/** Cuts a stream into whole lines. */
export interface Framing {
  /** Takes a chunk; hands on parts that end with a newline, in order. */
  write(chunk: Buffer): void;
  /** The stream ended. */
  end(): void;
}

export interface FramingDeps {
  /** Bytes of a line at most, its newline not counted. */
  lineBytes: number;
  /** Whole lines with their newlines. */
  onLines(bytes: Buffer): void;
  /** A line longer than that was passed over. */
  onLong(start: Buffer): void;
  /** The stream ended within a line. Who knows what it should have been: it is not counted as one. */
  onCut(rest: Buffer): void;
}

const newline = 0x0a;

export function createFraming({ lineBytes, onLines, onLong, onCut }: FramingDeps): Framing {
  let rest: Buffer | undefined;
  let isPassing = false;

  const keep = (tail: Buffer): void => {
    const held = rest === undefined ? Buffer.from(tail) : Buffer.concat([rest, tail]);
    if (held.length <= lineBytes) rest = held;
    else {
      onLong(held);
      isPassing = true;
      rest = undefined;
    }
  };

  return {
    write(chunk) {
      let from = 0;
      if (rest !== undefined || isPassing) {
        const end = chunk.indexOf(newline) + 1;
        if (end === 0) {
          if (!isPassing) keep(chunk);
          return;
        }
        if (rest !== undefined) onLines(Buffer.concat([rest, chunk.subarray(0, end)]));
        rest = undefined;
        isPassing = false;
        from = end;
      }
      const end = chunk.lastIndexOf(newline) + 1;
      if (end > from) onLines(chunk.subarray(from, end));
      if (Math.max(from, end) < chunk.length) keep(chunk.subarray(Math.max(from, end)));
    },
    end() {
      if (rest !== undefined) onCut(rest);
      rest = undefined;
    },
  };
}
