import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { growTail } from './mark.ts';
import type { Sinks } from './sinks.ts';
import { noBytes, type Trail } from './trail.ts';
import type { Troubles } from './troubles.ts';

/** Reads what is left of a rotated generation from its compressed file, in bounded memory. */
export interface GzipReader {
  /**
   * Counts one chunk. 'changed': not the generation it seemed to be; 'broken': cannot be unpacked; 'closed': the
   * trail was closed meanwhile.
   */
  turn(trail: Trail): Promise<'more' | 'end' | 'changed' | 'broken' | 'closed'>;
  close(trail: Trail): void;
}

interface Unpacking {
  readonly chunks: AsyncIterator<Buffer>;
  close(): void;
  /** Plain bytes that have come. */
  position: number;
  /** The last of those before the trail's offset, until the offset is reached and they are checked. */
  before: Buffer | undefined;
  /** Those from the trail's offset on. */
  pending: Buffer;
}

function unpack(trail: Trail): Unpacking {
  const file = createReadStream(trail.real);
  const plain = createGunzip();
  file.on('error', (error) => plain.destroy(error));
  file.pipe(plain);
  return {
    chunks: plain[Symbol.asyncIterator](),
    close: () => {
      file.destroy();
      plain.destroy();
    },
    position: 0,
    before: noBytes,
    pending: noBytes,
  };
}

/** Passes over what was counted before; returns what of the chunk comes after it, or undefined if it differs. */
function afterOffset(unpacking: Unpacking, trail: Trail, chunk: Buffer): Buffer | undefined {
  const { before, position } = unpacking;
  unpacking.position += chunk.length;
  if (before === undefined) return chunk;
  const passed = Math.min(chunk.length, trail.offset - position);
  unpacking.before = growTail(before, chunk, 0, passed);
  if (unpacking.position < trail.offset) return noBytes;
  const agrees = unpacking.before
    .subarray(unpacking.before.length - trail.mark.tail.length)
    .equals(trail.mark.tail);
  unpacking.before = undefined;
  return agrees ? chunk.subarray(passed) : undefined;
}

export function createGzipReader({ sinks, troubles }: { sinks: Sinks; troubles: Troubles }): GzipReader {
  const open = new Map<Trail, Unpacking>();

  const close = (trail: Trail) => {
    open.get(trail)?.close();
    open.delete(trail);
  };

  const take = (trail: Trail, unpacking: Unpacking, chunk: Buffer): 'more' | 'changed' => {
    const added = afterOffset(unpacking, trail, chunk);
    if (added === undefined) return 'changed';
    if (added.length === 0) return 'more';
    const bytes = unpacking.pending.length > 0 ? Buffer.concat([unpacking.pending, added]) : added;
    unpacking.pending = bytes.subarray(sinks.write(trail, bytes, 0, bytes.length));
    return 'more';
  };

  const end = (trail: Trail, unpacking: Unpacking): 'end' | 'changed' => {
    if (unpacking.position < trail.offset) return 'changed';
    trail.restBytes = unpacking.pending.length;
    trail.rest = Buffer.from(unpacking.pending);
    return 'end';
  };

  return {
    close,
    async turn(trail) {
      const unpacking = open.get(trail) ?? unpack(trail);
      open.set(trail, unpacking);
      let next: IteratorResult<Buffer>;
      try {
        next = await unpacking.chunks.next();
      } catch (thrown) {
        if (open.get(trail) !== unpacking) return 'closed';
        troubles.tell(trail.real, 'compressed file cannot be read', thrown);
        close(trail);
        return 'broken';
      }
      if (open.get(trail) !== unpacking) return 'closed';
      const turn = next.done ? end(trail, unpacking) : take(trail, unpacking, next.value);
      if (turn !== 'more') close(trail);
      return turn;
    },
  };
}
