import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folder } from '../../run-folder.ts';
import { type Alertmanager, startAlertmanager } from '../alertmanager.ts';
import { type LiveAgent, startLiveAgent } from './agents.ts';
import {
  firstConfig,
  loneConfig,
  otherConfig,
  placesIn,
  type Surroundings,
  secondConfig,
} from './configs.ts';
import { startGate } from './gate.ts';
import { type Platform, startPlatform } from './platform.ts';
import { type LivePrometheus, startLivePrometheus, type Wanted } from './prometheus.ts';
import { createPulses, type Pulses } from './pulses.ts';
import { cutBy, type RulesCut, writeRules } from './rules.ts';
import { startService } from './service.ts';
import { type Store, startStore } from './store.ts';

const agentNames = ['first', 'second', 'other', 'lone'] as const;
export type AgentName = (typeof agentNames)[number];
type Agents = Readonly<Record<AgentName, LiveAgent>>;

/** What Prometheus scrapes and loads. */
interface Scraped {
  withoutJob?: string;
  /** A job of which only this agent is scraped, for example after a role was scaled down. */
  only?: { job: string; agent: AgentName };
  packs?: readonly string[];
  /** Adds a second environment with the same names: dc2 becomes dc1 of staging. */
  hasStaging?: true;
}

/** Everything that runs: three clusters of a service, four agents, Prometheus and Alertmanager. */
export interface Stage extends Surroundings, Pick<Pulses, 'pulse' | 'check'> {
  store: Store;
  agents: Agents;
  prometheus: LivePrometheus;
  alertmanager: Alertmanager;
  platform: Platform;
  /** Sets what a client prints about a domain. */
  describeDomain(cluster: string, domain: string, over?: object): void;
  /** Makes Prometheus scrape all jobs but one, and load these packs. */
  prometheusBy(over: Scraped): Promise<void>;
  /** Whether every target has answered, and every probe has had results, for most of a window. */
  isSeen(): Promise<true | undefined>;
}

const rulesIn = (directory: string) => join(directory, 'rules');
export const packsRun = ['recommended', 'recording', 'slo'] as const;

/** The agents that answer for each job. */
const jobs: Readonly<Record<string, readonly AgentName[]>> = {
  frontend: ['first', 'other', 'lone'],
  history: ['first', 'second', 'other'],
  matching: ['first'],
  worker: ['first'],
  'svc-agent': agentNames,
};
const clusterOf: Readonly<Record<AgentName, string>> = {
  first: 'dc1',
  second: 'dc1',
  other: 'dc2',
  lone: 'dc3',
};

function targetsOf(agents: Agents, { withoutJob, only, hasStaging }: Scraped): Wanted['targets'] {
  const labelsOf = (name: AgentName) => {
    if (!hasStaging) return { cluster: clusterOf[name] };
    if (name === 'other') return { cluster: 'dc1', environment: 'staging' };
    return { cluster: clusterOf[name], environment: 'production' };
  };
  const targetOf = (name: AgentName) => ({ address: agents[name].address, ...labelsOf(name) });
  const isLeft = (job: string, name: AgentName) =>
    job !== only?.job || name === only.agent || clusterOf[name] !== clusterOf[only.agent];
  const wanted = Object.entries(jobs).filter(([job]) => job !== withoutJob);
  return Object.fromEntries(
    wanted.map(([job, names]) => [job, names.filter((name) => isLeft(job, name)).map(targetOf)]),
  );
}

function describer(directory: string): Stage['describeDomain'] {
  return (cluster, domain, over = {}) =>
    writeFileSync(
      placesIn(directory).domain(cluster, domain),
      JSON.stringify({
        name: domain,
        global_domain: true,
        retention: 7,
        archival: { history: { status: 'enabled' }, visibility: { status: 'enabled' } },
        replicationConfig: { activeClusterName: 'dc1', clusters: ['dc1', 'dc2', 'dc3'] },
        ...over,
      }),
    );
}

function makePlaces(directory: string, describeDomain: Stage['describeDomain']): void {
  const { historyArchive, visibilityArchive, otherArchive } = placesIn(directory);
  for (const archive of [historyArchive, visibilityArchive, otherArchive]) {
    mkdirSync(archive, { recursive: true });
    writeFileSync(join(archive, 'object'), '');
  }
  describeDomain('dc1', 'orders');
  describeDomain('dc2', 'orders');
  describeDomain('dc2', 'payments');
  mkdirSync(rulesIn(directory));
}

/** Registers the end of each part as soon as it exists, so that what has begun ends even if the rest fails. */
type Keep = <T extends { stop(): unknown }>(part: T) => T;

/** The results of all, or the first failure once none is pending any more. */
async function all<T extends readonly unknown[]>(
  parts: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(parts);
  return Promise.all(parts);
}

const startKeptGate = (keep: Keep, behind?: () => number) =>
  startGate(behind).then((gate) => keep({ ...gate, stop: gate.shut }));

async function startSurroundings(directory: string, keep: Keep, cut?: number) {
  const [service, store, platform, dc1, dc2, alertmanager] = await all([
    startService(directory).then(keep),
    startStore().then(keep),
    startPlatform().then(keep),
    startKeptGate(keep),
    startKeptGate(keep),
    startAlertmanager(cut).then(keep),
  ] as const);
  const [toStore, toStoreFromDc2] = await all([
    startKeptGate(keep, () => store.port),
    startKeptGate(keep, () => store.port),
  ] as const);
  const platformUrl = `http://127.0.0.1:${platform.port}/write`;
  const around = {
    directory,
    service,
    storeGates: { dc1: toStore, dc2: toStoreFromDc2 },
    frontends: { dc1, dc2 },
    platformUrl,
  };
  return { around, store, platform, alertmanager };
}

async function startAgents(around: Surroundings, keep: Keep): Promise<Agents> {
  const { directory } = around;
  const [first, second, other, lone] = await all([
    startLiveAgent(directory, 'first', firstConfig(around)).then(keep),
    startLiveAgent(directory, 'second', secondConfig(around)).then(keep),
    startLiveAgent(directory, 'other', otherConfig(around)).then(keep),
    startLiveAgent(directory, 'lone', loneConfig(around)).then(keep),
  ] as const);
  return { first, second, other, lone };
}

function createSeen(agents: Agents, { value }: LivePrometheus): Stage['isSeen'] {
  const targets = Object.values(jobs).flat().length;
  return async () => {
    const probes = (await Promise.all(Object.values(agents).map((agent) => agent.probes()))).reduce(
      (sum, count) => sum + count,
    );
    const seen = [
      await value('count(sum_over_time(up[10s]) >= 6)'),
      await value('count(count_over_time(svc_probe_last_run_timestamp_seconds[10s]) >= 6)'),
    ];
    if (seen[0] === targets && seen[1] === probes) return true;
    throw new Error(`${seen[0]} of ${targets} targets, ${seen[1]} of ${probes} probes`);
  };
}

/** Starts the stage. `onStop` registers what is called at the end, in reverse order. */
export async function startStage(
  onStop: (stop: () => unknown) => void,
  rules?: RulesCut,
  scraped: Scraped = {},
): Promise<Stage> {
  const keep: Keep = (part) => {
    onStop(() => part.stop());
    return part;
  };
  const { path: directory, remove } = folder();
  onStop(remove);
  const describeDomain = describer(directory);
  makePlaces(directory, describeDomain);
  writeRules(rulesIn(directory), rules);
  const { around, store, platform, alertmanager } = await startSurroundings(
    directory,
    keep,
    rules?.forSeconds === 'cut' ? cutBy : undefined,
  );
  const agents = await startAgents(around, keep);
  const wanted = ({ packs = packsRun, ...scraped }: Scraped): Wanted => ({
    alertmanager: alertmanager.address,
    ruleFiles: packs.map((pack) => join(rulesIn(directory), `${pack}.rules.yml`)),
    targets: targetsOf(agents, scraped),
  });
  const prometheus = await startLivePrometheus(directory, wanted(scraped));
  onStop(() => prometheus.end());
  const { pulse, check, end } = createPulses();
  onStop(end);
  for (const agent of Object.values(agents)) pulse(() => agent.fact());
  for (const role of Object.values(around.service.roles)) pulse(() => role.work());
  return {
    ...around,
    ...{ store, agents, prometheus, alertmanager, platform, describeDomain, pulse, check },
    prometheusBy: (over) => prometheus.configure(wanted(over)),
    isSeen: createSeen(agents, prometheus),
  };
}
