import type { ReadSecret } from '../core/access.ts';
import type { AgentMetricName } from '../core/agent-metrics.ts';
import type { RawTags } from '../core/model.ts';
import type { Clock, Log, Readings } from '../core/ports.ts';
import type { ProbeFailureReason, ProbeKind } from '../core/reasons.ts';

/** A metric of the agent with the labels of one series, less `svc_service` and the global tags. */
export interface SeriesName {
  name: AgentMetricName;
  labels: RawTags;
}

export interface Sample extends SeriesName {
  value: number;
}

/** What one look found. What a person reads of it holds no secret: it is shown on `/probes`. */
export interface Finding {
  /** Why it failed; none when what was looked at is well. */
  reason?: ProbeFailureReason;
  /** A sentence for people, never a label. */
  msg: string;
  /** Gauges as they are now; one that an earlier look set and this one does not is gone. */
  gauges?: readonly Sample[];
  /** What counters rise by. */
  increases?: readonly Sample[];
  /** Absolute totals of counters that somebody else keeps, such as the store; there from the first look that has them. */
  totals?: readonly Sample[];
  /** Earliest end of a certificate met, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** How long each phase took, in their order. */
  phasesMs?: Readonly<Record<string, number>>;
  /**
   * Checks that failed and that recovery depends on, although what was checked answers: a schema that is behind,
   * archiving that is off. `svc-agent probe` exits with 1 for them.
   */
  failedChecks?: readonly string[];
  /** What gets a line in the agent's log, in the step in which the counters rise. */
  events?: readonly { level: 'info' | 'warn'; msg: string; fields: Readonly<Record<string, unknown>> }[];
  /** What else a person wants to see, as JSON. */
  details?: Readonly<Record<string, unknown>>;
  /**
   * JSON that the next look is given, across restarts too; kept in the step in which the counters rise. Without
   * it, what an earlier look left stays.
   */
  remember?: unknown;
}

/** Looks at one thing. */
export interface Probe {
  /**
   * One look. What is found wrong is a finding, not an error; whatever it throws counts as `failed`, and its
   * message is shown. Ends everything it opened before it settles, at the latest soon after `signal` aborts
   * (timeout, reload, stop). At the timeout a finding with a reason is still taken if it comes within one turn
   * of the event loop, such as the phase in which time ran out; else the look was `too_slow`.
   */
  check(signal: AbortSignal, recalled: unknown): Promise<Finding>;
  /** Gives back what is kept between looks. */
  close?(): Promise<void>;
}

/** What the runner itself shows of every look. */
export interface Shown {
  /** 1 or 0 by each look, undamped. */
  up?: SeriesName;
  /** How long the look took, in seconds. */
  duration?: SeriesName;
  /** Counts failures by `reason`, beside `svc_probe_failures_total`. */
  failures?: SeriesName;
  /** Counts changes of the damped state, by `to`. */
  transitions?: SeriesName;
  /** Counters that findings raise, there at 0 from the start. */
  counters?: readonly SeriesName[];
}

export interface Schedule {
  intervalMs: number;
  /** Never over the interval. */
  timeoutMs: number;
  /** Looks in a row that turn the damped state; 1 and 1 unless told. */
  failureThreshold?: number;
  successThreshold?: number;
}

export interface ProbeDeps {
  /** The finding of another probe's last run, by name; none while it is not known, or older than three intervals. */
  latest?: (probe: string) => Finding | undefined;
  readSecret: ReadSecret;
  readings: Readings;
  clock: Clock;
  log: Log;
}

/** One row of the table of probes: what the configuration asks for, before anything is loaded or opened. */
export interface ProbeRow {
  /** `KIND/…`, unique: `health/frontend`, `store/main/persistence`, `cluster/dc2`, `domain/orders`, `archive/history`. */
  name: string;
  kind: ProbeKind;
  /** What is looked at, for people: an address, a URI, a program; no secret. */
  target: string;
  /** Service whose series its metrics are; `''` for what belongs to none. */
  service: string;
  schedule: Schedule;
  shows: Shown;
  /** Every reason that its findings can have; their counters exist at 0 from the start. */
  reasons: readonly ProbeFailureReason[];
  /** Rows of one lane never run at the same time: one connection per store. */
  lane?: string;
  /** All that it depends on, as text; as long as that is the same, a reload leaves the probe as it is. */
  key: string;
  /** Loads its code and makes it; connects to nothing yet. */
  open(deps: ProbeDeps): Promise<Probe>;
}
