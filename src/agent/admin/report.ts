import type { ScrapeStatus } from '../../sources/scrape/tally.ts';
import type { StatsdStatus } from '../../sources/statsd/source.ts';
import type { ProbeStatus } from './probes.ts';

/** What `/api/status`, the status page and `svc-agent status` show; all of it derived, none of it secret. */
export interface StatusReport {
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
  logs: readonly LogFileReport[];
  scrapes: readonly (ScrapeStatus & { service: string })[];
  statsd: readonly (StatsdStatus & { service: string })[];
  probes: readonly ProbeStatus[];
  series: { total: number; families: readonly { family: string; series: number }[] };
  refused: readonly { family: string; reason: string; count: number }[];
  conflicts: readonly string[];
  drops: readonly { component: string; reason: string; count: number }[];
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
