import { setTimeout as pause } from 'node:timers/promises';
import { errorText } from '../../core/errors.ts';
import { formatDuration } from '../../core/text-formats.ts';
import { drillName } from '../../probes/backups/backups.ts';
import { journalPath, readRuns } from '../../probes/backups/journal.ts';
import { probeOnce } from '../../probes/runner/runner.ts';
import type { AgentConfig } from '../config/types.ts';
import { type Cost, type CostFacts, costsOf, type KnownProbe } from '../recovery/cost.ts';
import type { StatusReport } from '../report.ts';
import { ask, targetOf } from './agent-client.ts';
import { type ConfigurationValues, configured } from './arguments.ts';
import type { Io } from './io.ts';
import { probeDeps } from './live-pages.ts';
import { planForPerson } from './verification.ts';

/** The time between the two samples from which a rate is computed. */
const sampledMs = 5000;

/** Runs `svc-agent recover --cost`: prints what each procedure would cost now. It only reads. */
export async function recoverCost(
  values: ConfigurationValues & { json?: boolean | undefined },
  io: Io,
): Promise<number> {
  const { config } = await configured(values, io);
  const facts = await factsOf(config, values, io);
  const costs = costsOf(facts);
  io.stdout(
    values.json
      ? `${JSON.stringify({ workflowsPerSecond: facts.workflowRate, costs }, null, 2)}\n`
      : textOf(costs, facts),
  );
  return 0;
}

async function factsOf(config: AgentConfig, values: ConfigurationValues, io: Io): Promise<CostFacts> {
  const report = await targetOf(values, '/api/status', io)
    .then((target) => ask(target) as Promise<StatusReport>)
    .catch((thrown: unknown) => `the agent does not answer, ${errorText(thrown)}`);
  const isThere = typeof report !== 'string';
  const drills = await readDrills(config);
  return {
    nowMs: Date.now(),
    probes: isThere ? report.probes.map(knownProbe) : await probedHere(config, io),
    domains: (config.domains?.watch ?? []).map((domain) => ({
      domain,
      activeCluster: isThere
        ? report.domains.find((each) => each.domain === domain)?.activeCluster
        : undefined,
    })),
    clusters: (config.clusterGroupMetadata?.clusters ?? [])
      .filter(({ enabled }) => enabled)
      .map(({ name }) => name),
    replication: isThere ? report.replication : [],
    workflowRate: isThere ? await workflowRate(report) : report,
    drillMs: (procedure, subject) => drills.get(`${procedure} ${subject}`),
  };
}

const knownProbe = ({ name, last }: StatusReport['probes'][number]): KnownProbe => ({
  name,
  msg: last?.msg ?? 'it has not been checked yet',
  details: last?.details ?? {},
});

/** Runs the probes here if no agent runs. The records of rehearsals are read, but no rehearsal is started. */
async function probedHere(config: AgentConfig, io: Io): Promise<KnownProbe[]> {
  const rows = planForPerson(config, () => {}, false).filter(({ kind }) =>
    ['backup', 'recovery', 'rehearsal'].includes(kind),
  );
  const probed = await probeOnce(rows, probeDeps(io.env));
  return probed.map(({ row, finding }) => ({
    name: row.name,
    msg: finding.msg,
    details: finding.details ?? {},
  }));
}

/** The duration of the newest drill, by `PROCEDURE SUBJECT`. */
async function readDrills({ stateDirectory, stores, domains }: AgentConfig): Promise<Map<string, number>> {
  const restores = stores.flatMap(({ name, databases }) =>
    Object.keys(databases).flatMap((database) =>
      ['database-corruption', 'cluster-loss'].map((procedure) => [procedure, name, database] as const),
    ),
  );
  const failovers = (domains?.watch ?? []).flatMap((domain) =>
    ['datacenter-failure', 'failback'].map((procedure) => [procedure, domain, ''] as const),
  );
  const found = new Map<string, number>();
  for (const [procedure, name, database] of [...restores, ...failovers]) {
    const path = journalPath(stateDirectory, 'recovery', drillName(procedure, name, database));
    const last = (await readRuns(path)).findLast(({ status, endMs }) => status === 0 && endMs !== undefined);
    const subject = [name, database].filter((part) => part !== '').join('/');
    if (last) found.set(`${procedure} ${subject}`, last.endMs! - last.startMs);
  }
  return found;
}

/** The number of workflows that start per second, from two samples of the agent's metrics, or the reason why it is not known. */
async function workflowRate({ listeners }: StatusReport): Promise<number | string> {
  const listener = listeners.find((each) => each.listener === 'metrics' && !each.tls);
  if (!listener)
    return 'no pull listener without TLS to read svc_workflow_started from; set metrics.pullmetrics';
  const started = async () => {
    const response = await fetch(`http://${listener.address}/metrics`, {
      signal: AbortSignal.timeout(10_000),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const lines = (await response.text()).matchAll(/^svc_workflow_started(?:_total)?(?:\{.*\})? (\S+)$/gm);
    const samples = [...lines].map(([, value]) => Number(value));
    return samples.length === 0 ? undefined : samples.reduce((sum, value) => sum + value, 0);
  };
  try {
    const [before, beganMs] = [await started(), performance.now()];
    if (before === undefined) return 'no role sends svc_workflow_started; scrape the history role';
    await pause(sampledMs);
    const after = await started();
    const tookMs = performance.now() - beganMs;
    if (after === undefined || after < before)
      return 'a role restarted while the rate was measured; try again';
    return ((after - before) / tookMs) * 1000;
  } catch (thrown) {
    return `${listener.address} does not answer, ${errorText(thrown)}`;
  }
}

function textOf(costs: readonly Cost[], { workflowRate: rate }: CostFacts): string {
  if (costs.length === 0)
    return 'There is nothing to recover: the configuration has neither backups nor domains.watch.\n';
  const lines = [
    typeof rate === 'number'
      ? `About ${rate.toFixed(1)} workflows start each second.`
      : `The rate of workflows is unknown: ${rate}.`,
  ];
  for (const { procedure, subject, timeSeconds, basis, lossSeconds, lossWorkflows, unknown } of costs) {
    lines.push('', `${procedure} of ${subject}`);
    if (timeSeconds !== undefined)
      lines.push(`  time: ${formatDuration(Math.ceil(timeSeconds) * 1000)} (${basis})`);
    if (lossSeconds !== undefined) {
      const workflows = lossWorkflows === undefined ? '' : `, about ${lossWorkflows} workflows`;
      lines.push(`  data: the last ${formatDuration(Math.ceil(lossSeconds) * 1000)}${workflows}`);
    }
    for (const what of unknown) lines.push(`  unknown: ${what}`);
  }
  return `${lines.join('\n')}\n`;
}
