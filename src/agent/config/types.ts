import type { ListenerAuth, ListenerTls, Secret } from '../../core/access.ts';
import type { Fault } from '../../core/errors.ts';
import type { LogLevel } from '../../core/ports.ts';
import type { ArchivalOptions, DomainDefaults } from '../../probes/archival/archives.ts';
import type { BackupOptions } from '../../probes/backups/block.ts';
import type { ClusterGroupOptions } from '../../probes/clusters/block.ts';
import type { DomainsOptions } from '../../probes/domains/block.ts';
import type { HealthOptions } from '../../probes/health/block.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import type { HostedOptions, PullOptions, PushOptions } from '../../reporters/block.ts';
import type { LogsOptions } from '../../sources/logs/options.ts';
import type { ScrapeOptions } from '../../sources/scrape/block.ts';
import type { StatsdOptions } from '../../sources/statsd/block.ts';
import type { InlineTable } from '../../sources/vocabularies.ts';
import type { RecoveryOptions } from './recovery-block.ts';

/** Where the admin listener listens, and where commands look for it, unless it is configured. */
export const defaultAdminAddress = '127.0.0.1:9465';

export const scopes = ['host', 'cluster', 'all'] as const;
export type Scope = (typeof scopes)[number];

/** The pull reporter with TLS and authentication of its listener. */
interface PullReporter extends PullOptions {
  tls?: ListenerTls;
  auth?: ListenerAuth;
}

/** The one reporter of a block. */
export type ReporterConfig =
  | { kind: 'pullmetrics'; options: PullReporter }
  | { kind: 'pushmetrics'; options: PushOptions }
  | { kind: 'hostedmetrics'; options: HostedOptions };

/** A `metrics` block (spec, Metrics configuration); without a reporter it only sets tags and prefix. */
export interface MetricsConfig {
  /** Global tags; names are as written, `cluster` is filled in where it is known. */
  tags: Readonly<Record<string, string>>;
  prefix: string;
  reportingIntervalMs: number;
  reporter?: ReporterConfig;
}

export interface ServiceConfig {
  /** The value of `svc_service`. */
  name: string;
  /** Whether it is in `roles`. If not, the agent validates it and does not monitor it; its log files remain its own. */
  selected: boolean;
  logs?: LogsOptions;
  health?: HealthOptions;
  scrape?: ScrapeOptions;
  statsd?: StatsdOptions;
  /** `auto`, the name of a shipped table, or a table. */
  vocabulary: string | InlineTable;
  /** Its own block; without one it shares the top-level `metrics`. */
  metrics?: MetricsConfig;
}

interface LimitsConfig {
  /** Label sets of one metric. */
  seriesPerMetric: number;
  /** Label sets in all. */
  series: number;
  forbiddenTags: readonly string[];
  /** Tags whose values are not checked for ids and times. */
  allowValues: readonly string[];
}

export interface AdminLinks {
  grafana?: string;
  prometheus?: string;
  alertmanager?: string;
}

export interface AdminConfig {
  /** host:port; port 0 selects a free port. */
  listenAddress: string;
  /** host:port that answers `/health` and `/ready` alone. */
  health?: string;
  /** Further names in a Host header, such as that of a proxy. */
  allowedHosts?: readonly string[];
  /** Token of `POST /event`; without it there is no such path. */
  events?: { token: Secret };
  /** Addresses of other programs that the page links to. */
  links?: AdminLinks;
  tls?: ListenerTls;
  auth?: ListenerAuth;
}

/** The agent's own `log` block, in the spec's keys (spec, Logging configuration). */
export interface LogOptions {
  level: LogLevel;
  encoding: 'json' | 'console';
  outputFile?: string;
  stdout: boolean;
  levelKey: string;
}

/** `agent.yaml`, checked, defaults and what was discovered filled in. Plain data, as it is sent between processes. */
export const weekdays = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const;

/** A weekly window in which work is planned, by the wall clock of its time zone. */
export interface MaintenanceWindow {
  days: readonly (typeof weekdays)[number][];
  /** Minutes after midnight. */
  start: number;
  /** ms */
  duration: number;
  /** IANA name. */
  timeZone: string;
  /** Shown to people. */
  reason: string;
}

export interface AgentConfig {
  /** Selected services in the order of `services`. */
  roles: readonly string[];
  /** The service's own files, as given. */
  serviceConfig: readonly string[];
  /** The file of the service's dynamic configuration, absolute, if its files name one. */
  dynamicConfig?: string;
  scope: Scope;
  instance: string;
  /** Absolute. */
  stateDirectory: string;
  /** Whether each commit is synced to the disk, against power loss. */
  stateFsync: boolean;
  metrics: MetricsConfig;
  /** In the file's order: if two services send the same series, the first keeps it. */
  services: readonly ServiceConfig[];
  stores: readonly StoreOptions[];
  clusterGroupMetadata?: ClusterGroupOptions;
  archival?: ArchivalOptions;
  domainDefaults?: DomainDefaults;
  domains?: DomainsOptions;
  backups: readonly BackupOptions[];
  recovery: RecoveryOptions;
  maintenance: { windows: readonly MaintenanceWindow[] };
  limits: LimitsConfig;
  /** Missing when turned off (`admin: ~`). */
  admin?: AdminConfig;
  log: LogOptions;
}

/** A place in a file; line and column count from 1. */
export interface Position {
  file: string;
  line: number;
  column: number;
}

/** A fault in a file; `where` already reads `FILE:LINE:COL: path`. */
export interface PlacedFault extends Fault {
  place?: Position;
  /** Path inside the configuration, empty for the file as such. */
  path: string;
}

/** A value that was taken from the service's own files. */
export interface Discovered {
  /** Path in the agent's configuration that it fills. */
  path: string;
  /** Plain text for people; never a secret. */
  value: string;
  place: Position;
}

/** The result of loading; plain data, without secrets outside `config`. */
export interface Loaded {
  /** Missing when there are faults. */
  config?: AgentConfig;
  /** In `agent.yaml`, or about the files as such; any of them is fatal. */
  faults: readonly PlacedFault[];
  /** In `agent.yaml`; none of them is fatal. */
  warnings: readonly PlacedFault[];
  /** In the service's own files, and secrets that are missing: `check` fails, `run` warns and continues. */
  findings: readonly PlacedFault[];
  /** Advice about valid settings of the service: `check` shows it, and nothing fails. */
  advice: readonly PlacedFault[];
  discovered: readonly Discovered[];
  /** Every configuration file that was read or is missing, absolute. */
  files: readonly string[];
  /** Files to watch, with the digest of the content that was read; undefined for secrets and certificates. */
  watched: Readonly<Record<string, string | undefined>>;
}

/** Names of the files. The command line overrides the environment, which overrides the file. */
export interface LoadRequest {
  /** `agent.yaml`; without it the default places are tried. */
  file?: string;
  /** Replaces `serviceConfig` of the file unless empty. */
  serviceConfig?: readonly string[];
  /** Replaces `SVC_AGENT_ROLES`, which replaces `roles` of the file. */
  roles?: readonly string[];
  /** A fault that was found while building the configuration; loading adds its place in the file. */
  built?: Fault;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
}

/** A configuration without faults. */
export type ReadyConfig = Loaded & { config: AgentConfig };

/** A `metrics` block and the services whose series are reported there. */
export interface Block {
  /** Its place in the configuration; the name of its listener in the log. */
  readonly name: string;
  readonly metrics: MetricsConfig;
  /** Whether series of this service (`''`: of no service) are reported here. */
  shows(service: string): boolean;
}

/**
 * One block per selected service that has its own, and the top-level one for everything else: what belongs to
 * no service, and lines of a shared file that name no role.
 */
export function blocksOf(config: AgentConfig): readonly Block[] {
  const own = config.services.filter((service) => service.selected && service.metrics);
  const apart = new Set(own.map((service) => service.name));
  const shared: Block = { name: 'metrics', metrics: config.metrics, shows: (service) => !apart.has(service) };
  return [
    shared,
    ...own.map(
      ({ name, metrics }): Block => ({
        name: `services.${name}.metrics`,
        metrics: metrics!,
        shows: (service) => service === name,
      }),
    ),
  ];
}

/** The block that reports a service's series. */
export function blockOf(blocks: readonly Block[], service: string): Block {
  return blocks.find((block) => block.shows(service))!;
}
