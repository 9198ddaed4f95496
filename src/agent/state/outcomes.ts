import type { Clock, Log } from '../../core/ports.ts';
import type { DegradedReason } from '../../core/reasons.ts';

export interface OutcomeStatus {
  readonly degraded?: DegradedReason;
  /** Wall clock, ms, of the last commit that reached the directory, or found it holding the same already. */
  readonly lastCommitMs?: number;
  /** Commits that did not. */
  readonly failures: number;
}

/** How commits ended. Logs when the state becomes degraded and when it no longer is, not each failure between. */
export interface Outcomes {
  succeeded(): void;
  failed(reason: DegradedReason, cause: unknown): void;
  /** As `failed`, without a commit having been tried. */
  degrade(reason: DegradedReason, cause: unknown): void;
  status(): OutcomeStatus;
}

export function createOutcomes(directory: string, { log, clock }: { log: Log; clock: Clock }): Outcomes {
  let degraded: DegradedReason | undefined;
  let sinceMs = 0;
  let lastCommitMs: number | undefined;
  let failures = 0;

  const degrade = (reason: DegradedReason, error: unknown) => {
    const isNews = degraded === undefined;
    degraded = reason;
    if (!isNews) return;
    sinceMs = clock.monotonicMs();
    const msg = 'the state cannot be written: counts go on from memory and may repeat after a restart';
    log.write('error', msg, { directory, reason, error });
  };
  return {
    succeeded() {
      lastCommitMs = clock.nowMs();
      if (degraded === undefined) return;
      degraded = undefined;
      const afterMs = Math.round(clock.monotonicMs() - sinceMs);
      log.write('info', 'the state is written again', { directory, afterMs });
    },
    failed(reason, cause) {
      failures += 1;
      degrade(reason, cause);
    },
    degrade,
    status: () => ({ degraded, lastCommitMs, failures }),
  };
}
