import { waitAtMost } from '../../core/clock.ts';
import { errorText } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { Finding, Probe, ProbeDeps, ProbeRow } from '../probe.ts';

/** What came of one look. */
export interface Outcome {
  finding: Finding;
  durationMs: number;
  /** `finding.remember` as JSON text. */
  memory?: string;
}

/** One look that is under way, with an end that does not depend on the probe. */
export interface Attempt {
  /** What came of it, at the latest at the timeout; undefined when it was ended before. Never rejects. */
  readonly outcome: Promise<Outcome | undefined>;
  /** The probe itself has settled: nothing of this look is open any more. Never rejects. */
  readonly gone: Promise<void>;
  /** Aborts it; nothing comes of it any more. */
  end(): void;
}

export interface AttemptOptions {
  timeoutMs: number;
  /** The probe, made when it is not there yet. */
  open(): Promise<Probe>;
  /** What the look before it left. */
  recalled: unknown;
  clock: Pick<Clock, 'monotonicMs' | 'after'>;
}

/** One turn of the event loop. */
const breath = () => new Promise<void>((resolve) => void setImmediate(resolve));

/**
 * Looks once. At the timeout the signal aborts; a probe that says at once in which phase time ran out has its
 * finding taken, any other has been `too_slow`, whatever it still says later.
 */
export function startAttempt({ timeoutMs, open, recalled, clock }: AttemptOptions): Attempt {
  const controller = new AbortController();
  const { signal } = controller;
  let startMs = clock.monotonicMs();
  let isLate = false;
  const result = (finding: Finding): Outcome => ({ finding, durationMs: clock.monotonicMs() - startMs });
  const tooSlow = () => result({ reason: 'too_slow', msg: `no result within ${timeoutMs} ms` });

  const work = async (): Promise<Outcome> => {
    try {
      const probe = await open();
      signal.throwIfAborted();
      startMs = clock.monotonicMs();
      const finding = await probe.check(signal, recalled);
      if (isLate && !finding.reason) return tooSlow();
      return { ...result(finding), memory: JSON.stringify(finding.remember) };
    } catch (thrown) {
      return isLate ? tooSlow() : result({ reason: 'failed', msg: errorText(thrown) });
    }
  };

  let end = () => {};
  const worked = work();
  const outcome = new Promise<Outcome | undefined>((resolve) => {
    let isSettled = false;
    const expire = async () => {
      // What came while the machine stood still is read first: that was not the probe's fault.
      await breath();
      if (isSettled) return;
      isLate = true;
      controller.abort(new Error(`no result within ${timeoutMs} ms`));
      await breath();
      resolve(tooSlow());
    };
    const cancel = clock.after(timeoutMs, () => void expire());
    end = () => {
      isSettled = true;
      cancel();
      resolve(undefined);
      controller.abort(new Error('the look was ended'));
    };
    void worked.then((worked) => {
      isSettled = true;
      cancel();
      resolve(worked);
    });
  });
  return { outcome, gone: worked.then(() => {}), end };
}

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
