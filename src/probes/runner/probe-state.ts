import type { Log } from '../../core/ports.ts';
import type { ProbeFailureReason, ProbeKind, ProbeSkipReason, ProbeState } from '../../core/reasons.ts';
import type { ProbeRow } from '../probe.ts';
import type { Outcome } from './probe-run.ts';

/** The state that does not turn with every single look. */
export interface Damping {
  /** Undefined until as many looks in a row agree as the thresholds ask for. */
  readonly state: ProbeState | undefined;
  /** Failures in a row, up to the last look. */
  readonly consecutiveFailures: number;
  /** Takes one look; returns the state that it turned to, if it did. */
  take(ok: boolean): ProbeState | undefined;
}

export interface DampingOptions {
  /** Looks in a row that turn the state to down, and to up. */
  failureThreshold?: number;
  successThreshold?: number;
}

export function createDamping({ failureThreshold = 1, successThreshold = 1 }: DampingOptions): Damping {
  let state: ProbeState | undefined;
  let failures = 0;
  let successes = 0;
  return {
    get state() {
      return state;
    },
    get consecutiveFailures() {
      return failures;
    },
    take(ok) {
      failures = ok ? 0 : failures + 1;
      successes = ok ? successes + 1 : 0;
      const [to, isDue] = ok
        ? (['up', successes >= successThreshold] as const)
        : (['down', failures >= failureThreshold] as const);
      if (!isDue || state === to) return undefined;
      state = to;
      return to;
    },
  };
}

/** Looks that are remembered; figures as field monitors have them (begin at 30 % changes, end at 10 %). */
const looks = 21;
const beginsAt = 6;
const endsAt = 2;

/** Notices what goes up and down without coming to rest. Counted in looks, so that no clock matters. */
export interface Flapping {
  readonly isFlapping: boolean;
  /** Takes one look, undamped; returns whether flapping began or ended with it. */
  take(ok: boolean): 'began' | 'ended' | undefined;
}

/** Begins with 6 changes among the last 21 looks, and ends when there are no more than 2. */
export function createFlapping(): Flapping {
  const changes: boolean[] = [];
  let last: boolean | undefined;
  let isFlapping = false;
  return {
    get isFlapping() {
      return isFlapping;
    },
    take(ok) {
      if (last !== undefined) changes.push(ok !== last);
      if (changes.length > looks - 1) changes.shift();
      last = ok;
      const count = changes.filter(Boolean).length;
      const next = isFlapping ? count > endsAt : count >= beginsAt;
      if (next === isFlapping) return undefined;
      isFlapping = next;
      return next ? 'began' : 'ended';
    },
  };
}

/** What one look gave, as people and listeners see it. */
export interface ProbeResult {
  /** Wall clock, ms. */
  atMs: number;
  ok: boolean;
  reason?: ProbeFailureReason;
  msg: string;
  durationMs: number;
  phasesMs?: Readonly<Record<string, number>>;
  /** Checks that failed although the probe itself succeeded. */
  failedChecks?: readonly string[];
  details?: Readonly<Record<string, unknown>>;
}

/** How a probe is doing, for `/probes`. Wall clocks in ms. */
export interface ProbeReport {
  name: string;
  kind: ProbeKind;
  target: string;
  /** Damped; undefined until enough looks in a row agree. */
  state: ProbeState | undefined;
  /** When the state became what it is. */
  sinceMs: number | undefined;
  flapping: boolean;
  intervalMs: number;
  timeoutMs: number;
  nextRunMs: number;
  isRunning: boolean;
  last: ProbeResult | undefined;
  consecutiveFailures: number;
  skipped: Readonly<Record<ProbeSkipReason, number>>;
  /** The last results, and the last that failed, oldest first. */
  history: readonly ProbeResult[];
  failures: readonly ProbeResult[];
}

/** Whoever wants to hear each result as it comes; must not throw. */
export type HearResult = (row: ProbeRow, result: ProbeResult) => void;

export function resultOf({ finding, durationMs }: Outcome, atMs: number): ProbeResult {
  const { reason, msg, phasesMs, failedChecks, details } = finding;
  return { atMs, ok: reason === undefined, reason, msg, durationMs, phasesMs, failedChecks, details };
}

/** The last few of something, oldest first. */
export interface Ring<T> {
  push(one: T): void;
  all(): readonly T[];
}

export function createRing<T>(size: number): Ring<T> {
  let kept: T[] = [];
  return {
    push(one) {
      kept.push(one);
      if (kept.length > size * 2) kept = kept.slice(-size);
    },
    all: () => (size > 0 ? kept.slice(-size) : []),
  };
}

export interface HistoryOptions {
  /** How many results are kept of each probe, and how many that failed. Default 100 and 20. */
  history?: number;
  failures?: number;
}

/** What all looks of one probe come to. Says in the log when that changes, not what each look found. */
export interface Standing {
  /** Takes one result; returns the state that it turned to, if it turned from another. */
  take(result: ProbeResult): ProbeState | undefined;
  report(): Pick<
    ProbeReport,
    'state' | 'sinceMs' | 'flapping' | 'last' | 'consecutiveFailures' | 'history' | 'failures'
  >;
}

export function createStanding(
  { name, kind, target, schedule }: ProbeRow,
  { history = 100, failures = 20 }: HistoryOptions,
  log: Log,
): Standing {
  const damping = createDamping(schedule);
  const flapping = createFlapping();
  const results = createRing<ProbeResult>(history);
  const failed = createRing<ProbeResult>(failures);
  let last: ProbeResult | undefined;
  let sinceMs: number | undefined;
  const probe = { probe: name, kind, target };

  const noteState = (to: ProbeState, before: ProbeState | undefined, { reason, msg }: ProbeResult) => {
    const fields = { ...probe, reason, found: msg };
    if (to === 'down') log.write('warn', 'what a probe looks at is down', fields);
    else if (before) log.write('info', 'what a probe looks at is up again', fields);
  };
  const noteFlapping = (change: ReturnType<typeof flapping.take>) => {
    if (change === 'began') log.write('warn', 'what a probe looks at goes up and down', probe);
    if (change === 'ended') log.write('info', 'what a probe looks at has come to rest', probe);
  };

  return {
    take(result) {
      const before = damping.state;
      const to = damping.take(result.ok);
      last = result;
      results.push(result);
      if (!result.ok) failed.push(result);
      noteFlapping(flapping.take(result.ok));
      if (!to) return undefined;
      sinceMs = result.atMs;
      noteState(to, before, result);
      return before && to;
    },
    report: () => ({
      state: damping.state,
      sinceMs,
      flapping: flapping.isFlapping,
      last,
      consecutiveFailures: damping.consecutiveFailures,
      history: results.all(),
      failures: failed.all(),
    }),
  };
}
