import type { Clock } from '../../core/ports.ts';

/** Shares the event loop: reading and housekeeping take at most one slice of time in a turn of the loop. */
export interface TimeSlices {
  /** Whether work may be done at once: no piece waits and the turn has time left. */
  mayRun(): boolean;
  /** Works on a piece in later turns, in order, until `step` returns true. */
  later(step: () => boolean, bytes: number): void;
  /** The same for housekeeping, which runs when no piece waits. */
  whenIdle(step: () => boolean): void;
  /** Finishes all pieces now and drops the housekeeping. */
  finish(): void;
}

const sliceMs = 2;
/** Bytes that may wait here. Beyond this, reading goes on regardless and the kernel's buffer fills instead. */
const maxWaitingBytes = 4 * 1024 * 1024;

interface Piece {
  step: () => boolean;
  bytes: number;
}

export function createTimeSlices({ monotonicMs }: Pick<Clock, 'monotonicMs'>): TimeSlices {
  let pieces: Piece[] = [];
  /** The pieces before this index are done. Shifting a long array would move it each time. */
  let first = 0;
  let leisure: (() => boolean)[] = [];
  let waitingBytes = 0;
  let isOpen = false;
  let startMs = 0;

  const hasTime = () => monotonicMs() - startMs < sliceMs;

  const begin = () => {
    if (isOpen) return;
    isOpen = true;
    startMs = monotonicMs();
    setImmediate(turn);
  };

  const waits = () => first < pieces.length;

  const stepPiece = () => {
    const piece = pieces[first]!;
    if (!piece.step()) return;
    waitingBytes -= piece.bytes;
    first += 1;
    if (waits() && first < 1024) return;
    pieces = pieces.slice(first);
    first = 0;
  };

  const turn = () => {
    isOpen = false;
    if (!waits() && leisure.length === 0) return;
    begin();
    while (waits() && hasTime()) stepPiece();
    while (!waits() && leisure.length > 0 && hasTime()) if (leisure[0]!()) leisure.shift();
  };

  return {
    mayRun() {
      begin();
      return !waits() && hasTime();
    },
    later(step, bytes) {
      begin();
      pieces.push({ step, bytes });
      waitingBytes += bytes;
      while (waitingBytes > maxWaitingBytes) stepPiece();
    },
    whenIdle(step) {
      begin();
      leisure.push(step);
    },
    finish() {
      leisure = [];
      while (waits()) stepPiece();
    },
  };
}
