import { systemClock } from './clock.ts';
import type { Clock } from './ports.ts';

/**
 * Long work shares the event loop in slices of a few milliseconds, so that everything else in the process runs between them. A
 * loop that may pause uses `createSlice`, a generator `inSlices`, and work that arrives by itself a queue.
 */

/** The present slice of a loop. */
export interface Slice {
  /** Begins the first slice of a piece of work. */
  begin(): void;
  /** Whether the slice is used up. Call it once per step. */
  isOver(): boolean;
  /** Lets everything else run, then begins the next slice. */
  next(): Promise<void>;
}

interface SliceOptions {
  /** The length of a slice. Default 2 ms, because datagrams cannot wait longer. */
  sliceMs?: number;
  /** The clock is read once per this many calls of `isOver`. Default 1. */
  stepsPerCheck?: number;
  clock?: Pick<Clock, 'monotonicMs'>;
  /** Waits between two slices. */
  pause?: () => Promise<void>;
}

export function createSlice({
  sliceMs = 2,
  stepsPerCheck = 1,
  clock = systemClock,
  pause = nextTurn,
}: SliceOptions = {}): Slice {
  let begunMs = clock.monotonicMs();
  let steps = 0;
  const begin = () => {
    begunMs = clock.monotonicMs();
  };
  return {
    begin,
    isOver() {
      steps += 1;
      return steps % stepsPerCheck === 0 && clock.monotonicMs() - begunMs >= sliceMs;
    },
    async next() {
      await pause();
      begin();
    },
  };
}

/** The slice of a loop over series, whose steps are too short to read the clock each time. */
export const createSeriesSlice = (): Slice => createSlice({ stepsPerCheck: 32 });

/** How many turns of the event loop pass without a slice while connections arrive. */
const turnsForArrivals = 32;

/**
 * The work that waits for its next slice. One piece of it continues in each turn of the event loop, in the order of arrival, so
 * that a turn takes no longer than a slice, however much work there is. libuv accepts one connection in a turn: while connections
 * arrive, most turns do without a slice. Otherwise a request would wait for as many slices as connections were opened before its
 * own.
 */
export function createWaitingWork(atTurnEnd: (call: () => void) => void = setImmediate) {
  let waiting: (() => void)[] = [];
  /** The pieces before this index have continued. */
  let first = 0;
  let isArriving = false;
  let turnsWithout = 0;

  const endTurn = () => {
    const isForArrivals = isArriving && turnsWithout < turnsForArrivals;
    isArriving = false;
    turnsWithout = isForArrivals ? turnsWithout + 1 : 0;
    const goOn = isForArrivals ? undefined : waiting[first++];
    // Shifting a long array would move it each time.
    if (first === waiting.length || first === 1024) {
      waiting = waiting.slice(first);
      first = 0;
    }
    if (waiting.length > 0) atTurnEnd(endTurn);
    goOn?.();
  };
  return {
    /** Calls `goOn` when it is this piece's turn. */
    wait(goOn: () => void): void {
      waiting.push(goOn);
      if (waiting.length === 1) atTurnEnd(endTurn);
    },
    /** Notes that a connection was accepted in this turn; other connections may wait. */
    arrived(): void {
      isArriving = true;
    },
  };
}

const waitingWork = createWaitingWork();

/** Resolves when everything else that waits for the event loop has run. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => void waitingWork.wait(resolve));

/** Notes that a connection was accepted: other arrivals are handled before work continues. */
export const noteArrival = (): void => waitingWork.arrived();

/** Long work as a generator: at each `yield` it may pause. */
export type Steps<T = void> = Generator<void, T>;

/** Runs the work to its end in one step. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Runs the work in slices of 5 ms, with `pause` between them. */
export async function inSlices<T>(
  steps: Steps<T>,
  clock: Pick<Clock, 'monotonicMs'>,
  pause: () => Promise<void> = nextTurn,
): Promise<T> {
  const slice = createSlice({ sliceMs: 5, stepsPerCheck: 64, clock, pause });
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    if (slice.isOver()) await slice.next();
  }
}

/** Pieces of work and housekeeping that together take at most one slice in a turn of the event loop. */
export interface SliceQueue {
  /** Whether work may be done at once: no piece waits and the turn has time left. */
  mayRun(): boolean;
  /** Processes a piece in later turns, in order, until `step` returns true. */
  later(step: () => boolean, bytes: number): void;
  /** Like `later`, for housekeeping, which runs while no piece waits. */
  whenIdle(step: () => boolean): void;
  /** Finishes all pieces now and drops the housekeeping. */
  finish(): void;
}

const queueSliceMs = 2;
/** How many bytes may wait here. Beyond this, pieces are processed at once, and the kernel's buffer fills instead. */
const maxWaitingBytes = 4 * 1024 * 1024;

interface QueuedPiece {
  step: () => boolean;
  bytes: number;
}

export function createSliceQueue({ monotonicMs }: Pick<Clock, 'monotonicMs'>): SliceQueue {
  let pieces: QueuedPiece[] = [];
  /** The pieces before this index are done. Shifting a long array would move it each time. */
  let first = 0;
  let idle: (() => boolean)[] = [];
  let waitingBytes = 0;
  let isOpen = false;
  let startMs = 0;

  const hasTime = () => monotonicMs() - startMs < queueSliceMs;

  const begin = () => {
    if (isOpen) return;
    isOpen = true;
    startMs = monotonicMs();
    waitingWork.wait(turn);
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
    if (!waits() && idle.length === 0) return;
    begin();
    while (waits() && hasTime()) stepPiece();
    while (!waits() && idle.length > 0 && hasTime()) if (idle[0]!()) idle.shift();
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
      idle.push(step);
    },
    finish() {
      idle = [];
      while (waits()) stepPiece();
    },
  };
}
