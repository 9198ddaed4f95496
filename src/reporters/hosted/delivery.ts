import type { Clock, Drops } from '../../core/ports.ts';
import type { Post, PostFailure, PostResult } from './post.ts';
import type { Batch, RequestLimits } from './protocol.ts';
import type { Queue, QueuedBatch } from './queue/queue.ts';

interface DeliveryDeps {
  queue: Pick<Queue, 'peek' | 'remove' | 'release'>;
  post: Post;
  limits: Pick<RequestLimits, 'refused'>;
  backoff: Backoff;
  clock: Clock;
  drops: Drops;
}

/**
 * Sends batches from the queue to the receiver, one at a time and oldest first, so that the samples of a series stay in order. A
 * batch that has to be retried delays the batches behind it; a backlog is sent without pauses.
 *
 * A failure that the protocol calls retryable is retried until the queue drops the batch. If a batch keeps failing while the
 * receiver accepts a single point of it, the batch is halved until what the receiver cannot process is left. A single such point
 * is dropped and counted if the receiver keeps failing at it, with a permanent error, while it accepts others.
 */
interface Delivery {
  /** Must be called when a batch was appended to the queue. */
  wake(): void;
  /** Sends the queued batches, and ends at the first request that fails after this call. */
  end(): Promise<void>;
}

/** After this many failures in a row a batch itself may be the cause. */
const failuresBeforeIsolation = 5;
/** After this many failures in a row a single point is dropped. */
const failuresBeforePointDrop = 3;
/** The longest pause before a smaller request. */
const mostSplitPauseMs = 5_000;

/** The batch that is being sent. */
interface Work {
  readonly queued: QueuedBatch;
  pieces: readonly Batch[];
  /** The number of failures that the batch itself may have caused. */
  failures: number;
  /** The number of failures in a row of the single point at the head. */
  pointFailures: number;
  /** Whether the receiver accepted a single point while the batch failed. */
  isCause: boolean;
}

export function startDelivery(deps: DeliveryDeps): Delivery {
  const { queue, post, backoff, clock } = deps;
  const isolation = createIsolation(deps);
  let isEnding = false;
  let isBackingOff = false;
  /** Whether a batch was appended since the queue was last found empty. */
  let isWoken = false;
  let resume = (): void => {};
  let current: Work | undefined;

  /** Waits until a batch is appended, or for `waitMs`. */
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

  const workOn = (queued: QueuedBatch): Work => {
    if (current?.queued.entry !== queued.entry) {
      current = { queued, pieces: [queued.batch], failures: 0, pointFailures: 0, isCause: false };
    }
    return current;
  };

  /** One attempt; false if the delivery has ended. */
  const step = async (): Promise<boolean> => {
    const queued = await queue.peek(0);
    if (!queued) {
      if (!isEnding) await pause();
      return !isEnding || (await queue.peek(0)) !== undefined;
    }
    const work = workOn(queued);
    // A request from before the end says nothing about the receiver now, so the queued batches are tried once more.
    const isLastTry = isEnding;
    const result = await post.send(work.pieces);
    work.pieces = result.pieces;
    if (result.acceptedAny) backoff.reset();
    if (!result.failure) {
      isolation.delivered(work, result);
      backoff.reset();
      await queue.remove(work.queued);
      current = undefined;
      return true;
    }
    const waitMs = isEnding ? 0 : await isolation.waitAfter(work, result.failure);
    queue.release();
    if (isLastTry) return false;
    if (waitMs > 0 && !isEnding) await pause(waitMs);
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

/** Finds out whether a batch is the cause of its failures, and then which of its points are to blame. */
interface Isolation {
  /** Halves or drops pieces if that is due; returns how long to wait, ms. */
  waitAfter(work: Work, failure: PostFailure): Promise<number>;
  /** Must be called when nothing of the batch is left to send. */
  delivered(work: Work, result: PostResult): void;
}

type IsolationDeps = Pick<DeliveryDeps, 'queue' | 'post' | 'limits' | 'backoff' | 'drops'>;

function createIsolation(deps: IsolationDeps): Isolation {
  const { post, limits, backoff, drops } = deps;
  /** Whether a batch was the cause of its failures recently: then the next batch is likely to be the cause, too. */
  let wasCauseRecently = false;

  /** How long to wait before smaller pieces are sent, ms. */
  const splitPauseMs = ({ retryAfterMs }: PostFailure): number => {
    const waitMs = backoff.nextMs(retryAfterMs);
    return retryAfterMs === undefined ? Math.min(waitMs, mostSplitPauseMs) : waitMs;
  };
  /**
   * Halves the piece that failed, or drops it if it is a single point at which the receiver keeps failing with a
   * permanent error. Returns how long to wait, ms.
   */
  const isolate = async (work: Work, failure: PostFailure): Promise<number> => {
    const [head, ...rest] = work.pieces;
    if (!head) return 0;
    if (head.points > 1) {
      limits.refused(head.points);
      work.pieces = [...(await post.split(head)), ...rest];
      work.pointFailures = 0;
      return splitPauseMs(failure);
    }
    work.pointFailures += 1;
    const isLost = !failure.isTransient && work.pointFailures >= failuresBeforePointDrop;
    if (!isLost || !(await acceptsAnother(deps, work, failure))) return backoff.nextMs(failure.retryAfterMs);
    drops.count('hosted', 'rejected', head.points);
    work.pieces = work.pieces.slice(1);
    work.pointFailures = 0;
    return 0;
  };

  return {
    async waitAfter(work, failure) {
      if (failure.cause === 'size') return splitPauseMs(failure);
      if (failure.cause === 'receiver') return backoff.nextMs(failure.retryAfterMs);
      work.failures += 1;
      if (work.isCause) return isolate(work, failure);
      const isDue = wasCauseRecently || work.failures >= failuresBeforeIsolation;
      if (!isDue || !(await acceptsAnother(deps, work, failure))) return backoff.nextMs(failure.retryAfterMs);
      work.isCause = true;
      backoff.reset();
      return splitPauseMs(failure);
    },
    delivered(work, { acceptedAny }) {
      if (work.isCause) wasCauseRecently = true;
      else if (acceptedAny && work.failures === 0) wasCauseRecently = false;
    },
  };
}

type PointDeps = Pick<DeliveryDeps, 'queue' | 'post'>;

/** Which half is used at each cut, until a single point is left: the first (0) or the last (-1). */
type Halves = (cut: number) => 0 | -1;
const first: Halves = () => 0;
const last: Halves = () => -1;
/** Returns halves that lead to another point for each number: the receiver may fail at the first and at the last one. */
const numbered =
  (number: number): Halves =>
  (cut) =>
    (number >> cut) & 1 ? -1 : 0;

/**
 * Whether the receiver accepts another point than the one that fails, so that the batch is the cause. A point of the next
 * batch is sent before its turn, so it is tried only where it decides whether a single point is dropped.
 */
async function acceptsAnother(deps: PointDeps, work: Work, { isTransient }: PostFailure): Promise<boolean> {
  const [head, ...others] = work.pieces;
  const places = [
    [others.length, last],
    [0, first],
    [work.failures % (others.length + 1), numbered(work.failures)],
  ] as const;
  for (const [index, halves] of places) {
    const isFailing = index === 0 && head?.points === 1;
    if (!isFailing && (await deliverPoint(deps.post, work, index, halves))) return true;
  }
  return !isTransient && head?.points === 1 && acceptsNext(deps, work.failures);
}

/** Whether the receiver accepts a point of the next batch, which is sent again in its turn. */
async function acceptsNext({ queue, post }: PointDeps, number: number): Promise<boolean> {
  const next = (await queue.peek(1))?.batch;
  if (!next) return false;
  for (const halves of [first, last, numbered(number)]) {
    const { point } = await cutPoint(post, next, halves);
    if (point && (await post.probe(point))) return true;
  }
  return false;
}

/**
 * Sends one point of a piece of the batch alone; true if the receiver accepts it. The points of a batch belong to different
 * series, so their order does not matter.
 */
async function deliverPoint(post: Post, work: Work, index: number, halves: Halves): Promise<boolean> {
  const piece = work.pieces[index];
  if (!piece) return false;
  const { point, rest } = await cutPoint(post, piece, halves);
  const sent = point ? await post.send([point]) : { pieces: [], acceptedAny: false };
  if (sent.pieces.length > 0) return false;
  work.pieces = work.pieces.toSpliced(index, 1, ...rest);
  return sent.acceptedAny;
}

/** Cuts a point off a piece; no point if the piece is corrupt, which is counted. */
async function cutPoint(post: Post, piece: Batch, halves: Halves): Promise<{ point?: Batch; rest: Batch[] }> {
  let point: Batch | undefined = piece;
  const [before, after]: [Batch[], Batch[]] = [[], []];
  for (let cut = 0; point && point.points > 1; cut++) {
    const [one, other]: readonly Batch[] = await post.split(point);
    const isLast = halves(cut) === -1;
    if (one && other && isLast) before.push(one);
    if (one && other && !isLast) after.unshift(other);
    point = isLast ? (other ?? one) : one;
  }
  return { point, rest: [...before, ...after] };
}

/** Computes how long to wait before a batch is sent again. */
interface Backoff {
  /** The wait after one more failure, ms; `askedMs` is the delay that the receiver requested. */
  nextMs(askedMs: number | undefined): number;
  reset(): void;
}

const firstMs = 500;
const mostMs = 60_000;
/** A receiver that requests a longer delay is tried after this time: an operator may have fixed it. */
const mostAskedMs = 600_000;

/**
 * Exponential backoff with full jitter: a random part of the whole span, so that agents that lost a receiver together do not
 * return together. A delay that the receiver requests is observed in full, with the jitter added. `random`: uniform in [0, 1).
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
