import type { Log } from '../../core/ports.ts';
import type { PushFailureReason } from '../../core/reasons.ts';

/** Where the numbers about reports go: `svc_agent_report_…`. */
export interface Reported {
  /** A flush was handed to the kernel, all of it. */
  delivered(): void;
  failed(reason: PushFailureReason): void;
}

/** Tells each outcome, and logs the first failure of a series of them and its end. */
export interface Outcomes {
  delivered(): void;
  failed(reason: PushFailureReason, error: unknown): void;
}

/** A refusal comes after the flush that it is about: one that went well proves nothing yet. */
const soundAfter = 2;

export function createOutcomes(
  hostPort: string,
  { reported, log }: { reported: Reported; log: Log },
): Outcomes {
  let deliveries = soundAfter;
  return {
    delivered() {
      reported.delivered();
      deliveries += 1;
      if (deliveries === soundAfter) log.write('info', 'push goes through again', { hostPort });
    },
    failed(reason, error) {
      reported.failed(reason);
      if (deliveries >= soundAfter) log.write('warn', 'push failed', { hostPort, reason, error });
      deliveries = 0;
    },
  };
}
