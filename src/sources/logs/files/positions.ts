import { AgentError } from '../../../core/errors.ts';
import { readRecord, recordOf } from './record.ts';
import type { Trail } from './trail.ts';

/** Everything the tailer must know again after a restart. */
export interface Positions {
  /** Patterns that have been looked at before, from the root. */
  readonly patterns: Iterable<string>;
  readonly lastGeneration: number;
  readonly trails: Iterable<Trail>;
  /** How many there are of them. */
  readonly count: number;
}

const version = 1;

/**
 * Version u32 · length u32 and JSON `{patterns, lastGeneration}` · count u32 · per trail its length u32 and its
 * record, little-endian.
 */
export function encodePositions({ patterns, lastGeneration, trails, count }: Positions): Uint8Array {
  const meta = Buffer.from(JSON.stringify({ patterns: [...patterns], lastGeneration }));
  let length = 12 + meta.length + 4 * count;
  for (const trail of trails) length += recordOf(trail).length;
  const bytes = Buffer.allocUnsafe(length);
  let at = bytes.writeUInt32LE(version, 0);
  at = bytes.writeUInt32LE(meta.length, at);
  bytes.set(meta, at);
  at = bytes.writeUInt32LE(count, at + meta.length);
  for (const trail of trails) {
    const record = recordOf(trail);
    at = bytes.writeUInt32LE(record.length, at);
    bytes.set(record, at);
    at += record.length;
  }
  return bytes;
}

function unreadable(what: string, cause?: unknown): AgentError {
  return new AgentError('state_unreadable', { where: 'state section logs', what }, cause);
}

/** Throws `state_unreadable` on what it did not write. */
export function decodePositions(section: Uint8Array): Positions & { trails: Trail[] } {
  const bytes = Buffer.from(section.buffer, section.byteOffset, section.byteLength);
  let at = 0;
  const number = () => {
    if (at + 4 > bytes.length) throw unreadable('cut off');
    at += 4;
    return bytes.readUInt32LE(at - 4);
  };
  const take = () => {
    const length = number();
    if (at + length > bytes.length) throw unreadable('cut off');
    at += length;
    return bytes.subarray(at - length, at);
  };
  if (number() !== version) throw unreadable('unknown version');
  const { patterns, lastGeneration } = metaOf(take());
  const count = number();
  const trails: Trail[] = [];
  for (let i = 0; i < count; i++) trails.push(readRecord(take()));
  if (at !== bytes.length) throw unreadable('bytes after its end');
  return { patterns, lastGeneration, trails, count };
}

function metaOf(json: Buffer): { patterns: string[]; lastGeneration: number } {
  try {
    const { patterns, lastGeneration } = JSON.parse(json.toString());
    if (Array.isArray(patterns) && Number.isSafeInteger(lastGeneration)) return { patterns, lastGeneration };
  } catch (thrown) {
    throw unreadable('broken head', thrown);
  }
  throw unreadable('broken head');
}
