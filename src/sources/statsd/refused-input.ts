import type { Clock, Drops, Log } from '../../core/ports.ts';
import type { StatsdDrop } from './lines/line-format.ts';

/** Counts refused input and logs it: the first of each reason, then at most one an hour. */
export interface RefusedInput {
  /** `example` is asked for only when it is shown. */
  refused(reason: StatsdDrop, example: () => string): void;
  /** Since the start, by reason. */
  counts(): Partial<Record<StatsdDrop, number>>;
  /** What the log showed last, by reason. */
  examples(): Partial<Record<StatsdDrop, string>>;
}

export interface RefusedInputDeps {
  drops: Drops;
  log: Log;
  clock: Clock;
}

const againMs = 3_600_000;

export function createRefusedInput({ drops, log, clock }: RefusedInputDeps): RefusedInput {
  const counts = new Map<StatsdDrop, number>();
  const shown = new Map<StatsdDrop, { atMs: number; example: string }>();
  return {
    refused(reason, example) {
      drops.count('statsd', reason);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      const last = shown.get(reason);
      if (last !== undefined && clock.monotonicMs() - last.atMs < againMs) return;
      shown.set(reason, { atMs: clock.monotonicMs(), example: example() });
      log.write('warn', 'statsd input refused', { reason, first: shown.get(reason)!.example });
    },
    counts: () => Object.fromEntries(counts),
    examples: () => Object.fromEntries([...shown].map(([reason, { example }]) => [reason, example])),
  };
}
