import type { BackupType } from '../../core/reasons.ts';
import type { ProbeReport, ProbeResult } from '../../probes/runner/probe-state.ts';
import type { LogFault } from '../../sources/logs/faults/file-faults.ts';
import type { LoggedError } from '../../sources/logs/metrics/last-errors.ts';
import type { ScrapeStatus } from '../../sources/scrape/scrape-status.ts';
import type { StatsdStatus } from '../../sources/statsd/source.ts';
import type { ReporterStatus } from '../reporters.ts';

export type ProblemSeverity = 'critical' | 'warning';

/** One thing that is wrong. */
export interface Problem {
  /** The same as long as the problem lasts: its kind and what it is about. */
  id: string;
  severity: ProblemSeverity;
  /** One clause: `role frontend is down: refused: connection refused`. Holds text from outside; escape it. */
  what: string;
  /** What to set or run, where one command or setting ends it. */
  fix?: string;
  /** Start of the problem, RFC 3339; absent when it is not known. */
  since?: string;
  /** Name of the alert whose runbook applies: `runbooks/<name>.md`. */
  runbook?: string;
}

/** `unknown`: nothing is known to be wrong, and not everything has been checked yet. */
export type Level = 'ok' | 'unknown' | ProblemSeverity;

export interface Verdict {
  /** True only if everything that is watched has been checked and nothing is wrong. */
  ok: boolean;
  level: Level;
  /** The sentence without its time, for readers that show the time themselves. */
  headline: string;
  /** One sentence for people: whether everything is well; if not, what is wrong and since when. */
  sentence: string;
  /** Critical ones first; causes before what they cause. */
  problems: readonly Problem[];
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
export type ProbeStatus = Omit<ProbeReport, 'sinceMs' | 'nextRunMs' | 'last' | 'history' | 'failures'> & {
  since?: string;
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
  /** Those with most entries of level error and fatal, then with most entries; at most 20. */
  loggers: readonly { service: string; logger: string; levels: Levels }[];
  /** How many loggers there are. */
  loggerCount: number;
  /** The newest entries of level error and fatal, newest first. */
  lastErrors: readonly Dated<LoggedError>[];
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
  config: { files: readonly string[]; lastReloadSuccessful: boolean; lastReloadError?: string };
  state: {
    directory: string;
    degraded?: string;
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
}
