import type { ProbeFailureReason, ProbeKind, ProbeSkipReason, ProbeState } from '../../core/reasons.ts';
import type { ProbeRow } from '../probe.ts';
import type { Outcome } from './attempt.ts';

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
