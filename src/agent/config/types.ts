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

/** The address on which the admin listener listens, and which commands query, unless another is configured. */
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
  /** Global tags, with names as they are written. `cluster` is filled in if it is known. */
  tags: Readonly<Record<string, string>>;
  prefix: string;
  reportingIntervalMs: number;
  reporter?: ReporterConfig;
}

export interface ServiceConfig {
  /** The value of `svc_service`. */
  name: string;
  /**
   * Whether the service is in `roles`. If not, the agent validates it and does not monitor it; its log files still belong to it.
   */
  selected: boolean;
  logs?: LogsOptions;
  health?: HealthOptions;
  scrape?: ScrapeOptions;
  statsd?: StatsdOptions;
  /** `auto`, the name of a shipped table, or a table. */
  vocabulary: string | InlineTable;
  /** The service's own block. A service without one shares the top-level `metrics`. */
  metrics?: MetricsConfig;
}

interface LimitsConfig {
  /** The maximum number of label sets of one metric. */
  seriesPerMetric: number;
  /** The maximum number of label sets in total. */
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
  /** host:port that serves only `/health` and `/ready`. */
  health?: string;
  /** Further names in a Host header, such as that of a proxy. */
  allowedHosts?: readonly string[];
  /** The token of `POST /event`; without a token that path does not exist. */
  events?: { token: Secret };
  /** Addresses of other programs to which the page links. */
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

/** The days of the week, in the spelling of the configuration. */
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
  /** The start of the window, in minutes after midnight. */
  start: number;
  /** The length of the window, in ms. */
  duration: number;
  /** The IANA name of the time zone. */
  timeZone: string;
  /** The reason, which is shown to people. */
  reason: string;
}

/** `agent.yaml`, checked, with defaults and discovered settings filled in: plain data that can be sent between processes. */
export interface AgentConfig {
  /** Selected services in the order of `services`. */
  roles: readonly string[];
  /** The paths of the service's own files, as given. */
  serviceConfig: readonly string[];
  /** The absolute path of the service's dynamic configuration file, if its files name one. */
  dynamicConfig?: string;
  scope: Scope;
  instance: string;
  /** The absolute path of the state directory. */
  stateDirectory: string;
  /** Whether each commit is synced to the disk, so that it survives a power loss. */
  stateFsync: boolean;
  metrics: MetricsConfig;
  /** Services in the file's order: if two services send the same series, the first one's is used. */
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
  /** The admin listener; missing if it is turned off (`admin: ~`). */
  admin?: AdminConfig;
  log: LogOptions;
}

/** A place in a file; line and column count from 1. */
export interface Position {
  file: string;
  line: number;
  column: number;
}

/** A fault in a file. Its `where` is `FILE:LINE:COL: path`. */
export interface PlacedFault extends Fault {
  place?: Position;
  /** The path inside the configuration; empty for the file itself. */
  path: string;
}

/** A value from the service's own files. */
export interface Discovered {
  /** The path in the agent's configuration that the value fills. */
  path: string;
  /** The value as plain text for people; never a secret. */
  value: string;
  place: Position;
}

/** The result of loading; plain data, without secrets outside `config`. */
export interface Loaded {
  /** The configuration; missing if there are faults. */
  config?: AgentConfig;
  /** Faults in `agent.yaml`, or of the files themselves; each is fatal. */
  faults: readonly PlacedFault[];
  /** Warnings about `agent.yaml`; none is fatal. */
  warnings: readonly PlacedFault[];
  /** Findings in the service's own files, in secrets and in certificates: `check` fails, `run` warns and continues. */
  findings: readonly PlacedFault[];
  /** Advice about valid settings of the service: `check` shows it, and nothing fails. */
  advice: readonly PlacedFault[];
  discovered: readonly Discovered[];
  /** Every configuration file that was read or is missing, absolute. */
  files: readonly string[];
  /** The files to watch, with the digest of the content that was read; undefined for secrets and certificates. */
  watched: Readonly<Record<string, string | undefined>>;
}

/** Names of the files, and other options. The command line overrides the environment, which overrides the file. */
export interface LoadRequest {
  /** The path of `agent.yaml`; without it the default places are tried. */
  file?: string;
  /** Replaces `serviceConfig` of the file unless empty. */
  serviceConfig?: readonly string[];
  /** Replaces `SVC_AGENT_ROLES`, which replaces `roles` of the file. */
  roles?: readonly string[];
  /** A fault that was found while the configuration was built; loading adds its place in the file. */
  built?: Fault;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
}

/** A configuration without faults. */
export type ReadyConfig = Loaded & { config: AgentConfig };

/** A `metrics` block and the services whose series are reported there. */
export interface Block {
  /** The place of the block in the configuration, which is also the name of its listener in the log. */
  readonly name: string;
  readonly metrics: MetricsConfig;
  /** Whether series of this service are reported here; `''` stands for series of no service. */
  shows(service: string): boolean;
}

/**
 * One block per selected service that has its own, and the top-level block for everything else: series that belong to no service,
 * and lines of a shared file that name no role.
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
