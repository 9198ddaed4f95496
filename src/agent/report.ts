import type { BackupType } from '../core/reasons.ts';
import type { ProbeReport, ProbeResult } from '../probes/runner/probe-state.ts';
import type { LogFault } from '../sources/logs/faults/file-faults.ts';
import type { LoggedError } from '../sources/logs/metrics/last-errors.ts';
import type { ScrapeStatus } from '../sources/scrape/scrape-status.ts';
import type { StatsdStatus } from '../sources/statsd/source.ts';
import type { ReporterStatus } from './reporters.ts';

export type ProblemSeverity = 'critical' | 'warning';

/** What a problem would become worse by; `svc-agent status --check --for` asks for one of them. */
export const undertakings = ['deploy', 'upgrade', 'failback'] as const;
export type Undertaking = (typeof undertakings)[number];

/**
 * Something that shows a problem. `exit`: how a process ended, as it was announced; `conflict`: two sources that contradict
 * each other.
 */
export interface Evidence {
  source: 'probe' | 'value' | 'log' | 'exit' | 'conflict';
  /** One clause. Holds text from outside; escape it. */
  text: string;
  /** When it was seen, RFC 3339. */
  at?: string;
  /** The value as it is, as it usually is, and the limit that it exceeds, as texts with units. */
  value?: string;
  usual?: string;
  limit?: string;
}

/** Something that changed: a configuration, a schema, a version, a failover, a deploy that was announced. */
export interface Change {
  /** RFC 3339. */
  at: string;
  kind: ChangeKind;
  /** One clause. Holds text from outside; escape it. */
  what: string;
  /** When the maintenance is over, RFC 3339. */
  until?: string;
  /** The role whose process ended; for an exit only. */
  role?: string;
}

export const changeKinds = [
  ...['configuration', 'schema', 'version', 'restart', 'failover', 'certificate'],
  ...['deploy', 'maintenance', 'note', 'exit'],
] as const;
export type ChangeKind = (typeof changeKinds)[number];

/** One thing that is wrong. */
export interface Problem {
  /** The same as long as the problem lasts: its kind and what it is about. */
  id: string;
  /** A row of the table of kinds (src/agent/verdict/kinds.ts). */
  kind: string;
  /** What it is about, such as `main` or `frontend`; empty if the kind says it all. */
  subject: string;
  severity: ProblemSeverity;
  /** One clause: `role frontend is down: refused: connection refused`. Holds text from outside; escape it. */
  what: string;
  /** What to set or run, where one command or setting ends it. */
  fix?: string;
  /** What to look at and do first, as the alert has it. */
  firstSteps: string;
  /** When it began, RFC 3339. It does not change while the problem lasts, across restarts of the agent too. */
  since: string;
  /** Since when nobody knows whether it lasts, RFC 3339: what it was seen by cannot be read. */
  unreadSince?: string;
  evidence: readonly Evidence[];
  /** The problem that explains this one; of one that cannot be read, why not. */
  causedBy?: string;
  /** The problems that this one explains. */
  consequences: readonly string[];
  /** What changed in the half hour before it began, newest first; of causes alone. */
  changes?: readonly Change[];
  /** What should wait until it is over. */
  blocks: readonly Undertaking[];
  /** Name of the alert whose runbook applies: `runbooks/<name>.md`. */
  runbook?: string;
}

/** A problem that is over. */
export interface Incident {
  id: string;
  severity: ProblemSeverity;
  /** The kind and the subject of the problem, as labels of `svc_incident`. */
  cause: string;
  subject: string;
  what: string;
  /** How it ended: `store main recovered`. */
  over: string;
  /** RFC 3339. */
  start: string;
  end: string;
  durationSeconds: number;
  /** What it took down: `4 roles and 3 domains`. */
  consequences?: string;
  changes?: readonly Change[];
}

/** `unknown`: nothing is known to be wrong, and not everything has been checked yet, or can be read. */
export type Level = 'ok' | 'unknown' | ProblemSeverity;

export interface Verdict {
  /** True only if everything that is watched has been checked and nothing is wrong. */
  ok: boolean;
  level: Level;
  /** The sentence without its times, for readers that show the time themselves. */
  headline: string;
  /** One sentence for people: whether everything is well; if not, the cause, since when, and what it took down. */
  sentence: string;
  /** The first problem that no other one explains; absent if nothing is wrong. */
  cause?: Pick<Problem, 'id' | 'kind' | 'subject' | 'what' | 'since'>;
  /** Critical ones first; causes before what they cause. */
  problems: readonly Problem[];
}

/** A value of the service above the limit of an alert, by the agent's own values. */
export interface Exceeded {
  /** The kind of problem that it is. */
  kind: string;
  /** Labels that say whose value it is. */
  about: Readonly<Record<string, string>>;
  value: string;
  usual?: string;
  limit: string;
  /** The metrics and logs of roles that it is read from: `page/history`. */
  from?: readonly string[];
  /** When it was first above the limit, RFC 3339. */
  since: string;
  /** Of what shows that a problem which has begun goes on, and is none by itself. */
  onlyGoesOn?: true;
  /**
   * Of what is within the limit again, and no problem, only because these of `from` have counted nothing since it was above:
   * nobody knows whether the problem lasts.
   */
  silent?: readonly string[];
  /** Of what paused, though it may be above the limit all the time: when it paused, and when it began again, RFC 3339. */
  pause?: { from: string; until: string };
}

/** One file the agent follows. */
export interface LogFileReport {
  path: string;
  services: readonly string[];
  offset: number;
  lagBytes: number;
  /** `following`, or why it is not read right now. */
  state: string;
}

/** What prevents a log from being written where the agent reads it. */
export type LogFaultReport = Omit<LogFault, 'sinceMs'> & { since: string };

export type Dated<T extends { atMs: number }> = Omit<T, 'atMs'> & { at: string };

/** State of a probe, as `/probes` and the status show it. */
export type ProbeStatus = Omit<
  ProbeReport,
  'sinceMs' | 'failingSinceMs' | 'nextRunMs' | 'last' | 'history' | 'failures'
> & {
  since?: string;
  failingSince?: string;
  nextRun: string;
  last?: Dated<ProbeResult>;
};

/** Log entries by level. */
export type Levels = Readonly<Record<string, number>>;

/** The entries of level error and fatal. */
export const severeEntries = ({ error = 0, fatal = 0 }: Levels): number => error + fatal;

/** Summary of the logs; counts are those of `svc_log_entries_total`. */
export interface EntriesReport {
  services: readonly { service: string; levels: Levels }[];
  /** The loggers with most entries of level error and fatal, then with most entries; at most 20. */
  loggers: readonly { service: string; logger: string; levels: Levels }[];
  /** How many loggers there are. */
  loggerCount: number;
  /** The newest entries of level error and fatal, newest first. */
  lastErrors: readonly Dated<LoggedError>[];
  /** The newest few entries of level fatal, and of level error, by service, newest first. */
  lastWords: readonly { service: string; entries: readonly Dated<LoggedError>[] }[];
}

/** A domain, as last described; the probe `domain/<domain>` has the rest. */
export interface DomainReport {
  domain: string;
  activeCluster?: string;
  failovers: number;
  lastFailover?: string;
}

/** A backup's objectives against its evidence; times RFC 3339, spans in seconds. */
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

/** Everything that a verdict is based on. */
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
  /** `changedAt`: when another configuration was taken last; absent while it is that of the start. */
  config: {
    files: readonly string[];
    lastReloadSuccessful: boolean;
    lastReloadError?: string;
    changedAt?: string;
    /** The service's dynamic configuration, and when it was changed last; without a time if it cannot be read. */
    dynamic?: { file: string; changedAt?: string };
  };
  state: {
    directory: string;
    /** The step of a commit that fails. */
    degraded?: string;
    /** What the system answered to it. */
    error?: string;
    sequence: number;
    lastCommitAt?: string;
    commitFailures: number;
  };
  listeners: readonly { listener: string; address: string; tls: boolean }[];
  /** The agent's own process. */
  process: { rssBytes: number; heapBytes: number; cpuSeconds: number };
  logs: readonly LogFileReport[];
  logFaults: readonly LogFaultReport[];
  entries: EntriesReport;
  scrapes: readonly (ScrapeStatus & { service: string })[];
  statsd: readonly (StatsdStatus & { service: string })[];
  probes: readonly ProbeStatus[];
  /** Restarts that were seen, by role. */
  restarts: Readonly<Record<string, number>>;
  domains: readonly DomainReport[];
  /** Lag between two clusters, where it is known. */
  replication: readonly { source: string; target: string; lagSeconds: number }[];
  /** Values above the limits of alerts. */
  exceeded: readonly Exceeded[];
  /** By role, the share of the persistence errors in its log that its own metrics show; only while it logs any. */
  telemetryTruth: Readonly<Record<string, number>>;
  /** The pages and logs that have counted anything since the agent started, such as `page/history`. */
  counting: readonly string[];
  /** Versions that roles report of themselves. */
  versions: Readonly<Record<string, string>>;
  backups: readonly BackupReport[];
  /** Earliest expiry among the certificates that a probe's target shows. */
  certificates: readonly { probe: string; notAfter: string }[];
  reporters: readonly ReporterStatus[];
  series: { total: number; limit: number; families: readonly { family: string; series: number }[] };
  refused: readonly { family: string; reason: string; count: number }[];
  /** The newest refusals, newest first. */
  refusals: readonly { family: string; reason: string; service: string; labels: string; at: string }[];
  conflicts: readonly string[];
  drops: readonly { component: string; reason: string; count: number }[];
}

/** What `/api/status`, the status page and `svc-agent status` show; all of it derived, none of it secret. */
export interface StatusReport extends StatusFacts {
  /** Whether everything is well, in one sentence, and what is wrong. */
  verdict: Verdict;
  /** Problems of the last 30 days that are over, newest first. */
  incidents: readonly Incident[];
  /** What changed in the last 30 days, newest first. */
  changes: readonly Change[];
  /** The end of the planned work that is under way, RFC 3339, by an announcement or by a window. */
  maintenance?: string;
  /** What is done, while it is. */
  maintenanceReason?: string;
}
