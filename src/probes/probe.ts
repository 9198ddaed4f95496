import type { ReadSecret } from '../core/access.ts';
import type { AgentMetricName } from '../core/agent-metrics.ts';
import { type NetworkFault, networkFault, systemCode } from '../core/errors.ts';
import type { RawTags } from '../core/model.ts';
import type { Clock, Log, Readings, Tracing } from '../core/ports.ts';
import type {
  ArchiveFailureReason,
  HealthFailureReason,
  ProbeFailureReason,
  ProbeKind,
  StoreFailureReason,
} from '../core/reasons.ts';
import { handshakeText, networkText } from '../core/tls-faults.ts';

export { excerpt } from '../core/text-formats.ts';

/** A metric of the agent with the labels of one series, without `svc_service` and the global tags. */
export interface SeriesName {
  name: AgentMetricName;
  labels: RawTags;
}

export interface Sample extends SeriesName {
  value: number;
}

/** The result of one check. It is shown on `/probes` and contains no secret. */
export interface Finding {
  /** The reason why the check failed; missing if it succeeded. */
  reason?: ProbeFailureReason;
  /** A sentence for people; never a label. */
  msg: string;
  /** Gauges. A gauge of an earlier check that is missing here is removed. */
  gauges?: readonly Sample[];
  increases?: readonly Sample[];
  /** Absolute totals of counters that another program maintains, such as the store. */
  totals?: readonly Sample[];
  /** Earliest expiry in the server's certificate chain, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** Duration of each phase, in order. */
  phasesMs?: Readonly<Record<string, number>>;
  /**
   * Checks that failed although the target answers, and on which a recovery depends: a schema that is too old, archiving that is
   * off. With such checks `svc-agent probe` exits with status 1.
   */
  failedChecks?: readonly string[];
  /** Events for the agent's log, which are written in the step in which the counters rise. */
  events?: readonly { level: 'info' | 'warn'; msg: string; fields: Readonly<Record<string, unknown>> }[];
  /** Further facts for people, as JSON. */
  details?: Readonly<Record<string, unknown>>;
  /**
   * JSON for the next check, even after a restart; it is stored in the step in which the counters rise. If it is missing, what an
   * earlier check remembered stays.
   */
  remember?: unknown;
}

/** Progress of work between checks, such as the verification of a big backup. */
export interface Progress {
  doneBytes: number;
  /** The approximate number of bytes to read; 0 if it is not known. */
  totalBytes: number;
  /** The average rate since the work began. */
  bytesPerSecond: number;
}

/** Checks one thing. */
export interface Probe {
  /**
   * Makes one check. A fault is a finding, not an error; a thrown error counts as `failed`, with its message. The probe closes
   * everything that it opened before it settles, at the latest soon after `signal` aborts (timeout, reload, stop). After the
   * timeout a finding with a reason, such as the phase in which time ran out, still counts if it comes within one turn of the
   * event loop; otherwise the result is `too_slow`.
   */
  check(signal: AbortSignal, recalled: unknown): Promise<Finding>;
  /** The progress of running work for this probe, during a check or between two; undefined if there is none. */
  progress?(): Progress | undefined;
  /** Releases what the probe holds between checks. */
  close?(): Promise<void>;
}

/** The series that the runner itself maintains for a probe. */
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
  /** How many runs in a row change the damped state. Default 1 and 1. */
  failureThreshold?: number;
  successThreshold?: number;
  /**
   * Probes of one phase run at the same times, and first at the start, each `delayMs` after that. A probe without a phase has its
   * own times, and runs first within 10 s.
   */
  phase?: { name: string; delayMs: number };
}

export interface ProbeDeps {
  /** The finding of another probe's last run, by name; undefined while it is not known, or is older than three intervals. */
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
   * The unique name, `KIND/…`: `health/frontend`, `store/main/persistence`, `cluster/dc2`, `domain/orders`, `archive/history`.
   */
  name: string;
  kind: ProbeKind;
  /** The target for people: an address, a URI, a program; never a secret. */
  target: string;
  /** The service to which its metrics belong; `''` for none. */
  service: string;
  schedule: ProbeSchedule;
  shows: ShownSeries;
  /** Every reason that its findings can have; their counters exist at 0 from the start. */
  reasons: readonly ProbeFailureReason[];
  /** Rows of one lane never run at the same time, such as those of one store. */
  lane?: string;
  /** Everything that the probe depends on, as text. A reload that does not change it continues the probe. */
  key: string;
  /** Gauges of the last run before a restart that are still valid; they are shown until the first run. */
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
  // With TLS 1.3, a server refuses the client's certificate only after the handshake.
  const plain = handshakeText(thrown) ?? networkText(thrown);
  const msg = plain || (systemCode(thrown) ?? 'failed without a message');
  if (thrown instanceof ProbeError) return { reason: thrown.reason, msg };
  const fault: NetworkFault | undefined = networkFault(thrown);
  return { reason: fault ?? 'failed', msg };
}

/** The message about a server that accepts a connection and stays silent. */
export const nothingCame =
  'no answer in time: connected, but not one byte came back; the server hangs, or another program listens there';

/** What the first bytes of an answer of another protocol are, for a message. */
export function beginningOf(answer: Buffer): string {
  const first = answer.subarray(0, 8);
  const text = first.toString('latin1');
  if (text.startsWith('HTTP/')) return 'an HTTP server answers there';
  return /^[\x20-\x7e]+$/.test(text)
    ? `it begins with ${JSON.stringify(text)}`
    : `it begins with the bytes ${first.toString('hex')}`;
}

/** A time as text. Servers and files may state times that are not dates. */
export function timeText(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`;
}
