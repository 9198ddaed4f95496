import type { Clock } from '../core/ports.ts';

/**
 * The time from one sample to the next. A sample is taken with the first report that is made anyway within these limits: a report
 * is one of the most expensive things that an idle agent does. The history makes one every 5 s, and then each third of them takes
 * a sample.
 */
const soonestMs = 10_500;
const latestMs = 15_500;

/** Samples the values of the service, and judges them, so that problems begin and end even while nobody asks. */
interface Watch {
  /** Takes the sample, if it is due. To be called before each report, which then judges it. */
  sampleIfDue(): void;
  /** Starts sampling. The first sample is delayed, so that it does not slow the start of the agent. */
  start(): void;
  stop(): void;
}

/** Creates the watch; `report` makes a report, and `clock` measures its intervals. */
export function createWatch(
  { sample, report }: { sample(): void; report(): void },
  clock: Pick<Clock, 'monotonicMs' | 'after'>,
): Watch {
  let cancel = () => {};
  let dueMs = Number.POSITIVE_INFINITY;

  const wait = (fromMs: number, untilMs: number) => {
    cancel();
    dueMs = clock.monotonicMs() + fromMs;
    cancel = clock.after(untilMs, report);
  };

  return {
    sampleIfDue() {
      if (clock.monotonicMs() < dueMs) return;
      wait(soonestMs, latestMs);
      sample();
    },
    start: () => wait(500, 1_500),
    stop() {
      cancel();
      dueMs = Number.POSITIVE_INFINITY;
    },
  };
}
