import type { ServedCertificate } from '../core/access.ts';
import type { BackupType } from '../core/reasons.ts';
import type { ProbeReport, ProbeResult } from '../probes/runner/probe-state.ts';
import type { LogFault } from '../sources/logs/faults/file-faults.ts';
import type { LoggedError } from '../sources/logs/metrics/last-errors.ts';
import type { ScrapeStatus } from '../sources/scrape/scrape-status.ts';
import type { StatsdStatus } from '../sources/statsd/source.ts';
import type { ReporterStatus } from './reporters.ts';

export type ProblemSeverity = 'critical' | 'warning';

/** Work that would make a problem worse; `svc-agent status --check --for` asks about one of these. */
export const undertakings = ['deploy', 'upgrade', 'failback'] as const;
export type Undertaking = (typeof undertakings)[number];

/**
 * A piece of evidence for a problem. `exit`: how a process ended, as it was announced; `conflict`: two sources that contradict
 * each other.
 */
export interface Evidence {
  source: 'probe' | 'value' | 'log' | 'exit' | 'conflict';
  /** The evidence as one clause. It contains text from outside and must be escaped. */
  text: string;
  /** The time of the evidence, RFC 3339. */
  at?: string;
  /** The value, its usual value, and the limit that it exceeds, as texts with units. */
  value?: string;
  usual?: string;
  limit?: string;
}

/** A change: of the configuration, a schema or a version, a failover, or an announced deploy. */
export interface Change {
  /** The time of the change, RFC 3339. */
  at: string;
  kind: ChangeKind;
  /** The change as one clause. It contains text from outside and must be escaped. */
  what: string;
  /** The end of the maintenance, RFC 3339. */
  until?: string;
  /** The role whose process ended or restarted. */
  role?: string;
}

export const changeKinds = [
  ...['configuration', 'schema', 'version', 'restart', 'failover', 'certificate'],
  ...['deploy', 'maintenance', 'note', 'exit'],
] as const;
export type ChangeKind = (typeof changeKinds)[number];

/** A change as a clause that stands alone. The text of an announcement need not say what happened: `deploy (history 1.4.2)`. */
export const changeText = ({ kind, what }: Pick<Change, 'kind' | 'what'>): string =>
  kind === 'deploy' || kind === 'maintenance' || kind === 'note' ? `${kind} (${what})` : what;

/** A problem of the service or the agent. */
export interface Problem {
  /** The id, which stays the same as long as the problem lasts: its kind and its subject. */
  id: string;
  /** The kind: a row of the table of kinds (src/agent/verdict/kinds.ts). */
  kind: string;
  /** The subject, such as `main` or `frontend`; empty if the kind says it all. */
  subject: string;
  severity: ProblemSeverity;
  /**
   * The problem as one clause: `role frontend is down: refused: connection refused`. It contains text from outside and must be
   * escaped.
   */
  what: string;
  /** What to set or run, if one command or setting ends the problem. */
  fix?: string;
  /** What to look at and do first, as in the alert. */
  firstSteps: string;
  /** When the problem began, RFC 3339. This does not change while the problem lasts, even across restarts of the agent. */
  since: string;
  /** Since when nobody knows whether the problem lasts, RFC 3339: its sources cannot be read. */
  unreadSince?: string;
  /** Since when the check fails for its present reason, RFC 3339, if the problem began for another reason. */
  reasonSince?: string;
  evidence: readonly Evidence[];
  /**
   * The id of the problem that explains this problem. For a problem that cannot be read, the id of the problem that is the reason for
   * that.
   */
  causedBy?: string;
  /** The ids of the problems that this one explains. */
  consequences: readonly string[];
  /** The changes in the half hour before the problem began, newest first; only for causes. */
  changes?: readonly Change[];
  /** The work that should wait until the problem is over. */
  blocks: readonly Undertaking[];
  /** The name of the alert whose runbook applies: `runbooks/<name>.md`. */
  runbook?: string;
}

/** A problem that is over. */
export interface Incident {
  id: string;
  severity: ProblemSeverity;
  /** The kind and the subject of the problem, in the form of the label `cause` of `svc_incident`. */
  cause: string;
  subject: string;
  what: string;
  /** How the incident ended: `store main recovered`. */
  over: string;
  /** The start, RFC 3339. */
  start: string;
  end: string;
  durationSeconds: number;
  /** What the incident took down: `4 roles and 3 domains`. */
  consequences?: string;
  changes?: readonly Change[];
}

/** The level of a verdict. `unknown`: no problem is known, but not everything has been checked yet or can be read. */
export type Level = 'ok' | 'unknown' | ProblemSeverity;

export interface Verdict {
  /** True only if everything that is watched has been checked and nothing is wrong. */
  ok: boolean;
  level: Level;
  /** The sentence without its times, for readers that show the time themselves. */
  headline: string;
  /** One sentence for people: whether everything is well; if not, the cause, since when, and what it took down. */
  sentence: string;
  /** The first problem that no other problem explains; absent if nothing is wrong. */
  cause?: Pick<Problem, 'id' | 'kind' | 'subject' | 'what' | 'since'>;
  /** The problems: critical ones first, causes before their effects. */
  problems: readonly Problem[];
}

/** A value of the service that is above the limit of an alert, according to the agent's own values. */
export interface Exceeded {
  /** The kind of problem that the value shows. */
  kind: string;
  /** Labels that say what the value belongs to. */
  about: Readonly<Record<string, string>>;
  value: string;
  usual?: string;
  limit: string;
  /** The pages and logs of roles from which the value is read: `page/history`. */
  from?: readonly string[];
  /** When the problem began, RFC 3339: with the first of the events that show it, or when the value was first above the limit. */
  since: string;
  /** Set if the value only shows that a problem which has begun goes on, and does not begin a problem. */
  onlyGoesOn?: true;
  /**
   * Set if the value is within the limit again only because these sources in `from` have counted nothing since it was above it.
   * Then this is no problem, but nobody knows whether the problem lasts.
   */
  silent?: readonly string[];
  /** Since when so much has been counted that it would be above the limit without anything before, RFC 3339. */
  newSince?: string;
  /** When the newest of the events that exceed the limit was counted, RFC 3339; only if events show the problem. */
  lastCounted?: string;
  /**
   * Since when none of the events had been counted before the first one, although the sources counted other events, RFC 3339; only
   * if that was long enough for a pause.
   */
  quietSince?: string;
}

/** A log file that the agent follows. */
export interface LogFileReport {
  path: string;
  services: readonly string[];
  offset: number;
  lagBytes: number;
  /** `following`, or the reason why the file is not read now. */
  state: string;
}

/** A fault that prevents a log from being written where the agent reads it. */
export type LogFaultReport = Omit<LogFault, 'sinceMs'> & { since: string };

export type Dated<T extends { atMs: number }> = Omit<T, 'atMs'> & { at: string };

/** The state of a probe in `/probes` and the status. */
export type ProbeStatus = Omit<
  ProbeReport,
  'sinceMs' | 'failingSinceMs' | 'nextRunMs' | 'last' | 'history' | 'failures'
> & {
  since?: string;
  failingSince?: string;
  nextRun: string;
  last?: Dated<ProbeResult>;
};

/** The number of log entries by level. */
export type Levels = Readonly<Record<string, number>>;

export const severeEntries = ({ error = 0, fatal = 0 }: Levels): number => error + fatal;

/** A summary of the logs. Its counts are those of `svc_log_entries_total`. */
export interface EntriesReport {
  services: readonly { service: string; levels: Levels }[];
  /** The loggers with most entries of level error and fatal, then with most entries; at most 20. */
  loggers: readonly { service: string; logger: string; levels: Levels }[];
  loggerCount: number;
  /** The newest entries of level error and fatal, newest first. */
  lastErrors: readonly Dated<LoggedError>[];
  /** For each service, the newest few entries of level fatal, and of level error, newest first. */
  lastWords: readonly { service: string; entries: readonly Dated<LoggedError>[] }[];
}

/** A domain according to its last description; the probe `domain/<domain>` has further details. */
export interface DomainReport {
  domain: string;
  activeCluster?: string;
  failovers: number;
  lastFailover?: string;
}

/** The objectives of a backup and the evidence for them. Times are RFC 3339, spans are in seconds. */
export interface BackupReport {
  backup: string;
  store?: string;
  database?: string;
  type: BackupType;
  rpoSeconds: number;
  rtoSeconds: number;
  lastSuccess?: string;
  lastFailure?: string;
  recoveryPoint?: string;
  bytes?: number;
  durationSeconds?: number;
  integrityOk?: boolean;
  offsite?: string;
  retentionKept?: boolean;
}

/** A listener of the agent, and the certificate that it presents. */
export interface ListenerReport {
  listener: string;
  address: string;
  tls: boolean;
  /** `refused`: why newer files are not used. */
  certificate?: { notAfter: string; refused?: string };
}

/** A listener that is bound. */
export interface BoundListener extends Omit<ListenerReport, 'certificate'> {
  /** The certificate that the next client gets; undefined without TLS. */
  certificate(): ServedCertificate | undefined;
}

/** All facts on which a verdict is based. */
export interface StatusFacts {
  /** When the report was made, RFC 3339. */
  now: string;
  version: string;
  node: string;
  instance: string;
  roles: readonly string[];
  health: { ok: boolean; msg: string };
  ready: boolean;
  startedAt: string;
  /**
   * The configuration. `changedAt` is when another configuration was last accepted; it is absent while the configuration is that
   * of the start.
   */
  config: {
    files: readonly string[];
    lastReloadSuccessful: boolean;
    lastReloadError?: string;
    changedAt?: string;
    /** The service's dynamic configuration file and the time of its last change, which is absent if the file cannot be read. */
    dynamic?: { file: string; changedAt?: string };
  };
  state: {
    directory: string;
    /** The step at which commits fail. */
    degraded?: string;
    /** The error of the system in that step. */
    error?: string;
    sequence: number;
    lastCommitAt?: string;
    commitFailures: number;
  };
  listeners: readonly ListenerReport[];
  /** Figures of the agent's own process. */
  process: { rssBytes: number; heapBytes: number; cpuSeconds: number };
  logs: readonly LogFileReport[];
  logFaults: readonly LogFaultReport[];
  entries: EntriesReport;
  scrapes: readonly (ScrapeStatus & { service: string })[];
  statsd: readonly (StatsdStatus & { service: string })[];
  probes: readonly ProbeStatus[];
  /** The number of restarts that were seen, by role. */
  restarts: Readonly<Record<string, number>>;
  domains: readonly DomainReport[];
  /** Lag between two clusters, if it is known. */
  replication: readonly { source: string; target: string; lagSeconds: number }[];
  /** Values above the limits of alerts. */
  exceeded: readonly Exceeded[];
  /** By role, the share of the logged persistence errors that its own metrics count; only while its log has such errors. */
  telemetryTruth: Readonly<Record<string, number>>;
  /**
   * When each page and log, such as `page/history`, last counted anything since the agent started; exact to a quarter of a
   * minute.
   */
  counted: Readonly<Record<string, string>>;
  /** The versions that roles report about themselves. */
  versions: Readonly<Record<string, string>>;
  backups: readonly BackupReport[];
  /** The earliest expiry among the certificates that the target of a probe shows. */
  certificates: readonly { probe: string; notAfter: string }[];
  reporters: readonly ReporterStatus[];
  series: { total: number; limit: number; families: readonly { family: string; series: number }[] };
  refused: readonly { family: string; reason: string; count: number }[];
  /** The newest refusals, newest first. */
  refusals: readonly { family: string; reason: string; service: string; labels: string; at: string }[];
  conflicts: readonly string[];
  drops: readonly { component: string; reason: string; count: number }[];
}

/** The content of `/api/status`, the status page and `svc-agent status`. All of it is derived, and none of it is secret. */
export interface StatusReport extends StatusFacts {
  /** Whether everything is well, in one sentence, and what is wrong. */
  verdict: Verdict;
  /** Problems of the last 30 days that are over, newest first. */
  incidents: readonly Incident[];
  /** What changed in the last 30 days, newest first. */
  changes: readonly Change[];
  /** The end of the planned work that is under way by an announcement or in a window, RFC 3339. */
  maintenance?: string;
  /** The reason for the planned work, while it is under way. */
  maintenanceReason?: string;
}
