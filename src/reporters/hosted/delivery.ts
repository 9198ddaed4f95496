import type { Clock, Drops } from '../../core/ports.ts';
import type { Left, Post } from './post.ts';
import type { Batch, Protocol } from './protocol.ts';
import type { Held, Queue } from './queue/queue.ts';

export interface DeliveryDeps {
  queue: Pick<Queue, 'peek' | 'remove' | 'layDown'>;
  post: Post;
  split: Protocol['split'];
  backoff: Backoff;
  clock: Clock;
  drops: Drops;
}

/**
 * Takes batches from the queue to the receiver, one at a time in their order, so that each series' samples stay
 * in theirs. A batch that has to be tried again holds up those behind it; a backlog drains without a pause.
 */
export interface Delivery {
  /** Something was appended. */
  wake(): void;
  /** Tries what waits once more and ends at the first failure. */
  end(): Promise<void>;
}

/** Failures in a row after which a batch is suspected to be the cause of them. */
const suspectAfter = 5;

export function startDelivery({ queue, post, split, backoff, clock, drops }: DeliveryDeps): Delivery {
  let isEnding = false;
  let isBackingOff = false;
  /** Something was appended since the queue was last found empty. */
  let isWoken = false;
  let resume = (): void => {};
  let current: { held: Held; pieces: readonly Batch[]; failures: number } | undefined;

  /** Until something is appended, or for this long. */
  const pause = (waitMs?: number): Promise<void> =>
    new Promise((resolve) => {
      isBackingOff = waitMs !== undefined;
      const cancel = waitMs === undefined ? () => {} : clock.after(waitMs, resolve);
      resume = () => {
        cancel();
        resolve();
      };
      if (isWoken && !isBackingOff) resolve();
      isWoken = false;
    });

  const workOn = (held: Held) => {
    if (current?.held.entry !== held.entry) current = { held, pieces: [held.batch], failures: 0 };
    return current;
  };

  /** The first point of what waits behind the oldest batch; undefined if nothing does that can be read. */
  const firstPoint = async (): Promise<Batch | undefined> => {
    let batch = (await queue.peek(1))?.batch;
    try {
      while (batch && batch.points > 1) batch = (await split(batch))[0];
    } catch {
      // It is counted when its turn comes.
      return undefined;
    }
    return batch;
  };
  /** Whether the receiver judges another point than those of the oldest batch. */
  const judgesOthers = async (): Promise<boolean> => {
    const probe = await firstPoint();
    return probe !== undefined && (await post([probe])).reason === undefined;
  };

  /**
   * Tries a batch. One that keeps failing may itself be what the receiver fails at, and would block the queue for
   * as long as its age allows: it is given up when the receiver judges something else and then fails at it again.
   * Only that one point overtakes others, and is sent again in its turn.
   */
  const attempt = async (work: NonNullable<typeof current>): Promise<Left> => {
    const tried = await post(work.pieces);
    work.pieces = tried.pieces;
    if (!tried.isSuspect) return tried;
    work.failures += 1;
    if (work.failures < suspectAfter || isEnding || !(await judgesOthers())) return tried;
    const again = await post(work.pieces);
    if (!again.isSuspect) return again;
    for (const { points } of again.pieces) drops.count('hosted', 'rejected', points);
    return { pieces: [] };
  };

  const step = async (): Promise<boolean> => {
    const held = await queue.peek(0);
    if (!held) {
      if (!isEnding) await pause();
      return !isEnding || (await queue.peek(0)) !== undefined;
    }
    const work = workOn(held);
    const { pieces, reason, askedMs } = await attempt(work);
    work.pieces = pieces;
    if (reason === undefined) {
      backoff.reset();
      await queue.remove(held);
      current = undefined;
      return true;
    }
    queue.layDown();
    if (isEnding) return false;
    await pause(backoff.nextMs(askedMs));
    return true;
  };

  const run = async (): Promise<void> => {
    while (await step());
  };
  const running = run();

  return {
    wake() {
      isWoken = true;
      if (!isBackingOff) resume();
    },
    async end() {
      isEnding = true;
      isWoken = true;
      resume();
      await running;
    },
  };
}

/** How long to wait before a batch is tried again. */
export interface Backoff {
  /** One more failure; `askedMs`: what the receiver asked for. */
  nextMs(askedMs: number | undefined): number;
  reset(): void;
}

const firstMs = 500;
const mostMs = 60_000;
/** A receiver that asks for more is tried after this: it may have been put right by hand. */
const mostAskedMs = 600_000;

/**
 * Exponential backoff with full jitter: anything between nothing and the whole of it, so that agents that lost a
 * receiver together do not come back together. What a receiver asks for is waited for in full, the jitter on
 * top. `random`: uniform in [0, 1).
 */
export function createBackoff(random: () => number): Backoff {
  let failures = 0;
  return {
    nextMs(askedMs = 0) {
      const spanMs = Math.min(mostMs, firstMs * 2 ** Math.min(failures, 30));
      failures += 1;
      return Math.min(askedMs, mostAskedMs) + random() * spanMs;
    },
    reset() {
      failures = 0;
    },
  };
}
