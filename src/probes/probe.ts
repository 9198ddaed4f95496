import type { ReadSecret } from '../core/access.ts';
import type { AgentMetricName } from '../core/agent-metrics.ts';
import { errorText, type NetworkFault, networkFault, systemCode } from '../core/errors.ts';
import type { RawTags } from '../core/model.ts';
import type { Clock, Log, Readings, Tracing } from '../core/ports.ts';
import type {
  ArchiveFailureReason,
  HealthFailureReason,
  ProbeFailureReason,
  ProbeKind,
  StoreFailureReason,
} from '../core/reasons.ts';

/** A metric of the agent with the labels of one series, less `svc_service` and the global tags. */
export interface SeriesName {
  name: AgentMetricName;
  labels: RawTags;
}

export interface Sample extends SeriesName {
  value: number;
}

/** The result of one check. It is shown on `/probes` and holds no secret. */
export interface Finding {
  /** Why the check failed; missing if it succeeded. */
  reason?: ProbeFailureReason;
  /** A sentence for people; never a label. */
  msg: string;
  /** Gauges. One that an earlier check set and this one does not is removed. */
  gauges?: readonly Sample[];
  /** Increases of counters. */
  increases?: readonly Sample[];
  /** Absolute totals of counters that another program keeps, such as the store. */
  totals?: readonly Sample[];
  /** Earliest expiry in the server's certificate chain, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** Duration of each phase, in order. */
  phasesMs?: Readonly<Record<string, number>>;
  /**
   * Checks that failed and that recovery depends on, although what was checked answers: a schema that is behind,
   * archiving that is off. `svc-agent probe` exits with 1 for them.
   */
  failedChecks?: readonly string[];
  /** What gets a line in the agent's log, in the step in which the counters rise. */
  events?: readonly { level: 'info' | 'warn'; msg: string; fields: Readonly<Record<string, unknown>> }[];
  /** Further facts for people, as JSON. */
  details?: Readonly<Record<string, unknown>>;
  /**
   * JSON for the next check, across restarts too; kept in the step in which the counters rise. If missing, what an
   * earlier check left stays.
   */
  remember?: unknown;
}

/** Progress of work between checks, such as the verification of a big backup. */
export interface Progress {
  doneBytes: number;
  /** Bytes to read in all, about; 0 if that is not known. */
  totalBytes: number;
  /** On average since the work began. */
  bytesPerSecond: number;
}

/** Checks one thing. */
export interface Probe {
  /**
   * One check. A fault is a finding, not an error; whatever it throws counts as `failed`, with its message. Closes
   * everything it opened before it settles, at the latest soon after `signal` aborts (timeout, reload, stop). After the
   * timeout a finding with a reason still counts if it comes within one turn of the event loop, such as the phase in
   * which time ran out; otherwise the result is `too_slow`.
   */
  check(signal: AbortSignal, recalled: unknown): Promise<Finding>;
  /** The work under way for this probe, during a check or between two; undefined if there is none. */
  progress?(): Progress | undefined;
  /** Releases what is kept between checks. */
  close?(): Promise<void>;
}

/** The series that the runner itself keeps for a probe. */
export interface ShownSeries {
  /** 1 or 0 after each run, undamped. */
  up?: SeriesName;
  /** Duration of the last run, in seconds. */
  duration?: SeriesName;
  /** Counts failures by `reason`, beside `svc_probe_failures_total`. */
  failures?: SeriesName;
  /** Counts changes of the damped state, by `to`. */
  transitions?: SeriesName;
  /** Counters that findings increase; they exist at 0 from the start. */
  counters?: readonly SeriesName[];
}

export interface ProbeSchedule {
  intervalMs: number;
  /** Never longer than the interval. */
  timeoutMs: number;
  /** Runs in a row that change the damped state. Default 1 and 1. */
  failureThreshold?: number;
  successThreshold?: number;
  /**
   * Probes of one phase run at the same moments, and first at the start, each `delayMs` after it. Without it a probe
   * has moments of its own, and runs first within 10 s.
   */
  phase?: { name: string; delayMs: number };
}

export interface ProbeDeps {
  /** The finding of another probe's last run, by name; none while it is not known, or older than three intervals. */
  latest?: (probe: string) => Finding | undefined;
  /** Without it nothing is traced. */
  tracing?: Tracing;
  readSecret: ReadSecret;
  readings: Readings;
  clock: Clock;
  log: Log;
}

/** One row of the table of probes, before anything is loaded or opened. */
export interface ProbeRow {
  /**
   * `KIND/…`, unique: `health/frontend`, `store/main/persistence`, `cluster/dc2`, `domain/orders`, `archive/history`.
   */
  name: string;
  kind: ProbeKind;
  /** What is checked, for people: an address, a URI, a program; no secret. */
  target: string;
  /** The service that its metrics belong to; `''` for none. */
  service: string;
  schedule: ProbeSchedule;
  shows: ShownSeries;
  /** Every reason that its findings can have; their counters exist at 0 from the start. */
  reasons: readonly ProbeFailureReason[];
  /** Rows of one lane never run at the same time, such as those of one store. */
  lane?: string;
  /** Everything the probe depends on, as text; a reload that does not change it keeps the probe. */
  key: string;
  /** Gauges of the last run before a restart that still hold; they are shown until the first run. */
  stillShown?(recalled: unknown, nowMs: number): readonly Sample[];
  /** Loads and creates the probe; connects to nothing yet. */
  open(deps: ProbeDeps): Promise<Probe>;
}

/** Reasons for a failed connection, whatever protocol runs over it. */
export type ConnectionReason = HealthFailureReason & StoreFailureReason & ArchiveFailureReason;

/** A failed check: the reason, and a sentence for people that holds no secret. */
export class ProbeError<Reason extends ProbeFailureReason = ProbeFailureReason> extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ProbeError';
    this.reason = reason;
  }
}

/** The reason and the message for whatever was thrown while connecting, reading or writing. */
export function connectionFault(thrown: unknown): { reason: ConnectionReason; msg: string } {
  const msg = errorText(thrown) || (systemCode(thrown) ?? 'failed without a message');
  if (thrown instanceof ProbeError) return { reason: thrown.reason, msg };
  const fault: NetworkFault | undefined = networkFault(thrown);
  return { reason: fault ?? 'failed', msg };
}

/**
 * Text from another program for a message: one line of at most `most` characters, without control characters,
 * lone surrogates and characters that change the direction of text.
 */
export function excerpt(text: string, most = 200): string {
  // Characters that are removed cost nothing in the result, but a text of megabytes is not scanned as a whole.
  const characters = [
    ...text
      .slice(0, 20 * most)
      .replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\s]+/gu, ' ')
      .trim(),
  ];
  return characters.length > most ? `${characters.slice(0, most).join('')}…` : characters.join('');
}

/** A time as text. Servers and files may have times that are not dates. */
export function timeText(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`;
}
