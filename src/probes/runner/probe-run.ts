import { waitAtMost } from '../../core/clock.ts';
import { errorText } from '../../core/errors.ts';
import type { Clock, Tracing } from '../../core/ports.ts';
import { nextTurn } from '../../core/slices.ts';
import { toThousandths } from '../../core/text-formats.ts';
import type { Finding, Probe, ProbeDeps, ProbeRow, Progress } from '../probe.ts';
import { waitRunning } from '../running-wait.ts';

/** The result of one run. */
export interface Outcome {
  finding: Finding;
  durationMs: number;
  /** `finding.remember` as JSON text. */
  memory?: string;
}

/** A running check. It ends at its timeout even if the probe does not. */
interface Attempt {
  /** The result, at the latest at the timeout; undefined if the run was ended before. Never rejects. */
  readonly outcome: Promise<Outcome | undefined>;
  /** Resolves when the probe has settled and nothing of this run is open. Never rejects. */
  readonly settled: Promise<void>;
  /** Aborts the run, which then has no result. */
  end(): void;
}

interface AttemptOptions {
  row: ProbeRow;
  tracing?: Tracing;
  /** Returns the probe; creates it at the first run. */
  open(): Promise<Probe>;
  /** What the last run remembered. */
  recalled: unknown;
  clock: Clock;
}

interface Check extends Attempt {
  /** Whether this process stood still during the check. */
  stoodStill(): boolean;
}

/** How often a check is repeated. A process that is starved all the time must find out, too, that a target is down. */
const mostRepeats = 2;

/**
 * Runs a probe. A failure says nothing if this process stood still during the check: a deadline passed or a peer gave up although
 * the target was well. The check is then repeated; a target that is at fault fails again.
 */
function startAttempt(options: AttemptOptions): Attempt {
  let check = startCheck(options);
  let isEnded = false;
  const run = async (): Promise<Outcome | undefined> => {
    for (let repeats = 0; ; repeats++) {
      const outcome = await check.outcome;
      if (!outcome?.finding.reason || !check.stoodStill() || repeats >= mostRepeats) return outcome;
      let hasSettled = false;
      const settled = check.settled.then(() => {
        hasSettled = true;
      });
      await waitAtMost(settleMs, options.clock, settled);
      if (isEnded || !hasSettled) return undefined;
      check = startCheck(options);
    }
  };
  const outcome = run();
  return {
    outcome,
    settled: outcome.then(() => check.settled),
    end() {
      isEnded = true;
      check.end();
    },
  };
}

/**
 * Checks once. At the timeout the signal aborts. A finding with a reason, such as the phase in which time ran out, still
 * counts if it comes within one turn of the event loop; otherwise the result is `too_slow`.
 */
function startCheck({ row, tracing, open, recalled, clock }: AttemptOptions): Check {
  const { timeoutMs } = row.schedule;
  const controller = new AbortController();
  const { signal } = controller;
  let startMs = clock.monotonicMs();
  let isLate = false;
  const wait = waitRunning(timeoutMs, clock, () => void expire());
  // A phase in which this process stood still did not take that long.
  const result = (finding: Finding): Outcome => ({
    finding: wait.stoodStill() ? { ...finding, phasesMs: undefined } : finding,
    durationMs: toThousandths(Math.max(0, clock.monotonicMs() - startMs - wait.stillMs)),
  });
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
  const worked = tracing ? traced(row, tracing, work) : work();
  let expire = async () => {};
  const outcome = new Promise<Outcome | undefined>((resolve) => {
    let isSettled = false;
    expire = async () => {
      // The turn reads what has arrived: the timer fires before that.
      await nextTurn();
      if (isSettled) return;
      isLate = true;
      controller.abort(new Error(`no result within ${timeoutMs} ms`));
      await nextTurn();
      resolve(tooSlow());
    };
    end = () => {
      isSettled = true;
      wait.cancel();
      resolve(undefined);
      controller.abort(new Error('the run was ended'));
    };
    void worked.then((worked) => {
      isSettled = true;
      wait.cancel();
      resolve(worked);
    });
  });
  return { outcome, settled: worked.then(() => {}), end, stoodStill: wait.stoodStill };
}

/** Runs a check within a span, which says what is checked, and why it failed. */
function traced(
  { name, kind, target, service }: ProbeRow,
  tracing: Tracing,
  work: () => Promise<Outcome>,
): Promise<Outcome> {
  const values = { 'svc.probe.name': name, 'svc.probe.kind': kind, 'svc.probe.target': target };
  return tracing.span(
    'probe',
    { ...values, ...(service !== '' && { svc_service: service }) },
    async (found) => {
      const outcome = await work();
      const { reason, msg } = outcome.finding;
      if (reason) found({ 'svc.probe.reason': reason }, msg);
      return outcome;
    },
  );
}

/** The probe of a row, created at its first run. */
export interface OpenedProbe {
  /** Starts a run; the run before must have settled. */
  run(recalled: unknown): Attempt;
  /** The progress of the probe's work; undefined before its first run. */
  progress(): Progress | undefined;
  /** Waits up to 2 s for the running check, then up to half a second for the probe to close. Never rejects. */
  close(): Promise<void>;
}

const settleMs = 2000;
const closeMs = 500;

export function createOpened(row: ProbeRow, deps: ProbeDeps): OpenedProbe {
  const { clock, log, tracing } = deps;
  let opening: Promise<Probe> | undefined;
  let attempt: Attempt | undefined;
  let probe: Probe | undefined;
  const openOnce = () => {
    opening ??= row.open(deps).then(
      (made) => {
        probe = made;
        return made;
      },
      (thrown: unknown) => {
        opening = undefined;
        throw thrown;
      },
    );
    return opening;
  };

  return {
    run(recalled) {
      const begun = startAttempt({ row, tracing, open: openOnce, recalled, clock });
      attempt = begun;
      // A run that is over would keep its connection in memory until the next one.
      void begun.settled.then(() => {
        if (attempt === begun) attempt = undefined;
      });
      return begun;
    },
    progress: () => probe?.progress?.(),
    async close() {
      attempt?.end();
      await waitAtMost(settleMs, clock, attempt?.settled ?? Promise.resolve());
      // A probe that could not be created has nothing to close.
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
