import type { Log } from '../../../core/ports.ts';
import type { HostedFailureReason } from '../../../core/reasons.ts';

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
