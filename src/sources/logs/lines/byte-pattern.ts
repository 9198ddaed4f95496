/** A byte string prepared for comparison four bytes at a time, several times faster than `Buffer.compare` on short text. */
export interface BytePattern {
  readonly length: number;
  readonly words: Int32Array;
  /** The last four bytes, which may overlap `words`. A pattern under four bytes has all its bytes here, the first lowest. */
  readonly lastWord: number;
}

const nothing: BytePattern = { length: 0, words: new Int32Array(0), lastWord: 0 };

/** Copies `bytes[from, to)`. */
export function createPattern(bytes: Buffer, from = 0, to = bytes.length): BytePattern {
  const length = to - from;
  if (length === 0) return nothing;
  return {
    length,
    words: Int32Array.from({ length: length >> 2 }, (_, i) => bytes.readInt32LE(from + 4 * i)),
    lastWord: length < 4 ? bytes.readUIntLE(from, length) : bytes.readInt32LE(to - 4),
  };
}

/** Whether the bytes at `at` equal the pattern. */
export function isPatternAt(pattern: BytePattern, view: DataView, at: number): boolean {
  const { words, length } = pattern;
  if (at + length > view.byteLength) return false;
  if (length < 4) return isShortAt(pattern, view, at);
  for (let i = 0; i < words.length; i++) if (view.getInt32(at + 4 * i, true) !== words[i]) return false;
  return view.getInt32(at + length - 4, true) === pattern.lastWord;
}

function isShortAt({ length, lastWord }: BytePattern, view: DataView, at: number): boolean {
  let rest = lastWord;
  for (let i = 0; i < length; i++) {
    if (view.getUint8(at + i) !== (rest & 0xff)) return false;
    rest >>= 8;
  }
  return true;
}
