import { errorText } from '../../core/errors.ts';
import type { VerifyAnswer } from '../../probes/backups/evidence.ts';
import { runCommand } from '../../probes/command.ts';
import { type Finding, ProbeError, type ProbeRow } from '../../probes/probe.ts';
import type { AgentConfig } from '../config/types.ts';
import type { Commands, Subject } from './commands.ts';

/** A condition before or after a step, checked by the agent's probes at that moment. */
export interface Check {
  id: string;
  /** What must hold, for people. */
  text: string;
  run(): Promise<CheckAnswer>;
}

export interface CheckAnswer {
  /** `unknown`: there is no evidence. Before a step it refuses like `false`; after a step it is reported. */
  holds: boolean | 'unknown';
  msg: string;
}

export interface Checks {
  backupVerified(): Check;
  servicesStopped(): Check;
  storeUp(): Check;
  schema(): Check;
  workflowsCounted(): Check;
  workflowsListed(): Check;
  healthy(): readonly Check[];
  activeClusterDown(): Check;
  /** The same from the standby, by a command of the configuration. */
  standbySeesItDown(): Check;
  clusterReachable(cluster: string): Check;
  globalDomain(): Check;
  inClusters(cluster: string): Check;
  activeIn(cluster: string): Check;
  replicationCaughtUp(cluster: string): Check;
  noDisagreement(): Check;
}

/** Runs one probe now; undefined when the configuration has no such probe. */
export type RunProbe = (name: string) => Promise<(Finding & { ok: boolean }) | undefined>;

export interface ChecksDeps {
  config: Pick<AgentConfig, 'clusterGroupMetadata'>;
  rows: readonly Pick<ProbeRow, 'name' | 'kind'>[];
  runProbe: RunProbe;
  commands: Commands;
  /** Verifies a backup that the operator named; without one, the agent's own evidence counts. */
  verifyNamed?: () => Promise<VerifyAnswer>;
  /** Variables of the commands that checks run. */
  env: Readonly<Record<string, string>>;
}

/** The most lag with which a cluster counts as caught up; the spec's alert is at 300 s. */
const caughtUpSeconds = 10;

const yes = (msg: string): CheckAnswer => ({ holds: true, msg });
const no = (msg: string): CheckAnswer => ({ holds: false, msg });
const unknown = (msg: string): CheckAnswer => ({ holds: 'unknown', msg });

/** How long a command of a check may take. */
const commandMs = 60_000;
const maxBytes = 16 << 20;

export function createChecks(
  subject: Subject,
  { config, rows, runProbe, verifyNamed, commands, env }: ChecksDeps,
): Checks {
  const { store = '', database = '', domain = '', to = '' } = subject;
  const storeProbe = `store/${store}/${database}`;
  const domainProbe = `domain/${domain}`;
  const own = config.clusterGroupMetadata?.currentClusterName;
  const healthRows = rows.filter(({ kind }) => kind === 'health');

  const check = (id: string, text: string, run: () => Promise<CheckAnswer>): Check => ({
    id,
    text,
    run,
  });

  /** The probe's finding, or the answer that nothing is known. */
  const asked = async (
    name: string,
    answerOf: (finding: Finding & { ok: boolean }) => CheckAnswer,
    missing = `not configured: there is no probe ${name}`,
  ): Promise<CheckAnswer> => {
    const finding = await runProbe(name);
    return finding ? answerOf(finding) : unknown(missing);
  };

  const askedDomain = (answerOf: (finding: Finding & { ok: boolean }) => CheckAnswer) =>
    asked(domainProbe, answerOf, whyUnknown(domain, undefined));
  const up = (name: string) => asked(name, (finding) => (finding.ok ? yes(finding.msg) : no(finding.msg)));
  const gauge = ({ gauges = [] }: Finding, name: string) => gauges.find((sample) => sample.name === name);
  const activeCluster = (finding: Finding) =>
    gauge(finding, 'svc_domain_active_cluster')?.labels.active_cluster;
  const output = async (words: readonly string[]) =>
    (await runCommand(words, { signal: AbortSignal.timeout(commandMs), maxBytes, env })).stdout;

  /** Whether a cluster answers from here; by its roles too where it is the cluster of this configuration. */
  const clusterAnswers = async (cluster: string): Promise<CheckAnswer> => {
    const peer = await runProbe(`cluster/${cluster}`);
    if (peer && cluster !== own) return peer.ok ? yes(peer.msg) : no(peer.msg);
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

  return {
    backupVerified: () =>
      check('backup_verified', 'a verified backup can be restored', async () => {
        if (verifyNamed) {
          const { result, msg } = await verifyNamed();
          return { holds: result === 'unknown' ? result : result === 'ok', msg: `${subject.backup}: ${msg}` };
        }
        return asked(`recovery/${store}/${database}`, ({ details, msg }) =>
          details?.chain === undefined ? no(msg) : yes(msg),
        );
      }),
    servicesStopped: () =>
      check('services_stopped', 'the history service does not answer', async () => {
        const names = rows.filter(({ name }) => name === 'health/history').map(({ name }) => name);
        if (names.length === 0) return unknown('set services.history.health to have it checked');
        const finding = await runProbe(names[0]!);
        return finding?.ok ? no('the history service still answers') : yes('it does not answer');
      }),
    storeUp: () => check('store_up', `${store} answers`, () => up(storeProbe)),
    schema: () =>
      check('schema', 'the schema has the version that the service needs', () =>
        asked(storeProbe, (finding) => {
          const compatible = gauge(finding, 'svc_store_schema_compatible')?.value;
          if (compatible === undefined) return unknown(schemaUnknown(finding));
          return compatible === 1 ? yes('as expected or newer') : no(finding.msg);
        }),
      ),
    workflowsCounted: () =>
      check('workflows_counted', `there are workflows in ${database} of ${store}`, async () => {
        const command = commands.named('countWorkflows');
        if (!command) return unknown('set recovery.commands.countWorkflows to have them counted');
        const counted = await output(command).catch((thrown: unknown) => {
          // Such as a table that is missing.
          if (thrown instanceof ProbeError && thrown.reason === 'command_failed') return thrown;
          throw thrown;
        });
        if (counted instanceof ProbeError) return no(counted.message);
        const printed = counted.trim();
        if (!/^\d+$/.test(printed)) return unknown(`${command[0]} did not print a number`);
        return printed === '0' ? no('there are none') : yes(`${printed} workflows`);
      }),
    workflowsListed: () =>
      check('workflows_listed', `the service lists workflows of ${domain || 'a domain'}`, async () => {
        if (domain === '') return unknown('name a domain with --domain');
        const command = commands.client('--domain', domain, 'workflow', 'list');
        if (!command) return unknown('set recovery.client to have them listed');
        const listed = linesOf(await output(command));
        return listed === 0 ? unknown(`${domain} lists no workflow`) : yes(`${listed} lines`);
      }),
    healthy: () =>
      healthRows.map(({ name }) =>
        check(name.replace('/', '_'), `${name.slice('health/'.length)} is healthy`, () => up(name)),
      ),
    activeClusterDown: () =>
      check('active_cluster_down', 'the active cluster does not answer', async () => {
        const description = await runProbe(domainProbe);
        const active = description && activeCluster(description);
        if (active === undefined) return unknown(whyUnknown(domain, description));
        if (active === to) return yes(`${domain} is already active in ${to}`);
        const { holds, msg } = await clusterAnswers(active);
        if (holds === 'unknown') return unknown(msg);
        return holds ? no(`${active} still answers: ${msg}`) : yes(`${active}: ${msg}`);
      }),
    standbySeesItDown: () =>
      check('standby_sees_it_down', `${to} does not see the active cluster either`, async () => {
        const description = await runProbe(domainProbe);
        const active = description && activeCluster(description);
        if (active === undefined) return unknown(whyUnknown(domain, description));
        if (active === to || own === to) return yes(`${to} is the cluster of this configuration`);
        const command = commands.named('standbyProbe', { cluster: active });
        if (!command) return unknown('set recovery.commands.standbyProbe, or run this beside the standby');
        return output(command).then(
          () => no(`${to} still reaches ${active}`),
          (thrown) =>
            thrown instanceof ProbeError && thrown.message.includes('exit status 1')
              ? yes(`${to} does not see ${active}`)
              : unknown(errorText(thrown)),
        );
      }),
    clusterReachable: (cluster) =>
      check('cluster_reachable', `${cluster} answers`, () => clusterAnswers(cluster)),
    globalDomain: () =>
      check('global_domain', `${domain} is a global domain`, () =>
        askedDomain((finding) => {
          const global = gauge(finding, 'svc_domain_global')?.value;
          if (global === undefined) return unknown(finding.msg);
          return global === 1 ? yes('it is') : no('it is a local domain, which cannot fail over');
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
    replicationCaughtUp: (cluster) =>
      check('replication_caught_up', `${cluster} has caught up on replication`, () =>
        asked(`replication/${own}`, ({ gauges = [], msg }) => {
          const lags = gauges.filter(
            (sample) =>
              sample.name === 'svc_replication_lag_seconds' && sample.labels.target_cluster === cluster,
          );
          if (lags.length === 0) return unknown(msg || `the lag of ${cluster} is unknown`);
          const lag = Math.max(...lags.map(({ value }) => value));
          return lag <= caughtUpSeconds ? yes(`${lag} s behind`) : no(`${lag} s behind`);
        }),
      ),
    noDisagreement: () =>
      check('clusters_agree', 'the clusters agree on where the domain is active', () =>
        askedDomain(({ reason, msg }) => (reason === 'clusters_disagree' ? no(msg) : yes('they do'))),
      ),
  };
}

function schemaUnknown({ details }: Finding): string {
  const checks = (details?.checks ?? []) as readonly { check?: string; found?: string }[];
  const found = Array.isArray(checks) ? checks.find(({ check }) => check === 'schema')?.found : undefined;
  return found ?? 'set stores[].schema to have the version checked';
}

function whyUnknown(domain: string, finding: Finding | undefined): string {
  const why = finding?.msg ?? 'set domains.describe and clusterGroupMetadata';
  return `it is not known where ${domain} is active: ${why}`;
}

/** Entries of a JSON list, or lines with text. */
function linesOf(printed: string): number {
  try {
    const value: unknown = JSON.parse(printed);
    if (Array.isArray(value)) return value.length;
  } catch {
    // Not JSON.
  }
  return printed.split('\n').filter((line) => line.trim() !== '').length;
}
