import { planClusters } from '../../probes/clusters/plan.ts';
import { planDomains } from '../../probes/domains/plan.ts';
import type { ProbeRow } from '../../probes/probe.ts';
import { probeOnce } from '../../probes/runner/runner.ts';
import type { AgentConfig } from '../config/types.ts';
import { createReadSecret } from '../read-secret.ts';
import { createChecks, type RunProbe } from '../recovery/checks.ts';
import { commandsOf, type Subject } from '../recovery/commands.ts';
import { createGuard } from '../recovery/guard.ts';
import type { Situation } from '../recovery/procedures.ts';
import { restoreOf } from '../recovery/restore.ts';
import { createRestoreChecks } from '../recovery/restore-checks.ts';
import { backupIn, type Chosen, chainNow, chosenOf, restoreTarget } from '../recovery/target.ts';
import { messageOf } from '../verdict/probe-text.ts';
import { type Io, keepAwake } from './io.ts';
import { openLivePages, probeDeps } from './live-pages.ts';
import { longestMs, type OnVerification, planForPerson, verifyWithProgress } from './verification.ts';

/** Counters of the polls of workers. */
const pollFamilies = ['svc_matching_poll_success', 'svc_matching_poll_timeout'];

/** Probes by name, and the pages of roles, for one procedure. */
interface Tools {
  pages: Awaited<ReturnType<typeof openLivePages>>;
  rows: readonly ProbeRow[];
  runProbe: RunProbe;
  /** Has older backups verified, too, if the newest cannot be restored. */
  lookFurther(): void;
  close(): Promise<void>;
}

/** How many backups are tried, beginning with the newest. */
const mostBackups = 3;

/**
 * The probes of the configuration, and further probes for a failover: one of each cluster, including this one, and one that
 * describes the domain in the future active cluster and then in each of the others.
 */
function rowsOf(
  config: AgentConfig,
  { domain, to }: Subject,
  onVerification: OnVerification,
  verifiedAtFirst = 1,
): ProbeRow[] {
  const { clusterGroupMetadata: group, domains } = config;
  const rows = planForPerson(config, onVerification, true, verifiedAtFirst);
  if (domain === undefined || !group || !domains) return rows;
  const { currentClusterName: own, clusters } = group;
  const reachable = clusters
    .filter(({ enabled, rpcAddress }) => enabled && rpcAddress)
    .map(({ name }) => name);
  const first = [to, own].filter((name) => name !== undefined && reachable.includes(name)) as string[];
  const views = [...new Set([...first, ...reachable])];
  if (views.length === 0) views.push(own);
  const seenBy = (name: string) => ({ ...group, currentClusterName: name });
  return [
    ...rows.filter(({ name, kind }) => kind !== 'cluster' && name !== `domain/${domain}`),
    ...planClusters({ clusterGroupMetadata: seenBy('') }),
    ...views.flatMap((name) =>
      planDomains({ domains: { ...domains, watch: [domain] }, clusterGroupMetadata: seenBy(name) }),
    ),
  ];
}

/** Opens the probes by name; each runs when it is requested. */
export async function openTools(
  config: AgentConfig,
  subject: Subject,
  onVerification: OnVerification,
  io: Io,
): Promise<Tools> {
  let rows = rowsOf(config, subject, onVerification);
  const sleep = keepAwake();
  const isScraped = subject.store !== undefined || rows.some(({ kind }) => kind === 'replication');
  const pages = isScraped ? await openLivePages(config, io) : [];
  const deps = probeDeps(io.env, pages);
  const run = async (row: ProbeRow) => {
    // Backups are assessed first, because a database is assessed by their findings.
    const first = row.kind === 'recovery' ? rows.filter(({ kind }) => kind === 'backup') : [];
    if (row.kind === 'replication') await Promise.all(pages.map(({ scrape }) => scrape.scrapeNow()));
    const { finding, result } = (await probeOnce([...first, row], deps)).at(-1)!;
    return { ...finding, ok: result.ok, msg: messageOf(finding.msg) };
  };
  return {
    pages,
    get rows() {
      return rows;
    },
    lookFurther() {
      rows = rowsOf(config, subject, onVerification, mostBackups);
    },
    async runProbe(name) {
      const candidates = rows.filter((each) => each.name === name);
      let first: Awaited<ReturnType<typeof run>> | undefined;
      for (const row of candidates) {
        const result = await run(row);
        if (result.gauges?.length) return result;
        first ??= result;
      }
      return first;
    },
    async close() {
      sleep();
      await Promise.all(pages.map(({ close }) => close()));
    },
  };
}

interface SituationContext {
  tools: Tools;
  onVerification: OnVerification;
  io: Io;
  /** When the run began. */
  startMs: number;
  /** What an earlier, unfinished run chose to restore; undefined without such a run. */
  held: Chosen | undefined;
  copiesFirst: boolean;
}

/** The present situation, from which the tables of steps are built. */
export async function situationOf(
  asked: Subject,
  config: AgentConfig,
  { tools, onVerification, io, startMs, held, copiesFirst }: SituationContext,
): Promise<Situation & { chosen: Chosen }> {
  const { runProbe, pages } = tools;
  let chain = await chainNow(asked, runProbe);
  if (asked.store !== undefined && asked.backup === undefined && chain === undefined) {
    tools.lookFurther();
    chain = await chainNow(asked, runProbe);
  }
  const { rows } = tools;
  // A snapshot, or the backup of a tool, is no path. It is assessed by its evidence.
  const named = asked.backup ?? (held?.backup?.startsWith('/') ? held.backup : undefined);
  const subject = { ...asked, backup: asked.backup ?? held?.backup ?? backupIn(chain, config) };
  const verifyNamed =
    named === undefined || asked.store === undefined
      ? undefined
      : () =>
          verifyWithProgress(onVerification)(
            { path: named, level: 'full', bytesPerSecond: Number.MAX_SAFE_INTEGER },
            AbortSignal.timeout(longestMs),
            () => {},
          );
  const commands = commandsOf(subject, config);
  const env = Object.fromEntries(
    Object.entries(io.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const store = config.stores.find(({ name }) => name === subject.store);
  const database = subject.database && store?.databases[subject.database];
  const target = await restoreTarget({ subject, chain, held, config });
  const restore = restoreOf({ subject, startMs, ...target }, config);
  const pollsSeen = () => countPolls(pages);
  const recoveryPointMs = target.reachesMs;
  return {
    subject,
    commands,
    checks: createChecks(subject, {
      ...{ config, rows, runProbe, verifyNamed, commands, env, pollsSeen, recoveryPointMs },
    }),
    guard: createGuard({
      ...{ services: config.services, store, database, runProbe, readSecret: createReadSecret(io.env) },
    }),
    restore,
    restoreChecks: createRestoreChecks({
      ...{ store, database, backup: subject.backup, restore, replay: target.replay, env },
      refused: target.refused,
    }),
    reaches: target.reaches,
    chosen: chosenOf(subject, target, held),
    copiesFirst,
    path: io.env.PATH,
  };
}

/** The polls that the page of the matching role counts; undefined without that page. */
async function countPolls(pages: Tools['pages']): Promise<number | undefined> {
  const matching = pages.filter(({ service }) => service.name === 'matching');
  if (matching.length === 0) return undefined;
  await Promise.all(matching.map(({ scrape }) => scrape.scrapeNow()));
  const values = matching.flatMap(({ scrape }) =>
    pollFamilies.flatMap((family) => [...scrape.values(family)]),
  );
  return values.length === 0 ? undefined : values.reduce((sum, { value }) => sum + value, 0);
}
