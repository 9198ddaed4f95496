import { waitAtMost } from '../../core/clock.ts';
import type { Probe, ProbeDeps, ProbeRow } from '../probe.ts';
import { type Attempt, startAttempt } from './attempt.ts';

/** The probe of a row, made at its first look. */
export interface Opened {
  /** Begins a look; the one before has to be gone. */
  look(recalled: unknown): Attempt;
  /** Waits for the look under way for 2 s, closes the probe, and waits for that for half a second. Never rejects. */
  close(): Promise<void>;
}

const settleMs = 2000;
const closeMs = 500;

export function createOpened(row: ProbeRow, deps: ProbeDeps): Opened {
  const { clock, log } = deps;
  const { timeoutMs } = row.schedule;
  let opening: Promise<Probe> | undefined;
  let attempt: Attempt | undefined;
  const openOnce = () => {
    opening ??= row.open(deps).catch((thrown: unknown) => {
      opening = undefined;
      throw thrown;
    });
    return opening;
  };

  return {
    look(recalled) {
      attempt = startAttempt({ timeoutMs, open: openOnce, recalled, clock });
      return attempt;
    },
    async close() {
      attempt?.end();
      await waitAtMost(settleMs, clock, attempt?.gone ?? Promise.resolve());
      // What could not be made has nothing to give back.
      const made = opening?.catch(() => undefined);
      const closed = Promise.resolve(made).then((probe) => probe?.close?.());
      try {
        await waitAtMost(closeMs, clock, closed);
      } catch (error) {
        log.write('warn', 'a probe did not close', { probe: row.name, error });
      }
    },
  };
}
