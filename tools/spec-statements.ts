/**
 * What the specification of the watched service says, statement by statement and in our own words, and what holds it.
 * `held` names a test file below `test` without its ending, and after a colon a part of its text, such as a title.
 */
export interface SpecStatement {
  says: string;
  held?: readonly string[];
  /** What is not done, or done otherwise, and why. */
  but?: string;
}

/** Statements by section of the specification. */
export const specStatements: Readonly<Record<string, readonly SpecStatement[]>> = {
  'What the service does': [
    {
      says: 'Four roles: frontend, history, matching, worker.',
      held: ['e2e/relay', 'unit/config/service-config'],
    },
    {
      says: 'Persistence and visibility data, configuration, and archived data are stored.',
      held: ['e2e/stores', 'e2e/domains-and-archives'],
    },
    {
      says: 'Workflow code is no part of a backup.',
      but: 'Nothing to do: the agent backs up databases, logs and configuration only.',
    },
    { says: 'A wide-column store.', held: ['integration/cassandra'] },
    {
      says: 'A MySQL-compatible store.',
      held: ['integration/mysql'],
      but: 'The tests run MariaDB; MySQL is played from recorded answers.',
    },
    { says: 'A PostgreSQL-compatible store.', held: ['integration/postgres'] },
    { says: 'Each store has a persistence and a visibility database.', held: ['e2e/stores'] },
    {
      says: 'Completed workflows are archived to object or file storage.',
      held: ['integration/archives: an object store', 'integration/archives: a file archive'],
    },
    {
      says: 'A global domain is active in exactly one cluster.',
      held: ['unit/probes/domains/failover-version', 'integration/domains'],
    },
    { says: 'Metrics, structured logs and a health endpoint are reported.', held: ['e2e/shipped-system'] },
    {
      says: 'Global domains and archival are eventually consistent.',
      held: ['unit/probes/domains/failover-readiness'],
    },
    { says: 'Failover is per domain.', held: ['e2e/failover.long: a domain fails over'] },
    { says: 'Within a cluster state is strongly consistent.', but: 'Nothing to observe.' },
    {
      says: 'The API to start, signal and query workflows is not specified.',
      but: 'Outside of what the agent covers.',
    },
  ],
  Domain: [
    { says: 'The name selects a domain in the client.', held: ['unit/probes/domains/command'] },
    { says: 'Whether it is global.', held: ['unit/probes/domains/describing'] },
    { says: 'Its active cluster.', held: ['integration/domains: shows all that is said of it'] },
    {
      says: 'The clusters that it spans.',
      held: ['integration/domains: spans fewer clusters than suggested'],
    },
    {
      says: 'Its retention in days, 7 if not set.',
      held: ['unit/probes/domains/own-archives: default retention'],
    },
    { says: 'Its description.', held: ['unit/probes/domains/own-archives: description'] },
    {
      says: 'The active cluster of the replication configuration.',
      held: ['unit/probes/domains/describing'],
    },
    {
      says: 'The failover history; the fields of its entries are not specified.',
      held: ['unit/probes/domains/failovers'],
    },
    { says: 'Other fields are not specified.', held: ['unit/probes/domains/describing'] },
    { says: 'Its own archival settings.', held: ['unit/probes/domains/own-archives: archive of its own'] },
  ],
  'Cluster group metadata': [
    { says: 'The step between failover versions.', held: ['unit/config/clusters'] },
    {
      says: 'The primary cluster and the own cluster.',
      held: ['unit/config/clusters', 'unit/config/service-config: cluster tag is known in every scope'],
    },
    {
      says: 'One entry per cluster: enabled, initial version, name and address for calls.',
      held: ['unit/probes/clusters/plan', 'integration/clusters: the peer is called by its rpcName'],
    },
    {
      says: 'The transport; only grpc is shown.',
      held: ['integration/clusters'],
      but: 'With another transport only the connection is checked, and check says so.',
    },
    { says: 'Each cluster has an initial version of its own.', held: ['unit/config/bad'] },
    {
      says: 'A cluster may not take part.',
      held: [
        'unit/probes/clusters/plan: one for each enabled peer',
        'unit/config/clusters: a disabled one are not',
      ],
    },
  ],
  'Archival configuration': [
    {
      says: 'History and visibility have a section each, with a status.',
      held: ['unit/probes/archival/plan'],
    },
    { says: 'Reads may be enabled.', held: ['integration/archive-reads: reads'] },
    {
      says: 'Providers are keyed by name; the object store has a region and an endpoint.',
      held: ['integration/archives', 'unit/probes/object-store/endpoint'],
    },
    { says: 'Defaults of domains: status and URI.', held: ['unit/probes/archival/plan'] },
    {
      says: 'URIs of two object stores and of files.',
      held: ['unit/probes/archival/uri'],
      but: 'Schemes other than s3, gs and file cannot be checked; the finding says so.',
    },
  ],
  'Metrics configuration': [
    {
      says: 'One block per service with at most one reporter.',
      held: ['e2e/one-reporter', 'unit/config/bad'],
    },
    {
      says: 'A pull reporter, recommended for production.',
      held: ['integration/pull/pull', 'unit/cli/init: everything is on'],
    },
    { says: 'A push reporter that supports tags.', held: ['unit/push/lines', 'integration/push/push'] },
    {
      says: 'A hosted reporter; its fields are not specified.',
      held: ['e2e/hosted'],
      but: 'The agent speaks OTLP and remote write.',
    },
    { says: 'Global tags.', held: ['unit/core/registry'] },
    {
      says: 'A prefix for names, empty if not set.',
      held: ['unit/pull/text: has its prefix before every name', 'unit/push/lines: prefixes'],
    },
    { says: 'A reporting interval, 1s if not set.', held: ['unit/config/defaults', 'unit/push/rhythm'] },
    { says: 'The address of the scrape endpoint is required.', held: ['unit/config/bad'] },
    { says: 'The timer type is histogram if not set.', held: ['unit/config/defaults'] },
    {
      says: 'Bucket boundaries in seconds; nine are shipped.',
      held: ['unit/core/histogram', 'unit/config/defaults'],
    },
    {
      says: 'The push reporter has an address, a prefix, a flush interval and a flush size.',
      held: ['unit/push/packets', 'unit/push/rhythm'],
      but: 'Defaults are not specified: the interval is the reporting interval, the size 1432 bytes. The values of the sample, 10s and 512 bytes, are stated to be none.',
    },
  ],
  'Logging configuration': [
    {
      says: 'Five levels, lower case; upper case is a fault.',
      held: ['unit/config/service-config: are judged by the spec'],
    },
    { says: 'JSON or console encoding.', held: ['unit/logs/json-reader', 'unit/logs/console'] },
    {
      says: 'An output file, whose directory exists and is writable.',
      held: ['unit/config/service-config: are judged by the spec'],
    },
    { says: 'Standard output beside console.', held: ['unit/config/service-config'] },
    {
      says: 'The name of the level key.',
      held: ['unit/logs/entries: with a level key of the configuration'],
    },
    { says: 'Production logs at info: debug and console get advice.', held: ['unit/config/service-config'] },
  ],
  'Log entry': [
    { says: 'Time, level, message and logger.', held: ['unit/logs/entries', 'unit/logs/timestamp'] },
    {
      says: 'Domain, workflow, run and shard as context, in every entry.',
      held: ['unit/logs/rules'],
      but: 'Workflow and run are never labels, because the cardinality rules forbid it.',
    },
  ],
  'Health response': [
    {
      says: 'A JSON object with ok and msg.',
      held: ['unit/probes/health/answer', 'integration/health-http'],
    },
    {
      says: 'Every service has the endpoint; its port differs.',
      held: ['unit/probes/health/plan'],
      but: 'Known servers answer by gRPC, and their worker not at all: the agent takes grpc:// and tcp://, too.',
    },
    { says: 'It covers the start, persistence and the ring.', held: ['unit/probes/health/answer'] },
    {
      says: 'It is meant for load balancers and orchestrators.',
      held: ['integration/deploy/kubernetes'],
      but: 'The agent’s own health speaks of the agent alone.',
    },
    { says: 'The answer of a failed check is not specified.', held: ['fault/health-answer'] },
  ],
  'Metric tags': [
    { says: 'The service.', held: ['e2e/product-names'] },
    {
      says: 'Operation, domain, task list, workflow type and activity type.',
      held: ['unit/core/vocabulary', 'integration/scrape/recorded-pages'],
    },
    {
      says: 'Of the execution of a workflow only its ids and its type are known.',
      held: ['unit/core/catalog: uses only the tags of the specification'],
    },
  ],
  'Metric catalog': [
    {
      says: 'Process and memory, of all services.',
      held: ['unit/core/catalog', 'integration/scrape/recorded-pages'],
    },
    {
      says: 'Persistence by operation.',
      held: ['integration/scrape/recorded-pages', 'integration/scrape/histogram-mode'],
    },
    {
      says: 'The names of operations, of which four are shown.',
      held: ['unit/logs/persistence: known operations and new ones', 'integration/scrape/recorded-pages'],
    },
    {
      says: 'Clients of frontend, history and matching.',
      held: ['unit/core/catalog', 'integration/scrape/recorded-pages'],
    },
    { says: 'The lifecycle of workflows.', held: ['unit/core/catalog'] },
    { says: 'Latencies of tasks.', held: ['unit/core/catalog'] },
    { says: 'History and matching.', held: ['unit/core/catalog'] },
    {
      says: 'Minus and dot become an underscore; only letters, digits and underscores remain.',
      held: ['unit/core/names: sanitizeName'],
    },
    { says: 'The emitted name may differ from the internal one.', held: ['unit/core/name-conflicts'] },
  ],
  'States and transitions': [
    {
      says: 'A closed workflow is archived after its retention.',
      held: ['unit/probes/archival/unarchived'],
      but: 'The agent counts from completions and the newest object; it does not look into the service’s queue.',
    },
    { says: 'The primary records are then deleted.', held: ['unit/probes/archival/unarchived'] },
    {
      says: 'Archived data stays readable.',
      held: ['integration/archive-reads: reads'],
      but: 'One object is read, the newest; it is not decoded.',
    },
    {
      says: 'Archival is one-way: nothing is moved back to the primary store.',
      but: 'No procedure of the agent does that.',
    },
    {
      says: 'Only a global domain fails over, and only to a cluster of its list.',
      held: [
        'unit/recovery/checks-of-clusters: a local domain',
        'unit/recovery/checks-of-clusters: another cluster',
      ],
    },
    {
      says: 'A failover is recorded in the history, and replication goes on.',
      held: ['unit/probes/domains/failovers', 'e2e/failover.long'],
    },
    {
      says: 'A failback needs a cluster that has caught up.',
      held: ['e2e/failover.long: a failback while replication is behind'],
    },
    {
      says: 'Workflow outcomes: started, completed, failed, timeout, canceled, continued as new.',
      held: ['unit/core/catalog'],
    },
  ],
  Endpoints: [
    { says: 'GET /health.', held: ['integration/health-http'] },
    {
      says: 'GET /metrics in the text format.',
      held: ['unit/pull/text', 'integration/scrape/prometheus-agrees'],
    },
    { says: 'Payloads of the workflow API are not specified.', but: 'Outside of what the agent covers.' },
  ],
  'Command-line operations': [
    {
      says: 'Domains are registered, described and updated.',
      held: ['e2e/failover.long'],
      but: 'The agent describes and updates; registering is left to the operator.',
    },
    {
      says: 'Workflows are shown and listed, archived ones too.',
      held: ['e2e/recover'],
      but: 'Used for the checks after a recovery only.',
    },
    {
      says: 'Administration looks at, repairs and deletes single workflows, re-syncs a domain and scans a store.',
      held: ['unit/monitoring/runbooks: is used, with each of its options'],
      but: 'The runbooks tell the operator when; the agent runs none of these.',
    },
    {
      says: 'Each operation has the options of the table, and no others.',
      held: ['unit/monitoring/runbooks: the service’s own tools are asked only for what the spec has'],
    },
    {
      says: 'The schema tool reports the version of the schema.',
      held: ['unit/probes/stores/schema-version'],
      but: 'The agent reads the table by default; schema.command runs the tool.',
    },
    {
      says: 'The output of these commands is not specified.',
      held: ['unit/probes/domains/describing', 'fault/domain-command-fails'],
    },
  ],
  'Backup and restore': [
    { says: 'Both databases are backed up.', held: ['unit/probes/backups/assessment'] },
    {
      says: 'Wide-column: a snapshot on every node, and incremental backups.',
      held: ['e2e/cassandra-two-nodes.long', 'e2e/cassandra-incrementals.long'],
    },
    {
      says: 'Incremental backups of a node have to be turned on, which takes a restart.',
      held: ['e2e/cassandra-incrementals.long: a node that writes no incremental backups'],
    },
    {
      says: 'MySQL-compatible: a dump in one transaction, or a physical backup with incrementals.',
      held: ['integration/backups/mariadb', 'e2e/recover-mariadb.long'],
    },
    {
      says: 'PostgreSQL-compatible: a dump in custom format, or a base backup and the log.',
      held: ['integration/backups/postgres', 'e2e/recover-base-backup.long'],
    },
    {
      says: 'A dump is verified after it is made.',
      held: ['fault/backup-dump-proves-nothing', 'integration/backups/damaged-log'],
    },
    {
      says: 'Backups are uploaded off-site, and old ones are deleted.',
      held: ['integration/backups/offsite', 'unit/cli/backup-offsite', 'e2e/backup-plan.long'],
    },
    {
      says: 'The schedule: types, frequency, retention, RTO and RPO.',
      held: ['unit/probes/backups/readiness', 'e2e/backup-plan.long'],
    },
    {
      says: 'Full backups and continuous archiving together have the best RPO.',
      held: ['e2e/recovery-point.long'],
    },
  ],
  'Recovery procedures': [
    {
      says: 'Database corruption: stop, restore, verify the schema, restart, verify workflows.',
      held: ['e2e/recover'],
    },
    {
      says: 'Loss of a datacenter: confirm, fail over, describe, repoint, watch the lag.',
      held: ['e2e/failover.long: a domain fails over'],
      but: 'Names and load balancers are repointed by a configured command, or by hand.',
    },
    {
      says: 'Failback: confirm, wait, update, repoint.',
      held: ['e2e/failover.long: a failback while replication is behind'],
    },
    {
      says: 'Loss of a cluster: provision, restore, deploy, configure, check, verify.',
      held: ['e2e/recover-cluster-loss.long'],
      but: 'Machines are provisioned by the operator.',
    },
    {
      says: 'The symptoms that each procedure is for.',
      held: ['unit/monitoring/runbooks: there is one for each recovery procedure'],
    },
  ],
  'Authentication and events': [
    { says: 'Authentication is not specified.', held: ['integration/pull/auth', 'fault/health-certificate'] },
    {
      says: 'Event notifications are not specified.',
      held: ['e2e/status'],
      but: 'POST /event is the agent’s own.',
    },
  ],
  Errors: [
    { says: 'More than one reporter is fatal.', held: ['unit/config/bad'] },
    {
      says: 'A level in upper case is a fault.',
      held: ['unit/config/service-config: are judged by the spec'],
    },
    {
      says: 'Persistence failures are in logs and are counted by operation.',
      held: ['unit/logs/persistence'],
    },
    { says: 'Failures between roles are counted as client errors.', held: ['unit/core/catalog'] },
    {
      says: 'Fatal entries mark the end of a service.',
      held: [
        'unit/logs/entries',
        'unit/agent/verdict/kinds: logged fatal errors',
        'integration/rules/alerts',
      ],
    },
    { says: 'Codes of the workflow API are not specified.', but: 'Outside of what the agent covers.' },
  ],
  Limits: [
    {
      says: 'The defaults: retention, interval, timer type, one reporter.',
      held: ['unit/config/defaults', 'unit/probes/domains/own-archives: default retention'],
    },
    {
      says: 'Three or more clusters are suggested for global domains.',
      held: ['integration/domains: spans fewer clusters than suggested'],
    },
    {
      says: 'Thirteen alerts with their thresholds.',
      held: ['integration/rules/shipped', 'integration/rules/alerts'],
    },
    { says: 'No workflow ids, run ids, times or user ids in tags.', held: ['unit/core/forbidden'] },
    {
      says: 'Workflow type, domain and operation are the tags to use.',
      held: ['unit/core/catalog: uses only the tags of the specification'],
    },
    {
      says: 'Raw metrics are kept 15 to 30 days, aggregates 90 to 365, logs 7 to 30.',
      held: ['integration/deploy/versions: as long as the specification recommends'],
      but: 'Set where Prometheus is started and where logs rotate, as the shipped files say.',
    },
    { says: 'Quotas of the workflow API are not specified.', but: 'Outside of what the agent covers.' },
  ],
  Versioning: [
    { says: 'Failover versions differ by cluster.', held: ['unit/probes/domains/failover-version'] },
    {
      says: 'The version of the schema is read, and checked after a restore.',
      held: ['unit/probes/stores/schema-version', 'e2e/recover'],
    },
    {
      says: 'Traces go through the RPC layer; their configuration is not specified.',
      held: ['e2e/tracing'],
      but: 'The agent traces its own work and hands the trace on; it does not change the service.',
    },
    { says: 'Versions of the API are not specified.', but: 'Outside of what the agent covers.' },
  ],
};
