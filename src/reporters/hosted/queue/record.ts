import { crc32 } from 'node:zlib';
import { type Batch, type Form, forms } from '../batch.ts';

/**
 * A batch in a queue's file (little-endian):
 *
 *     u32 'SVQ1' · u32 body bytes · u32 points · u32 form · f64 time, ms · u32 crc32 of the body ·
 *     u32 crc32 of the 28 bytes before · body
 */
export interface RecordHead {
  readonly bodyBytes: number;
  readonly points: number;
  readonly form: Form;
  readonly timeMs: number;
  readonly bodyCrc: number;
}

export const headBytes = 32;
const magic = 0x3151_5653;
const crcAt = 28;

/** Bytes of a batch in a file. */
export const recordBytes = ({ body }: Batch): number => headBytes + body.length;

export function encodeRecord({ form, points, timeMs, body }: Batch): Buffer {
  const record = Buffer.allocUnsafe(headBytes + body.length);
  record.writeUInt32LE(magic, 0);
  record.writeUInt32LE(body.length, 4);
  record.writeUInt32LE(points, 8);
  record.writeUInt32LE(forms.indexOf(form), 12);
  record.writeDoubleLE(timeMs, 16);
  record.writeUInt32LE(crc32(body), 24);
  record.writeUInt32LE(crc32(record.subarray(0, crcAt)), crcAt);
  body.copy(record, headBytes);
  return record;
}

/** The head that stands here, or undefined if none does. */
export function readHead(bytes: Buffer): RecordHead | undefined {
  if (bytes.length < headBytes || bytes.readUInt32LE(0) !== magic) return undefined;
  if (crc32(bytes.subarray(0, crcAt)) !== bytes.readUInt32LE(crcAt)) return undefined;
  const form = forms[bytes.readUInt32LE(12)];
  if (!form) return undefined;
  return {
    bodyBytes: bytes.readUInt32LE(4),
    points: bytes.readUInt32LE(8),
    form,
    timeMs: bytes.readDoubleLE(16),
    bodyCrc: bytes.readUInt32LE(24),
  };
}

export const isWhole = (head: RecordHead, body: Buffer): boolean =>
  body.length === head.bodyBytes && crc32(body) === head.bodyCrc;
