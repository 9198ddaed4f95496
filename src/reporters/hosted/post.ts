import { errorText } from '../../core/errors.ts';
import type { Clock, Drops, Log, Tracing } from '../../core/ports.ts';
import type { HostedFailureReason } from '../../core/reasons.ts';
import { shownUrl } from '../../core/redacted.ts';
import { excerpt } from '../../core/text-formats.ts';
import { closedByServer, tlsFaultText } from '../../core/tls-faults.ts';
import { HostedFailure, type HttpClient, hostedFailure, retryAfterMs } from './http-client.ts';
import type { Batch, DeliveryVerdict, Protocol, ReceiverAnswer, RequestLimits } from './protocol.ts';

/** Updates the metrics of the reporter: `svc_agent_report_…`. */
export interface ReportMetrics {
  /** Called when the receiver accepted a batch. */
  delivered(): void;
  /** `what`: the failure as one clause, without credentials; it may contain the receiver's text. */
  failed(reason: HostedFailureReason, what: string): void;
}

/** Counts each outcome, and logs changes: the first failure for a reason, and the first success after failures. */
interface Outcomes {
  delivered(): void;
  failed(reason: HostedFailureReason, error: unknown): void;
  /** The receiver refused some points of a batch and accepted the others. Logged once a minute. */
  refused(error: unknown): void;
}

const minuteMs = 60_000;

/** A failure as one clause: what the receiver answered, or why there was no answer. */
function failureText(thrown: unknown, isSecure: boolean): string {
  if (!(thrown instanceof HostedFailure)) return excerpt(errorText(thrown));
  const { reason, message, cause } = thrown;
  if (reason === 'tls') return tlsFaultText(cause) ?? message;
  if (reason === 'reset' && isSecure) return closedByServer(message);
  const because = cause === undefined ? '' : errorText(cause);
  return message.includes(because) ? message : excerpt(`${message}: ${because}`);
}

export function createOutcomes(
  endpoint: string,
  { reported, log, clock }: { reported: ReportMetrics; log: Log; clock: Pick<Clock, 'monotonicMs'> },
): Outcomes {
  const { protocol } = new URL(endpoint);
  const receiver = shownUrl(endpoint);
  let current: HostedFailureReason | undefined;
  let refusedMs = Number.NEGATIVE_INFINITY;
  return {
    refused(error) {
      if (clock.monotonicMs() - refusedMs < minuteMs) return;
      refusedMs = clock.monotonicMs();
      const what = failureText(error, protocol === 'https:');
      log.write('warn', 'the receiver refuses some points of a batch', { receiver, what });
    },
    delivered() {
      reported.delivered();
      if (current !== undefined) log.write('info', 'batches are delivered again', { receiver });
      current = undefined;
    },
    failed(reason, error) {
      const what = failureText(error, protocol === 'https:');
      reported.failed(reason, what);
      if (current !== reason) {
        const cause = error instanceof HostedFailure ? error.cause : error;
        log.write('warn', 'batch not delivered', { receiver, reason, what, error: cause });
      }
      current = reason;
    },
  };
}

/** Why a batch has to be sent again. */
export interface PostFailure {
  readonly reason: HostedFailureReason;
  /** The delay that the receiver requested. */
  readonly retryAfterMs?: number;
  /**
   * The cause. `size`: the request was too large; the pieces are smaller now. `receiver`: nothing can be sent at present. `batch`:
   * the batch or the receiver may be the cause; with `isTransient` the receiver is only busy.
   */
  readonly cause: 'size' | 'batch' | 'receiver';
  readonly isTransient: boolean;
}

export interface PostResult {
  /** The pieces that are left to send. */
  readonly pieces: readonly Batch[];
  /** Whether the receiver accepted a piece. */
  readonly acceptedAny: boolean;
  /** The failure; undefined if nothing is left. */
  readonly failure?: PostFailure;
}

/** Sends the pieces of a batch. No method rejects. */
export interface Post {
  /** Sends the pieces in order; stops at the first one that has to be sent again. */
  send(pieces: readonly Batch[]): Promise<PostResult>;
  /** Splits a batch in two. A batch of one point yields no batches, and neither does a corrupt batch, which is counted. */
  split(batch: Batch): Promise<readonly Batch[]>;
  /** Whether the receiver accepts this point at present. The point counts as neither delivered nor dropped. */
  probe(point: Batch): Promise<boolean>;
}

interface PostDeps {
  protocol: Protocol;
  limits: RequestLimits;
  client: HttpClient;
  outcomes: Outcomes;
  drops: Drops;
  clock: Clock;
  tracing?: Tracing;
  /** Removes credentials from the text of an answer. */
  redact(text: string): string;
}

/**
 * The statuses of a receiver that refuses any request now. A status of 403 or 404 may have another cause: a gateway may dislike the
 * content.
 */
const receiverStatus: ReadonlySet<number> = new Set([401, 407, 408, 425, 429]);
const busyStatus: ReadonlySet<number> = new Set([502, 503, 504]);

/** A response as an error with a readable message. */
function answerError({ status, body }: ReceiverAnswer, redact: PostDeps['redact']): HostedFailure {
  const text = redact(body.toString()).trim();
  const isReadable = !/[\0-\b\x0e-\x1f\ufffd]/.test(text);
  const said = isReadable && text ? `: ${excerpt(text)}` : '';
  return new HostedFailure('rejected', `status ${status}${said}`);
}

function failureWithoutAnswer({ reason }: HostedFailure): PostFailure {
  const mayBeBatch = reason === 'reset' || reason === 'too_slow';
  return { reason, cause: mayBeBatch ? 'batch' : 'receiver', isTransient: reason === 'too_slow' };
}

function failureOfAnswer(answer: ReceiverAnswer, reason: HostedFailureReason, nowMs: number): PostFailure {
  return {
    reason,
    retryAfterMs: retryAfterMs(answer.header('retry-after'), nowMs),
    cause: answer.status < 400 || receiverStatus.has(answer.status) ? 'receiver' : 'batch',
    isTransient: busyStatus.has(answer.status),
  };
}

/** Converts batches into the form that the receiver accepts. No method rejects; what cannot be sent is dropped and counted. */
interface Preparation {
  /** See `Post.split`. */
  split(batch: Batch): Promise<readonly Batch[]>;
  /**
   * Converts a batch into a format that the receiver understands, smaller than the size that it refused; no batches if it cannot be
   * sent.
   */
  prepare(batch: Batch): Promise<readonly Batch[]>;
  /** Converts the batch into the older version, after the receiver refused the newer one. */
  downgrade(batch: Batch): Promise<readonly Batch[]>;
  /** Counts points that the receiver will never accept. */
  drop(points: number): void;
}

function createPreparation({
  protocol,
  limits,
  outcomes,
  drops,
}: Omit<PostDeps, 'client' | 'clock' | 'redact'>): Preparation {
  const drop = (points: number): void => {
    if (points > 0) drops.count('hosted', 'rejected', points);
  };
  /** Re-encodes a batch; a body that cannot be read is counted and yields nothing. */
  const recode = async (batch: Batch, work: () => Promise<readonly Batch[]>): Promise<readonly Batch[]> => {
    try {
      return await work();
    } catch (error) {
      drops.count('hosted', 'corrupt', batch.points);
      outcomes.failed('failed', error);
      return [];
    }
  };
  const split = (batch: Batch) => recode(batch, () => protocol.split(batch));
  const convert = (batch: Batch, wasRefused: boolean) =>
    recode(batch, async () => [await protocol.convert(batch, wasRefused)]);
  const prepare = async (batch: Batch): Promise<readonly Batch[]> => {
    if (!protocol.speaks(batch.format)) {
      drop(batch.points);
      const message = `queued for another protocol: ${batch.format}`;
      outcomes.failed('rejected', new HostedFailure('rejected', message));
      return [];
    }
    if (limits.allows(batch.points)) return convert(batch, false);
    const halves = await split(batch);
    return (await Promise.all(halves.map(prepare))).flat();
  };
  return { split, prepare, downgrade: (batch) => convert(batch, true), drop };
}

/** This many halvings lead to a single point of the largest batch. */
const mostInARow = 16;
/** How many batches are halved in a minute at most. */
const mostInAMinute = 600;

/**
 * Searches a batch that the receiver refuses as a whole for the points that it refuses: some receivers accept nothing of a
 * request with one bad series. After refusals alone it rests for a minute, because the receiver refuses everything.
 */
function createSearch(clock: Pick<Clock, 'monotonicMs'>, split: Post['split']) {
  let inARow = 0;
  let inThisMinute = 0;
  let minuteEndMs = 0;
  return {
    accepted(): void {
      inARow = 0;
    },
    /** The halves of a batch of which `lost` points were refused; undefined if these points are to be dropped. */
    async halvesOf(batch: Batch, lost: number): Promise<readonly Batch[] | undefined> {
      if (lost < batch.points || batch.points === 1) return undefined;
      const nowMs = clock.monotonicMs();
      if (nowMs >= minuteEndMs) {
        minuteEndMs = nowMs + minuteMs;
        inThisMinute = 0;
        inARow = 0;
      }
      if (inARow >= mostInARow || inThisMinute >= mostInAMinute) return undefined;
      inARow += 1;
      inThisMinute += 1;
      return split(batch);
    },
  };
}

export function createPost(deps: PostDeps): Post {
  const { protocol, limits, client, outcomes, drops, clock, tracing, redact } = deps;
  const { split, prepare, downgrade, drop } = createPreparation({ protocol, limits, outcomes, drops });
  const search = createSearch(clock, split);

  const post = async (batch: Batch): Promise<ReceiverAnswer | HostedFailure> => {
    try {
      return await client.post(batch.body, { ...tracing?.headers(), ...protocol.headers(batch) });
    } catch (error) {
      return hostedFailure(error);
    }
  };
  /** Sends each request within a span. */
  const request = (batch: Batch): Promise<ReceiverAnswer | HostedFailure> => {
    if (!tracing) return post(batch);
    const values = { 'svc.batch.points': batch.points, 'svc.batch.bytes': batch.body.length };
    return tracing.span('deliver', values, async (found) => {
      const answer = await post(batch);
      if (answer instanceof HostedFailure) found({ 'svc.failure.reason': answer.reason }, errorText(answer));
      else {
        const isWell = answer.status >= 200 && answer.status < 300;
        const fault = isWell ? undefined : errorText(answerError(answer, redact));
        found({ 'http.response.status_code': answer.status }, fault);
      }
      return answer;
    });
  };

  /** The pieces that replace a piece after its response; undefined if the same piece is sent again later. */
  const replace = async (
    batch: Batch,
    verdict: Exclude<DeliveryVerdict, { kind: 'rejected' }>,
    error: HostedFailure,
  ): Promise<readonly Batch[] | undefined> => {
    switch (verdict.kind) {
      case 'accepted':
      case 'partial':
        if (verdict.kind === 'partial') drops.count('hosted', 'partial_success', verdict.lost);
        limits.accepted(batch.points);
        outcomes.delivered();
        return [];
      case 'too_large':
        outcomes.failed('too_large', error);
        if (limits.refused(batch.points) === 'split') return split(batch);
        drop(batch.points);
        return [];
      case 'downgrade':
        return downgrade(batch);
      case 'retry':
        outcomes.failed(verdict.reason, error);
        return undefined;
    }
  };

  return {
    split,
    async probe(point) {
      const [batch] = await prepare(point);
      const answer = batch && (await request(batch));
      if (!batch || !answer || answer instanceof HostedFailure) return false;
      const { kind } = protocol.verdictOf(answer, batch);
      return kind === 'accepted' || kind === 'partial';
    },
    async send(pieces) {
      const left = [...pieces];
      let acceptedAny = false;
      let refused: { reason: HostedFailureReason; error: HostedFailure } | undefined;
      const end = (failure?: PostFailure): PostResult => {
        if (refused && acceptedAny) outcomes.refused(refused.error);
        else if (refused) outcomes.failed(refused.reason, refused.error);
        return { pieces: left, acceptedAny, failure };
      };
      while (left.length > 0) {
        left.splice(0, 1, ...(await prepare(left[0]!)));
        const batch = left[0];
        if (!batch) continue;
        const answer = await request(batch);
        if (answer instanceof HostedFailure) {
          outcomes.failed(answer.reason, answer);
          return end(failureWithoutAnswer(answer));
        }
        const verdict = protocol.verdictOf(answer, batch);
        const error = answerError(answer, redact);
        if (verdict.kind === 'rejected') {
          const halves = await search.halvesOf(batch, verdict.lost);
          if (!halves) {
            drop(verdict.lost);
            refused = { reason: verdict.reason, error };
          }
          left.splice(0, 1, ...(halves ?? []));
          continue;
        }
        const instead = await replace(batch, verdict, error);
        const reason = verdict.kind === 'retry' ? verdict.reason : 'too_large';
        const failure = failureOfAnswer(answer, reason, clock.nowMs());
        if (!instead) return end(failure);
        left.splice(0, 1, ...instead);
        if (verdict.kind === 'too_large') return end({ ...failure, cause: 'size' });
        const isAccepted = verdict.kind === 'accepted' || verdict.kind === 'partial';
        if (isAccepted) search.accepted();
        acceptedAny ||= isAccepted;
      }
      return end();
    },
  };
}
