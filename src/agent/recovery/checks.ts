import { errorText } from '../../core/errors.ts';
import type { VerifyAnswer } from '../../probes/backups/evidence.ts';
import { runCommand } from '../../probes/command.ts';
import { type Finding, ProbeError, type ProbeRow } from '../../probes/probe.ts';
import type { AgentConfig } from '../config/types.ts';
import { advisory, type Check, type CheckAnswer, check, no, refusedBy, unknown, yes } from './check.ts';
import type { Commands, Subject } from './commands.ts';

interface StoreChecks {
  backupVerified(): Check;
  storeUp(): Check;
  /** The store answers; the database may be missing. */
  serverUp(): Check;
  /** The other databases of the configuration answer, one check for each. */
  otherDatabasesUp(): readonly Check[];
  schema(): Check;
  workflowsCounted(): Check;
  newestRow(): Check;
}

interface ServiceChecks {
  healthy(): readonly Check[];
  pollersBack(): Check;
  workflowsListed(): Check;
}

interface ClusterChecks {
  activeClusterDown(): Check;
  /** The standby cannot reach the active cluster either, according to a command of the configuration. */
  standbySeesItDown(): Check;
  clusterReachable(cluster: string): Check;
  replicationCaughtUp(cluster: string): Check;
}

interface DomainChecks {
  globalDomain(): Check;
  inClusters(cluster: string): Check;
  activeIn(cluster: string): Check;
  noDisagreement(): Check;
}

export type Checks = StoreChecks & ServiceChecks & ClusterChecks & DomainChecks;

type RunFinding = Finding & { ok: boolean };

/** Runs one probe now; undefined if the configuration has no such probe. */
export type RunProbe = (name: string) => Promise<RunFinding | undefined>;

interface ChecksDeps {
  config: Pick<AgentConfig, 'clusterGroupMetadata'>;
  rows: readonly Pick<ProbeRow, 'name' | 'kind'>[];
  runProbe: RunProbe;
  commands: Commands;
  /** Verifies a backup that the operator named. Without a named backup, the agent's own evidence counts. */
  verifyNamed?: () => Promise<VerifyAnswer>;
  /** The number of workers' polls that the matching role has counted; undefined if its page is not read. */
  pollsSeen?(): Promise<number | undefined>;
  /** The point in time to which the database is restored, ms since the epoch. */
  recoveryPointMs?: number;
  /** The environment of the commands that checks run. */
  env: Readonly<Record<string, string>>;
}

/** The greatest lag with which a cluster counts as caught up; the spec's alert is at 300 s. */
const caughtUpSeconds = 10;

/** How long a command of a check may take. */
const commandMs = 60_000;
const maxBytes = 16 << 20;

const gauge = ({ gauges = [] }: Finding, name: string) => gauges.find((sample) => sample.name === name);
const activeCluster = (finding: Finding) =>
  gauge(finding, 'svc_domain_active_cluster')?.labels.active_cluster;

export function createChecks(subject: Subject, deps: ChecksDeps): Checks {
  const clusterAnswers = createClusterAnswers(deps);
  return {
    ...storeChecks(subject, deps),
    ...serviceChecks(subject, deps),
    ...clusterChecks(subject, deps, clusterAnswers),
    ...domainChecks(subject, deps),
  };
}

/** The answer according to the probe's finding, or that nothing is known. */
async function asked(
  runProbe: RunProbe,
  name: string,
  answerOf: (finding: RunFinding) => CheckAnswer,
  missing = `not configured: there is no probe ${name}`,
): Promise<CheckAnswer> {
  const finding = await runProbe(name);
  return finding ? answerOf(finding) : unknown(missing);
}

const up = (runProbe: RunProbe, name: string) =>
  asked(runProbe, name, (finding) => (finding.ok ? yes(finding.msg) : no(finding.msg)));

const healthRowsOf = (rows: ChecksDeps['rows']) => rows.filter(({ kind }) => kind === 'health');

/** The output of a command. Throws `ProbeError`. */
async function output(words: readonly string[], env: ChecksDeps['env']): Promise<string> {
  const limits = { signal: AbortSignal.timeout(commandMs), maxBytes };
  return (await runCommand(words, { ...limits, env })).stdout;
}

function storeChecks(
  subject: Subject,
  { rows, runProbe, verifyNamed, commands, env, recoveryPointMs }: ChecksDeps,
): StoreChecks {
  const { store = '', database = '' } = subject;
  const probe = `store/${store}/${database}`;
  return {
    backupVerified: () =>
      check('backup_verified', 'a verified backup can be restored', async () => {
        if (verifyNamed) {
          const { result, msg } = await verifyNamed();
          return { holds: result === 'unknown' ? result : result === 'ok', msg: `${subject.backup}: ${msg}` };
        }
        return asked(runProbe, `recovery/${store}/${database}`, ({ details, msg }) =>
          details?.chain === undefined ? no(msg) : yes(msg),
        );
      }),
    storeUp: () => check('store_up', `${store} answers`, () => up(runProbe, probe)),
    serverUp: () =>
      check('server_up', `${store} is there`, () =>
        asked(runProbe, probe, ({ ok, reason, msg }) => {
          if (ok) return yes(`${store} answers`);
          return reason === 'database_missing' ? yes(`${store} answers, without the database`) : no(msg);
        }),
      ),
    otherDatabasesUp: () =>
      rows
        .filter(({ name, kind }) => kind === 'store' && name !== probe)
        .map(({ name }) => {
          const [, otherStore = '', otherDatabase = ''] = name.split('/');
          const text = `${otherDatabase} of ${otherStore} is there, too`;
          return check(name.replaceAll('/', '_'), text, () => up(runProbe, name));
        }),
    schema: () =>
      check('schema', 'the schema has the version that the service needs', () =>
        asked(runProbe, probe, (finding) => {
          const compatible = gauge(finding, 'svc_store_schema_compatible')?.value;
          if (compatible === undefined) return unknown(schemaFound(finding));
          return compatible === 1 ? yes('as expected or newer') : no(schemaFound(finding));
        }),
      ),
    workflowsCounted: () =>
      check('workflows_counted', `there are workflows in ${database} of ${store}`, async () => {
        const command = commands.named('countWorkflows');
        if (!command) return unknown('set recovery.commands.countWorkflows to let svc-agent count them');
        // The command fails if a table is missing.
        const counted = await output(command, env).catch(refusedBy);
        if (typeof counted !== 'string') return counted;
        const printed = counted.trim();
        if (!/^\d+$/.test(printed)) return unknown(`${command[0]} did not print a number`);
        return printed === '0' ? no('there are none') : yes(`${printed} workflows`);
      }),
    newestRow: () =>
      check('newest_row', 'the newest row is as old as the recovery point', async () => {
        const command = commands.named('newestRow');
        if (!command) return unknown('set recovery.commands.newestRow to let svc-agent compare it');
        const printed = await output(command, env).catch(refusedBy);
        if (typeof printed !== 'string') return printed;
        return newestAgainst(timeIn(printed.trim()), recoveryPointMs, subject.until);
      }),
  };
}

function serviceChecks(
  { domain = '' }: Subject,
  { rows, runProbe, commands, env, pollsSeen }: ChecksDeps,
): ServiceChecks {
  return {
    healthy() {
      const checks = healthRowsOf(rows).map(({ name }) => {
        const text = `${name.slice('health/'.length)} is healthy`;
        return check(name.replace('/', '_'), text, () => up(runProbe, name));
      });
      const none = async () => unknown('no role has a health check: set services.history.health');
      return checks.length > 0 ? checks : [check('roles_healthy', 'the roles are healthy', none)];
    },
    pollersBack() {
      let before: number | undefined;
      return advisory('pollers_back', 'workers poll for tasks', async () => {
        const polls = await pollsSeen?.();
        if (polls === undefined) return unknown('set services.matching.scrape to let svc-agent check it');
        before ??= polls;
        return polls > before
          ? yes(`${polls - before} polls since the start`)
          : no('no poll has been counted yet');
      });
    },
    workflowsListed: () =>
      check('workflows_listed', `the service lists workflows of ${domain || 'a domain'}`, async () => {
        if (domain === '') return unknown('name a domain with --domain');
        const command = commands.client('--domain', domain, 'workflow', 'list');
        if (!command) return unknown('set recovery.client to let svc-agent list them');
        const listed = linesOf(await output(command, env));
        return listed === 0 ? unknown(`${domain} lists no workflow`) : yes(`${listed} lines`);
      }),
  };
}

/** For a service that is in use, a writer is never idle for this long between two rows. */
const idleMs = 5 * 60_000;

/** Parses a time: RFC 3339, or seconds since the epoch. */
function timeIn(text: string): number | undefined {
  const ms = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text);
  return Number.isNaN(ms) || text === '' ? undefined : ms;
}

/**
 * The answer for the newest row. Rows after the recovery point may be missing, but not rows before it; no row may be newer than
 * `--until`.
 */
function newestAgainst(
  newestMs: number | undefined,
  recoveryPointMs: number | undefined,
  until: string | undefined,
): CheckAnswer {
  if (newestMs === undefined) return unknown('recovery.commands.newestRow did not print a time');
  const newest = `the newest row is of ${new Date(newestMs).toISOString()}`;
  if (until !== undefined && newestMs >= Date.parse(until)) return no(`${newest}, after --until ${until}`);
  if (recoveryPointMs === undefined) return unknown(`${newest}; the recovery point is not known`);
  const text = `${newest}, the recovery point is ${new Date(recoveryPointMs).toISOString()}`;
  return newestMs >= recoveryPointMs - idleMs
    ? yes(text)
    : unknown(`${text}: nothing was written in between`);
}

type ClusterAnswers = (cluster: string) => Promise<CheckAnswer>;

/** Answers whether a cluster can be reached from here. For the cluster of this configuration, its roles answer, too. */
function createClusterAnswers({ config, rows, runProbe }: ChecksDeps): ClusterAnswers {
  const own = config.clusterGroupMetadata?.currentClusterName;
  return async (cluster) => {
    const peer = await runProbe(`cluster/${cluster}`);
    if (peer && cluster !== own) return peer.ok ? yes(peer.msg) : no(peer.msg);
    const healthRows = healthRowsOf(rows);
    const failing: string[] = [];
    for (const { name } of healthRows) {
      const finding = await runProbe(name);
      if (!finding?.ok) failing.push(`${name}: ${finding?.msg}`);
    }
    if (peer && !peer.ok) failing.push(peer.msg);
    if (!peer && healthRows.length === 0)
      return unknown(`set rpcAddress of ${cluster} in clusterGroupMetadata`);
    return failing.length === 0 ? yes('its roles are healthy') : no(failing.join('; '));
  };
}

function clusterChecks(
  { domain = '', to = '' }: Subject,
  { config, runProbe, commands, env }: ChecksDeps,
  clusterAnswers: ClusterAnswers,
): ClusterChecks {
  const own = config.clusterGroupMetadata?.currentClusterName;
  /** The answer about the cluster in which the domain is active, or that this cluster is not known. */
  const ofActive = async (answerOf: (active: string) => CheckAnswer | Promise<CheckAnswer>) => {
    const description = await runProbe(`domain/${domain}`);
    const active = description && activeCluster(description);
    return active === undefined ? unknown(whyUnknown(domain, description)) : answerOf(active);
  };
  return {
    activeClusterDown: () =>
      check('active_cluster_down', 'the active cluster does not answer', () =>
        ofActive(async (active) => {
          if (active === to) return yes(`${domain} is already active in ${to}`);
          const { holds, msg } = await clusterAnswers(active);
          if (holds === 'unknown') return unknown(msg);
          return holds ? no(`${active} still answers: ${msg}`) : yes(`${active}: ${msg}`);
        }),
      ),
    standbySeesItDown: () =>
      check('standby_sees_it_down', `${to} does not see the active cluster either`, () =>
        ofActive((active) => {
          if (active === to || own === to) return yes(`${to} is the cluster of this configuration`);
          const command = commands.named('standbyProbe', { cluster: active });
          if (!command) return unknown('set recovery.commands.standbyProbe, or run this beside the standby');
          return output(command, env).then(
            () => no(`${to} still reaches ${active}`),
            (thrown) =>
              thrown instanceof ProbeError && thrown.message.includes('exit status 1')
                ? yes(`${to} does not see ${active}`)
                : unknown(errorText(thrown)),
          );
        }),
      ),
    clusterReachable: (cluster) =>
      check('cluster_reachable', `${cluster} answers`, () => clusterAnswers(cluster)),
    replicationCaughtUp: (cluster) =>
      check('replication_caught_up', `${cluster} has caught up on replication`, () =>
        asked(runProbe, `replication/${own}`, ({ gauges = [], msg }) => {
          const lags = gauges.filter(
            (sample) =>
              sample.name === 'svc_replication_lag_seconds' && sample.labels.target_cluster === cluster,
          );
          if (lags.length === 0) return unknown(msg || `the lag of ${cluster} is unknown`);
          const lag = Math.max(...lags.map(({ value }) => value));
          return lag <= caughtUpSeconds ? yes(`${lag} s behind`) : no(`${lag} s behind`);
        }),
      ),
  };
}

function domainChecks({ domain = '' }: Subject, { runProbe }: ChecksDeps): DomainChecks {
  const askedDomain = (answerOf: (finding: RunFinding) => CheckAnswer) =>
    asked(runProbe, `domain/${domain}`, answerOf, whyUnknown(domain, undefined));
  return {
    globalDomain: () =>
      check('global_domain', `${domain} is a global domain`, () =>
        askedDomain((finding) => {
          const global = gauge(finding, 'svc_domain_global')?.value;
          if (global === undefined) return unknown(finding.msg);
          return global === 1
            ? yes('it is a global domain')
            : no('it is a local domain, which cannot fail over');
        }),
      ),
    inClusters: (cluster) =>
      check('in_clusters', `${cluster} is in the list of clusters of ${domain}`, () =>
        askedDomain(({ details, msg }) => {
          const clusters = details?.clusters;
          if (!Array.isArray(clusters)) return unknown(msg);
          return clusters.includes(cluster) ? yes(clusters.join(', ')) : no(`it has ${clusters.join(', ')}`);
        }),
      ),
    activeIn: (cluster) =>
      check('active_in', `${domain} is active in ${cluster}`, () =>
        askedDomain((finding) => {
          const active = activeCluster(finding);
          if (active === undefined) return unknown(finding.msg);
          return active === cluster ? yes(`active in ${active}`) : no(`active in ${active}`);
        }),
      ),
    noDisagreement: () =>
      check('clusters_agree', 'the clusters agree on where the domain is active', () =>
        askedDomain(({ reason, msg }) => (reason === 'clusters_disagree' ? no(msg) : yes('they agree'))),
      ),
  };
}

function schemaFound({ details }: Finding): string {
  const checks = (details?.checks ?? []) as readonly { check?: string; found?: string }[];
  const found = Array.isArray(checks) ? checks.find(({ check }) => check === 'schema')?.found : undefined;
  return found ?? 'set stores[].schema to let svc-agent check the version';
}

function whyUnknown(domain: string, finding: Finding | undefined): string {
  const why = finding?.msg ?? 'set domains.describe and clusterGroupMetadata';
  return `it is not known where ${domain} is active: ${why}`;
}

/** The number of entries of a JSON list, or of lines with text. */
function linesOf(printed: string): number {
  try {
    const value: unknown = JSON.parse(printed);
    if (Array.isArray(value)) return value.length;
  } catch {
    // The text is not JSON.
  }
  return printed.split('\n').filter((line) => line.trim() !== '').length;
}
