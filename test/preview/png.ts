import { crc32, deflateSync, inflateSync } from 'node:zlib';

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

interface Picture {
  width: number;
  height: number;
  /** Bytes of a pixel: 3 or 4, the fourth is not looked at. */
  channels: number;
  pixels: Buffer;
}

/** The same picture with at most 256 colours, which is a third of the size. Reads what Chromium writes. */
export function fewerColours(png: Buffer): Buffer {
  const picture = decoded(png);
  const { palette, indexes } = paletted(picture);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(picture.width, 0);
  header.writeUInt32BE(picture.height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const rows = Buffer.alloc((picture.width + 1) * picture.height);
  for (let y = 0; y < picture.height; y++)
    indexes.copy(rows, y * (picture.width + 1) + 1, y * picture.width, (y + 1) * picture.width);
  const data = deflateSync(rows, { level: 9 });
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', data),
    chunk('IEND'),
  ]);
}

function chunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const named = Buffer.concat([Buffer.from(type), data]);
  const around = Buffer.alloc(8);
  around.writeUInt32BE(data.length, 0);
  around.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([around.subarray(0, 4), named, around.subarray(4)]);
}

function decoded(png: Buffer): Picture {
  const parts: Buffer[] = [];
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const channels = png[25] === 6 ? 4 : 3;
  return {
    width,
    height,
    channels,
    pixels: unfiltered(inflateSync(Buffer.concat(parts)), width * channels, channels),
  };
}

/** Undoes the filters of PNG (ISO/IEC 15948, 9): each byte is a difference to those beside and above it. */
function unfiltered(rows: Buffer, rowBytes: number, channels: number): Buffer {
  const pixels = Buffer.alloc((rows.length / (rowBytes + 1)) * rowBytes);
  for (let from = 0, to = 0; from < rows.length; from += rowBytes + 1, to += rowBytes) {
    const filter = rows[from]!;
    for (let i = 0; i < rowBytes; i++) {
      const left = i >= channels ? pixels[to + i - channels]! : 0;
      const above = to > 0 ? pixels[to + i - rowBytes]! : 0;
      const corner = i >= channels && to > 0 ? pixels[to + i - rowBytes - channels]! : 0;
      pixels[to + i] = rows[from + 1 + i]! + predicted(filter, left, above, corner);
    }
  }
  return pixels;
}

function predicted(filter: number, left: number, above: number, corner: number): number {
  if (filter < 3) return [0, left, above][filter]!;
  if (filter === 3) return (left + above) >> 1;
  const guess = left + above - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** The most frequent colours, and for each pixel the nearest of them. */
function paletted({ width, height, channels, pixels }: Picture): { palette: Buffer; indexes: Buffer } {
  const colours = new Uint32Array(width * height);
  const counts = new Map<number, number>();
  for (let i = 0; i < colours.length; i++) {
    const at = i * channels;
    // Neighbouring colours count as one.
    const colour = ((pixels[at]! & 0xfc) << 16) | ((pixels[at + 1]! & 0xfc) << 8) | (pixels[at + 2]! & 0xfc);
    colours[i] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const kept = [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 256)
    .map(([colour]) => colour);
  const nearest = new Map(kept.map((colour, index) => [colour, index]));
  for (const colour of counts.keys()) if (!nearest.has(colour)) nearest.set(colour, nearestOf(colour, kept));
  const palette = Buffer.from(kept.flatMap((colour) => [colour >> 16, (colour >> 8) & 0xff, colour & 0xff]));
  return { palette, indexes: Buffer.from(colours.map((colour) => nearest.get(colour)!)) };
}

function nearestOf(colour: number, kept: readonly number[]): number {
  const distance = (other: number) =>
    [16, 8, 0].reduce((sum, shift) => sum + (((colour >> shift) & 0xff) - ((other >> shift) & 0xff)) ** 2, 0);
  return kept.reduce((best, other, index) => (distance(other) < distance(kept[best]!) ? index : best), 0);
}
