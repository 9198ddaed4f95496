import { AgentError, systemCode } from '../../../core/errors.ts';
import type { Descriptors } from './descriptors.ts';
import type { Disk } from './disk.ts';
import { growHead, headAgrees, headBytes, headGrows, tailBytes } from './mark.ts';
import type { Sinks } from './sinks.ts';
import type { Trail } from './trail.ts';
import type { Troubles } from './troubles.ts';

/** One read of one file. 'changed': the bytes before the offset are not those that were read there. */
export type Turn = 'more' | 'end' | 'changed' | 'absent';

export interface Reader {
  /** Reads and counts one chunk; `look` numbers the pass, in which a file's beginning is checked once. */
  turn(trail: Trail, look: number): Turn;
  /** Whether the file still has the bytes that were read of it; undefined if it cannot be read now. */
  isIntact(trail: Trail): boolean | undefined;
  /** Hands the sink the whole unfinished line as the file's last one. */
  finish(trail: Trail): void;
}

interface ReaderDeps {
  disk: Disk;
  descriptors: Descriptors;
  sinks: Sinks;
  troubles: Troubles;
}

const chunkBytes = 256 * 1024;
/** Holds the longest line a sink may ask to see whole, and a chunk. */
const bufferLimit = 1024 * 1024 + chunkBytes;

/** All files share one buffer, which begins with the bytes before the offset so that each read proves itself. */
export function createReader({ disk, descriptors, sinks, troubles }: ReaderDeps): Reader {
  let buffer = Buffer.allocUnsafe(tailBytes + chunkBytes);
  const start = Buffer.allocUnsafe(headBytes);

  const readFrom = (fd: number, trail: Trail): number => {
    const { tail } = trail.mark;
    let filled = 0;
    for (;;) {
      const read = disk.read(fd, buffer, filled, buffer.length - filled, trail.offset - tail.length + filled);
      filled += read;
      if (read === 0 || filled === buffer.length || filled >= tail.length + trail.restBytes) return filled;
    }
  };

  const startAgrees = (fd: number, trail: Trail): boolean => {
    if (trail.offset <= trail.mark.tail.length) return true;
    const length = disk.read(fd, start, 0, headBytes, 0);
    return headAgrees(trail.mark, start.subarray(0, length)) ?? true;
  };

  const restAgrees = ({ mark, rest, restBytes }: Trail, filled: number) => {
    const from = mark.tail.length;
    if (filled < Math.min(from + restBytes, buffer.length)) return false;
    return rest.length === 0 || rest.compare(buffer, from, from + rest.length) === 0;
  };

  /** Holds what was read into the buffer, and the file's beginning once per look, against the mark. */
  const stateOf = (fd: number, trail: Trail, filled: number, look: number): 'same' | 'cut' | 'changed' => {
    const { tail } = trail.mark;
    if (filled < tail.length || tail.compare(buffer, 0, tail.length) !== 0) return 'changed';
    if (trail.checkedBy !== look && !startAgrees(fd, trail)) return 'changed';
    if (restAgrees(trail, filled)) return 'same';
    return trail.offset === 0 ? 'changed' : 'cut';
  };

  const growMark = (fd: number, trail: Trail) => {
    const known = trail.offset + trail.restBytes;
    if (!headGrows(trail.mark, known)) return;
    const length = disk.read(fd, start, 0, headBytes, 0);
    const head = growHead(trail.mark.head, start.subarray(0, length), known);
    trail.mark = { head, tail: trail.mark.tail };
  };

  /** A file that is shorter than it was, but not so short that counted bytes are gone. */
  const noteLoss = (trail: Trail) => {
    const readTo = trail.offset + trail.restBytes;
    if (trail.nowSize < trail.size && trail.nowSize >= readTo) {
      sinks.skip(trail, 'truncated', trail.size - trail.nowSize);
      trail.size = trail.nowSize;
    }
  };

  const makeRoom = (trail: Trail) => {
    if (buffer.length >= tailBytes + bufferLimit) {
      const fault = {
        where: trail.real,
        what: 'the line sink takes nothing of a full buffer',
        got: buffer.length,
      };
      throw new AgentError('internal', fault);
    }
    buffer = Buffer.allocUnsafe(tailBytes + Math.min(bufferLimit, 2 * (buffer.length - tailBytes)));
  };

  const take = (fd: number, trail: Trail, look: number): Turn => {
    const filled = readFrom(fd, trail);
    const state = stateOf(fd, trail, filled, look);
    if (state === 'changed') return 'changed';
    trail.checkedBy = look;
    if (state === 'cut') sinks.cut(trail);
    noteLoss(trail);
    const from = trail.mark.tail.length;
    const isFull = filled === buffer.length;
    trail.size = Math.max(trail.size, trail.nowSize, trail.offset + filled - from);
    trail.mtimeNs = trail.nowMtimeNs;
    trail.record = undefined;
    if (filled - from <= trail.restBytes && !isFull) return 'end';
    const taken = sinks.write(trail, buffer, from, filled);
    growMark(fd, trail);
    if (taken === 0 && isFull) makeRoom(trail);
    return isFull && trail.offset + trail.restBytes < trail.nowSize ? 'more' : 'end';
  };

  /** Runs `call` on the open file; a stale handle is given back, to be opened anew on the next look. */
  const onOpen = <T>(trail: Trail, call: (fd: number) => T): T | undefined => {
    const fd = descriptors.open(trail);
    if (fd === undefined) return undefined;
    try {
      return call(fd);
    } catch (thrown) {
      if (systemCode(thrown) === undefined) throw thrown;
      if (systemCode(thrown) === 'ESTALE') descriptors.close(trail);
      troubles.tell(trail.real, 'file cannot be read', thrown);
      return undefined;
    }
  };

  return {
    turn: (trail, look) => onOpen(trail, (fd) => take(fd, trail, look)) ?? 'absent',
    isIntact: (trail) =>
      onOpen(trail, (fd) => {
        const { size, mtimeNs } = disk.fstat(fd);
        Object.assign(trail, { nowSize: size, nowMtimeNs: mtimeNs });
        return stateOf(fd, trail, readFrom(fd, trail), -1) !== 'changed';
      }),
    finish(trail) {
      if (trail.rest.length < trail.restBytes) {
        const whole = Buffer.allocUnsafe(trail.restBytes);
        const read = onOpen(trail, (fd) => disk.read(fd, whole, 0, whole.length, trail.offset)) ?? 0;
        trail.rest = whole.subarray(0, read);
      }
      sinks.finish(trail);
    },
  };
}
