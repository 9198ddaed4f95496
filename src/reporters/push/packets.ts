/** Lines that leave together, joined by `\n`, without one at the end. */
export interface Packet<L> {
  readonly lines: readonly L[];
}

export interface Packed<L> {
  readonly packets: readonly Packet<L>[];
  /** Lines longer than a packet may be. */
  readonly tooLong: readonly L[];
}

/** Fills packets of at most `flushBytes` in the order of the lines, whose `bytes` are those of UTF-8; none is split. */
export function packLines<L extends { readonly bytes: number }>(
  lines: readonly L[],
  flushBytes: number,
): Packed<L> {
  const packets: Packet<L>[] = [];
  const tooLong: L[] = [];
  let filling: L[] = [];
  let filledBytes = 0;
  for (const line of lines) {
    const { bytes } = line;
    if (bytes > flushBytes) {
      tooLong.push(line);
      continue;
    }
    if (filling.length > 0 && filledBytes + 1 + bytes > flushBytes) {
      packets.push({ lines: filling });
      filling = [];
      filledBytes = 0;
    }
    filledBytes += (filling.length > 0 ? 1 : 0) + bytes;
    filling.push(line);
  }
  if (filling.length > 0) packets.push({ lines: filling });
  return { packets, tooLong };
}

export function datagramOf({ lines }: Packet<{ readonly text: string }>): Buffer {
  return Buffer.from(lines.map(({ text }) => text).join('\n'));
}
