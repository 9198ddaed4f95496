import type { Clock, Drops, Log } from '../../core/ports.ts';
import type { HostedFailureReason } from '../../core/reasons.ts';
import { failureOf, HostedFailure, retryAfterMs, type Sender } from './http-client.ts';
import type { Answer, Batch, Protocol, RequestLimits, Verdict } from './protocol.ts';

export interface PostDeps {
  protocol: Protocol;
  limits: RequestLimits;
  sender: Sender;
  outcomes: Outcomes;
  drops: Drops;
  clock: Clock;
}

/** What is left of a batch after a try: nothing, or pieces that have to be tried again. */
export interface Left {
  readonly pieces: readonly Batch[];
  /** Why; undefined when nothing is left. */
  readonly reason?: HostedFailureReason;
  /** How long the receiver asks to be left alone. */
  readonly askedMs?: number;
  /** The failure may be the batch's own doing: the receiver did not say that it, or who is behind it, is away. */
  readonly isSuspect?: boolean;
}

/** Tries to deliver the pieces of a batch, in order; stops at the first that has to be tried again. Never rejects. */
export type Post = (pieces: readonly Batch[]) => Promise<Left>;

const awayStatus: ReadonlySet<number> = new Set([502, 503, 504]);

/** An answer as people should read it in the log. */
function answerError({ status, body }: Answer): HostedFailure {
  const text = body.toString('utf8', 0, 500).trim();
  const isReadable = !/[\0-\b\x0e-\x1f\ufffd]/.test(text);
  return new HostedFailure('rejected', isReadable && text ? `status ${status}: ${text}` : `status ${status}`);
}

export function createPost({ protocol, limits, sender, outcomes, drops, clock }: PostDeps): Post {
  const lose = (points: number): void => {
    if (points > 0) drops.count('hosted', 'rejected', points);
  };
  /** A batch in two, or in other words; nothing if its body cannot be read. */
  const rework = async (batch: Batch, work: () => Promise<readonly Batch[]>): Promise<readonly Batch[]> => {
    try {
      return await work();
    } catch (error) {
      drops.count('hosted', 'corrupt', batch.points);
      outcomes.failed('failed', error);
      return [];
    }
  };
  const halves = async (batch: Batch, error: HostedFailure): Promise<readonly Batch[]> => {
    limits.tooLarge(batch.points);
    outcomes.failed('too_large', error);
    if (batch.points > 1) return rework(batch, () => protocol.split(batch));
    lose(1);
    return [];
  };

  /** A batch as the receiver understands it; undefined: it never will. */
  const asSpoken = async (batch: Batch): Promise<Batch | undefined> => {
    if (protocol.speaks(batch.form)) {
      return (await rework(batch, async () => [await protocol.inKnownForm(batch, false)]))[0];
    }
    lose(batch.points);
    outcomes.failed('rejected', new HostedFailure('rejected', `queued for another protocol: ${batch.form}`));
    return undefined;
  };

  /** What takes the place of a piece after its answer; undefined: the same again, later. */
  const replacements = async (
    batch: Batch,
    verdict: Verdict,
    error: HostedFailure,
  ): Promise<readonly Batch[] | undefined> => {
    switch (verdict.kind) {
      case 'taken':
        outcomes.delivered();
        return [];
      case 'taken_in_part':
        drops.count('hosted', 'partial_success', verdict.lost);
        outcomes.delivered();
        return [];
      case 'refused':
        lose(verdict.lost);
        outcomes.failed(verdict.reason, error);
        return [];
      case 'split':
        return halves(batch, error);
      case 'older':
        return rework(batch, async () => [await protocol.inKnownForm(batch, true)]);
      case 'again':
        outcomes.failed(verdict.reason, error);
        return undefined;
    }
  };

  const send = async (batch: Batch): Promise<Answer | HostedFailure> => {
    try {
      return await sender.post(batch.body, protocol.headers(batch));
    } catch (error) {
      return failureOf(error);
    }
  };

  return async (pieces) => {
    const left = [...pieces];
    while (left.length > 0) {
      const batch = await asSpoken(left[0]!);
      if (!batch) {
        left.shift();
        continue;
      }
      left[0] = batch;
      const answer = await send(batch);
      if (answer instanceof HostedFailure) {
        outcomes.failed(answer.reason, answer);
        return { pieces: left, reason: answer.reason, isSuspect: answer.reason === 'reset' };
      }
      const verdict = protocol.judge(answer, batch);
      const instead = await replacements(batch, verdict, answerError(answer));
      if (!instead) {
        const reason = verdict.kind === 'again' ? verdict.reason : 'failed';
        const askedMs = retryAfterMs(answer.header('retry-after'), clock.nowMs());
        const isSuspect = answer.status >= 500 && !awayStatus.has(answer.status);
        return { pieces: left, reason, askedMs, isSuspect };
      }
      left.splice(0, 1, ...instead);
    }
    return { pieces: left };
  };
}

/** Where the numbers about reports go: `svc_agent_report_…`. */
export interface Reported {
  /** The receiver took a batch. */
  delivered(): void;
  failed(reason: HostedFailureReason): void;
}

/** Tells each outcome, and logs where it turns: the first failure for a reason, and the first success after it. */
export interface Outcomes {
  delivered(): void;
  failed(reason: HostedFailureReason, error: unknown): void;
}

export function createOutcomes(
  endpoint: string,
  { reported, log }: { reported: Reported; log: Log },
): Outcomes {
  const { origin, pathname } = new URL(endpoint);
  const receiver = origin + pathname;
  let current: HostedFailureReason | undefined;
  return {
    delivered() {
      reported.delivered();
      if (current !== undefined) log.write('info', 'batches go through again', { receiver });
      current = undefined;
    },
    failed(reason, error) {
      reported.failed(reason);
      if (current !== reason) log.write('warn', 'a batch did not go through', { receiver, reason, error });
      current = reason;
    },
  };
}
