import type { Finding, ProbeRow, Sample } from '../../probes/probe.ts';
import type { AgentConfig } from '../config/types.ts';

/** What a procedure is about; options of the command. */
export interface Subject {
  store?: string;
  database?: 'persistence' | 'visibility';
  domain?: string;
  /** Cluster that is to be active. */
  to?: string;
  /** File or directory of the backup to restore. */
  backup?: string;
}

/** Something that must hold before or after a step, found out with the agent's probes at the moment it is asked. */
export interface Check {
  id: string;
  /** What must hold, for people. */
  text: string;
  run(): Promise<CheckAnswer>;
}

export interface CheckAnswer {
  /** `unknown`: nothing tells, which refuses like `false` before a step, and is said after one. */
  holds: boolean | 'unknown';
  msg: string;
}

export interface Checks {
  backupVerified(): Check;
  servicesStopped(): Check;
  storeUp(): Check;
  schema(): Check;
  healthy(): readonly Check[];
  activeClusterDown(): Check;
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
  config: Pick<AgentConfig, 'domains' | 'clusterGroupMetadata'>;
  rows: readonly Pick<ProbeRow, 'name' | 'kind'>[];
  runProbe: RunProbe;
}

/** The most lag with which a cluster counts as caught up; the spec's alert is at 300 s. */
const caughtUpSeconds = 10;

const yes = (msg: string): CheckAnswer => ({ holds: true, msg });
const no = (msg: string): CheckAnswer => ({ holds: false, msg });
const unknown = (msg: string): CheckAnswer => ({ holds: 'unknown', msg });

export function createChecks(subject: Subject, { config, rows, runProbe }: ChecksDeps): Checks {
  const { store = '', database = '', domain = '' } = subject;
  const storeProbe = `store/${store}/${database}`;
  const domainProbe = `domain/${domain}`;

  const check = (id: string, text: string, run: () => Promise<CheckAnswer>): Check => ({
    id,
    text,
    run,
  });

  /** The probe's finding, or the answer that nothing is known. */
  const asked = async (
    name: string,
    judge: (finding: Finding & { ok: boolean }) => CheckAnswer,
    missing = `nothing in the configuration tells: there is no probe ${name}`,
  ): Promise<CheckAnswer> => {
    const finding = await runProbe(name);
    return finding ? judge(finding) : unknown(missing);
  };

  const up = (name: string) => asked(name, (finding) => (finding.ok ? yes(finding.msg) : no(finding.msg)));
  const gauge = ({ gauges = [] }: Finding, name: string, labels: Readonly<Record<string, string>> = {}) =>
    gauges.find((sample) => sample.name === name && hasLabels(sample, labels))?.value;
  const activeCluster = ({ gauges = [] }: Finding) =>
    gauges.find(({ name }) => name === 'svc_domain_active_cluster')?.labels.active_cluster;

  return {
    backupVerified: () =>
      check('backup_verified', 'a verified backup can be restored', async () => {
        for (const { name } of rows.filter(({ kind }) => kind === 'backup')) await runProbe(name);
        return asked(`recovery/${store}/${database}`, ({ details, msg }) =>
          details?.chain === undefined ? no(msg) : yes(msg),
        );
      }),
    servicesStopped: () =>
      check('services_stopped', 'the history service does not answer', async () => {
        const names = rows.filter(({ name }) => name === 'health/history').map(({ name }) => name);
        if (names.length === 0) return unknown('health of the history role is not configured');
        const finding = await runProbe(names[0]!);
        return finding?.ok ? no('the history service still answers') : yes('it does not answer');
      }),
    storeUp: () => check('store_up', `${store} answers`, () => up(storeProbe)),
    schema: () =>
      check('schema', 'the schema has the version that the service needs', () =>
        asked(storeProbe, (finding) => {
          const compatible = gauge(finding, 'svc_store_schema_compatible');
          if (compatible === undefined) return unknown('set stores[].schema to have the version checked');
          return compatible === 1 ? yes('as expected or newer') : no(finding.msg);
        }),
      ),
    healthy: () => {
      const roles = rows.filter(({ kind }) => kind === 'health');
      return roles.map(({ name }) =>
        check(name.replace('/', '_'), `${name.slice(7)} is healthy`, () => up(name)),
      );
    },
    activeClusterDown: () =>
      check('active_cluster_down', 'the active cluster does not answer', async () => {
        const description = await runProbe(domainProbe);
        const active = description && activeCluster(description);
        const own = config.clusterGroupMetadata?.currentClusterName;
        if (active === undefined) return unknown(`it is not known where ${domain} is active`);
        if (active === own) return no(`${active} is the cluster of this configuration, and it answers`);
        return asked(`cluster/${active}`, (finding) =>
          finding.ok ? no(`${active} still answers`) : yes(`${active}: ${finding.msg}`),
        );
      }),
    clusterReachable: (cluster) =>
      check('cluster_reachable', `${cluster} answers`, async () => {
        if (cluster === config.clusterGroupMetadata?.currentClusterName) {
          const roles = rows.filter(({ kind }) => kind === 'health');
          for (const { name } of roles) {
            const finding = await runProbe(name);
            if (!finding?.ok) return no(`${name}: ${finding?.msg}`);
          }
          return yes('it is the cluster of this configuration');
        }
        return up(`cluster/${cluster}`);
      }),
    globalDomain: () =>
      check('global_domain', `${domain} is a global domain`, () =>
        asked(domainProbe, (finding) => {
          const global = gauge(finding, 'svc_domain_global');
          if (global === undefined) return unknown(finding.msg);
          return global === 1 ? yes('it is') : no('it is a local domain, which cannot fail over');
        }),
      ),
    inClusters: (cluster) =>
      check('in_clusters', `${cluster} is in the list of clusters of ${domain}`, () =>
        asked(domainProbe, ({ details, msg }) => {
          const clusters = details?.clusters;
          if (!Array.isArray(clusters)) return unknown(msg);
          return clusters.includes(cluster) ? yes(clusters.join(', ')) : no(`it has ${clusters.join(', ')}`);
        }),
      ),
    activeIn: (cluster) =>
      check('active_in', `${domain} is active in ${cluster}`, () =>
        asked(domainProbe, (finding) => {
          const active = activeCluster(finding);
          if (active === undefined) return unknown(finding.msg);
          return active === cluster ? yes(`active in ${active}`) : no(`active in ${active}`);
        }),
      ),
    replicationCaughtUp: (cluster) =>
      check('replication_caught_up', `${cluster} has caught up on replication`, () =>
        asked('replication', ({ gauges = [], msg }) => {
          const lags = gauges.filter(
            (sample) =>
              sample.name === 'svc_replication_lag_seconds' && sample.labels.target_cluster === cluster,
          );
          if (lags.length === 0) return unknown(msg || `nothing tells the lag of ${cluster}`);
          const lag = Math.max(...lags.map(({ value }) => value));
          return lag <= caughtUpSeconds ? yes(`${lag} s behind`) : no(`${lag} s behind`);
        }),
      ),
    noDisagreement: () =>
      check('clusters_agree', 'the clusters agree on where the domain is active', () =>
        asked(domainProbe, ({ reason, msg }) => (reason === 'clusters_disagree' ? no(msg) : yes('they do'))),
      ),
  };
}

const hasLabels = (sample: Sample, labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(labels).every(([name, value]) => sample.labels[name] === value);
