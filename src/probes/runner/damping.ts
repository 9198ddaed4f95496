import type { ProbeState } from '../../core/reasons.ts';

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
