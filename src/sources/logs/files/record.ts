import { AgentError } from '../../../core/errors.ts';
import { newTrail, noBytes, type Trail } from './trail.ts';

/**
 * A trail as bytes, little-endian: flags u8 · count of head sums u8 · length of tail u8 · 0 u8 · dev u64 · ino
 * u64 · offset f64 · size f64 · mtime in ns i64 · generation f64 · lengths of path, home, real, rest, carry u32
 * each · head sums u32 each · tail · path · home · real · rest · carry. Paths are JSON strings, which keep lone
 * surrogates; `home` and `real` are left out where they equal `path`.
 */
const fixedBytes = 4 + 6 * 8 + 5 * 4;
const flags = { compressed: 1, finished: 2, hasCarry: 4, unlinked: 8 } as const;

const pathBytes = (path: string, same: string) =>
  path === same ? noBytes : Buffer.from(JSON.stringify(path));

/** The trail's encoding, made anew only after it changed. */
export function recordOf(trail: Trail): Buffer {
  trail.record ??= encode(trail);
  return trail.record;
}

function encode(trail: Trail): Buffer {
  const { mark, rest } = trail;
  const carry = trail.sink ? trail.sink.carry() : trail.carry;
  const parts = [
    pathBytes(trail.path, ''),
    pathBytes(trail.home, trail.path),
    pathBytes(trail.real, trail.path),
    rest,
    carry ?? noBytes,
  ];
  const variable = parts.reduce((sum, part) => sum + part.length, 4 * mark.head.length + mark.tail.length);
  const bytes = Buffer.allocUnsafeSlow(fixedBytes + variable);
  const isCompressed = trail.compressed ? flags.compressed : 0;
  const isFinished = trail.finished ? flags.finished : 0;
  const isUnlinked = trail.standing === 'unlinked' ? flags.unlinked : 0;
  bytes[0] = isCompressed | isFinished | isUnlinked | (carry ? flags.hasCarry : 0);
  bytes[1] = mark.head.length;
  bytes[2] = mark.tail.length;
  bytes[3] = 0;
  let at = bytes.writeBigUInt64LE(trail.dev, 4);
  at = bytes.writeBigUInt64LE(trail.ino < 0n ? 0n : trail.ino, at);
  at = bytes.writeDoubleLE(trail.offset, at);
  at = bytes.writeDoubleLE(trail.size, at);
  at = bytes.writeBigInt64LE(trail.mtimeNs, at);
  at = bytes.writeDoubleLE(trail.generation, at);
  for (const part of parts) at = bytes.writeUInt32LE(part.length, at);
  for (const sum of mark.head) at = bytes.writeUInt32LE(sum, at);
  for (const part of [mark.tail, ...parts]) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Throws `state_unreadable` on bytes that are no record. */
export function readRecord(bytes: Buffer): Trail {
  try {
    return decode(bytes);
  } catch (thrown) {
    const fault = { where: 'state section logs', what: 'a file record cannot be read', got: bytes.length };
    throw new AgentError('state_unreadable', fault, thrown);
  }
}

function decode(bytes: Buffer): Trail {
  const [flag, headCount, tailLength] = [bytes.readUInt8(0), bytes.readUInt8(1), bytes.readUInt8(2)];
  const lengths = Array.from({ length: 5 }, (_, i) => bytes.readUInt32LE(52 + 4 * i));
  const head = Array.from({ length: headCount }, (_, i) => bytes.readUInt32LE(fixedBytes + 4 * i));
  let at = fixedBytes + 4 * headCount;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new RangeError(`ends after ${bytes.length} bytes`);
    at += length;
    return Buffer.from(bytes.subarray(at - length, at));
  };
  const tail = take(tailLength);
  const [pathText, homeText, realText, rest, carry] = lengths.map(take) as [
    Buffer,
    Buffer,
    Buffer,
    Buffer,
    Buffer,
  ];
  const path = textOf(pathText, '');
  const names = { path, home: textOf(homeText, path), real: textOf(realText, path) };
  const size = bytes.readDoubleLE(28);
  const mtimeNs = bytes.readBigInt64LE(36);
  const stat = { dev: bytes.readBigUInt64LE(4), ino: bytes.readBigUInt64LE(12), size, mtimeNs };
  const trail = newTrail(names, stat, bytes.readDoubleLE(44), [], (flag & flags.compressed) !== 0);
  const offset = bytes.readDoubleLE(20);
  Object.assign(trail, { offset, size, rest, restBytes: rest.length, mark: { head, tail } });
  trail.finished = (flag & flags.finished) !== 0;
  trail.standing = names.real === names.home ? 'live' : 'rotated';
  if (flag & flags.unlinked) disown(trail);
  trail.carry = flag & flags.hasCarry ? carry : undefined;
  return trail;
}

/** The inode of a file that was deleted before belongs to another one by now, or soon. */
function disown(trail: Trail): void {
  trail.standing = 'unlinked';
  trail.ino = BigInt(-trail.generation);
}

function textOf(json: Buffer, otherwise: string): string {
  if (json.length === 0) return otherwise;
  const text: unknown = JSON.parse(json.toString());
  if (typeof text !== 'string') throw new TypeError('a path is no string');
  return text;
}
