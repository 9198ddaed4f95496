import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { BackupResult, RecoveryFailureReason } from '../../core/reasons.ts';
import {
  backupFailureReasons,
  backupResults,
  backupTypes,
  recoveryFailureReasons,
} from '../../core/reasons.ts';
import { runCommand } from '../command.ts';
import type { ProbesOptions } from '../options.ts';
import type { Finding, Probe, ProbeDeps, ProbeRow, Sample, SeriesName } from '../probe.ts';
import { ProbeError } from '../probe-error.ts';
import { archivedLogOf } from '../stores/log-archive.ts';
import { storeRoles } from '../stores/store-options.ts';
import type { BucketDeps } from './bucket.ts';
import { type Evidence, unreadable } from './evidence.ts';
import type { RunRecord } from './journal.ts';
import { failures, type Judgement, judge, keyOf, type Ledger } from './judge.ts';
import type { LogReading } from './log-evidence.ts';
import type { OffsiteStanding } from './offsite.ts';
import type { BackupOptions } from './options.ts';
import { chainOf, type Drill, readinessOf, recoveryPointOf, type Standing } from './readiness.ts';
import { createVerifier, type Verifier, type VerifyBackup } from './verifier.ts';
import type { VerifyAnswer, VerifyRequest } from './verify.ts';

/**
 * Probes of backups: one for each entry of `backups`, which reads its evidence and judges it, and one for each
 * database of a store, which says from all its backups whether it could be recovered within its objectives now. They
 * meet in a table of standings; what is counted once is remembered with the counters.
 */
type BackupsOptions = Required<Pick<ProbesOptions, 'backups' | 'stores' | 'stateDirectory'>>;

export interface BackupsDeps {
  verify?: VerifyBackup;
  /** How long a check waits for verifications. Default: so long that small backups are judged at once. */
  patienceMs?: number;
}

/** What all backups of an agent share. */
interface Shared {
  standings: Map<string, Standing>;
  verifier: Verifier;
  patienceMs: number;
}

export function planBackups(configured: ProbesOptions, deps: BackupsDeps = {}): ProbeRow[] {
  const { backups = [], stores, stateDirectory = '' } = configured;
  if (backups.length === 0) return [];
  const options = { backups, stores, stateDirectory };
  const { patienceMs = usualPatienceMs } = deps;
  const shared: Shared = { standings: new Map(), verifier: createVerifier(deps.verify), patienceMs };
  // A change of any backup begins all of them anew, as they look at each other; what was counted is remembered.
  const key = JSON.stringify([options.backups, options.stateDirectory]);
  const rows = backups.map((backup) => backupRow(backup, options, shared, key));
  const databases = recoverables(options).map((database) => recoveryRow(database, options, shared, key));
  return [...rows, ...databases];
}

const labelsOf = ({ name, store, database, type }: BackupOptions) => ({
  backup: name,
  store: store ?? '',
  database: database ?? '',
  backup_type: type,
});

function backupRow(backup: BackupOptions, options: BackupsOptions, shared: Shared, key: string): ProbeRow {
  const labels = labelsOf(backup);
  const counters: SeriesName[] = [
    ...backupResults.map((result) => ({
      name: 'svc_backup_runs_total' as const,
      labels: { ...labels, result },
    })),
    { name: 'svc_backup_failures_total', labels },
  ];
  const timeoutMs = Math.min(
    backup.source.kind === 'command' ? backup.source.timeoutMs : 30_000,
    backup.intervalMs,
  );
  return {
    name: `backup/${backup.name}`,
    kind: 'backup',
    target: targetOf(backup),
    service: '',
    schedule: { intervalMs: backup.intervalMs, timeoutMs },
    shows: { counters },
    reasons: backupFailureReasons,
    lane: laneOf(backup),
    key,
    open: async (deps) => openBackup(backup, options, shared, deps),
  };
}

/** Databases are judged after their backups were. */
const laneOf = ({ store }: { store?: string }) => `backups/${store ?? ''}`;

function targetOf({ source }: BackupOptions): string {
  if (source.kind === 'command') return source.command[0] ?? '';
  if (source.kind === 'snapshot') return `${source.dataDirectory}/${source.keyspace}`;
  return 'directory' in source ? source.directory : source.kind;
}

async function openBackup(
  backup: BackupOptions,
  { stateDirectory }: BackupsOptions,
  shared: Shared,
  { clock, readSecret, latest = () => undefined }: ProbeDeps,
): Promise<Probe> {
  const { journalPath, readRuns } = await import('./journal.ts');
  const journal = journalPath(stateDirectory, 'backup', backup.name);
  const leave = shared.verifier.join();
  /** Segments that wait for their verification. */
  let asked: VerifyRequest | undefined;
  const verifySegments: LogReading['verify'] = async (segments) => {
    const { level, bytesPerSecond } = backup.integrity;
    asked ??= { path: targetOf(backup), level, bytesPerSecond, segments };
    const request = asked;
    const [answer] = await patiently(shared, clock, 1, () =>
      [shared.verifier.ask(backup.name, request)].filter((one) => one !== undefined),
    );
    if (answer === undefined) return undefined;
    asked = undefined;
    return { names: request.segments!.names, answer };
  };
  const verify = backup.integrity.level === 'none' ? undefined : verifySegments;
  return {
    async check(signal, recalled) {
      const ledger = recalled as Ledger | undefined;
      try {
        const runs = await readRuns(journal);
        const evidence = await readEvidence(backup, runs, {
          ...{ signal, readSecret, clock, latest },
          log: { before: ledger?.log, verify },
        });
        const answers = await verifications(backup, evidence, ledger, shared, { clock, stateDirectory });
        const judgement = judge(backup, evidence, answers, ledger, clock.nowMs());
        shared.standings.set(backup.name, { options: backup, judged: { evidence, judgement } });
        const siblings = siblingsOf(backup, shared);
        const offsite = await offsiteOf(backup, evidence, { signal, readSecret, clock }).catch((thrown) => {
          if (thrown instanceof ProbeError) return { missing: [], unreadable: thrown.message };
          throw thrown;
        });
        return findingOf(backup, evidence, judgement, siblings, offsite);
      } catch (thrown) {
        if (!(thrown instanceof ProbeError)) throw thrown;
        shared.standings.set(backup.name, { options: backup, unreadable: thrown.message });
        return {
          reason: thrown.reason,
          msg: thrown.message,
          gauges: [{ name: 'svc_backup_configured', labels: labelsOf(backup), value: 1 }],
          details: { store: backup.store, type: backup.type },
        };
      }
    },
    close: async () => leave(),
  };
}

const siblingsOf = ({ store, database }: BackupOptions, { standings }: Shared): Standing[] =>
  [...standings.values()].filter(
    ({ options }) =>
      options.store === store &&
      (options.database === undefined || database === undefined || options.database === database),
  );

/** Loads the code of a source when it is first read. */
async function readEvidence(
  { source, store }: BackupOptions,
  runs: readonly RunRecord[],
  {
    signal,
    readSecret,
    clock,
    latest,
    log,
  }: BucketDeps & Required<Pick<ProbeDeps, 'latest'>> & { log: LogReading },
): Promise<Evidence> {
  const nowMs = clock.nowMs();
  const { evidenceOfRuns, faultsOfRuns } = await import('./journal.ts');
  const withRuns = (evidence: Evidence): Evidence => {
    const faults = faultsOfRuns(runs, nowMs);
    return {
      ...evidence,
      failures: [...evidence.failures, ...faults.failures],
      unfinished: [...evidence.unfinished, ...faults.unfinished],
    };
  };
  /** What the polls of the store know of its log. */
  const logOfStore = () => {
    const polls = [`store/${store}`, ...storeRoles.map((role) => `store/${store}/${role}`)];
    const logs = polls.flatMap((probe) => archivedLogOf(latest(probe)) ?? []);
    return logs.sort((one, other) => (one.wholeUntilMs ?? 0) - (other.wholeUntilMs ?? 0)).at(-1);
  };
  switch (source.kind) {
    case 'files':
      return withRuns(await (await import('./files.ts')).readFiles(source, runs, nowMs));
    case 'segments': {
      const { readSegments } = await import('./log-evidence.ts');
      return withRuns(await readSegments(source, nowMs, { ...log, server: logOfStore() }));
    }
    case 'snapshot':
      return withRuns(await (await import('./snapshot.ts')).readSnapshotEvidence(source));
    case 'configuration':
      return withRuns(await (await import('./drift.ts')).readDrift(source.files, source.directory));
    case 'command': {
      const { parseReport, withArchive } = await import('./reports.ts');
      const { stdout } = await runCommand(source.command, { signal, maxBytes: 16 << 20 }).catch((thrown) => {
        throw unreadable(thrown.message, thrown);
      });
      return withRuns(withArchive(parseReport(source.format, stdout), logOfStore()));
    }
    case 'objectStore': {
      const { listObjects } = await import('./bucket.ts');
      const objects = await listObjects(source.objectStore, { signal, readSecret, clock });
      return withRuns((await import('./offsite.ts')).evidenceOfObjects(objects, source.pattern));
    }
    case 'heartbeat':
    case 'runs':
      return evidenceOfRuns(runs, nowMs);
  }
}

const usualPatienceMs = 5_000;

/** Answers to what is not verified yet: each artifact once, the newest first. A big one goes on in the background. */
async function verifications(
  { name, integrity }: BackupOptions,
  { artifacts }: Evidence,
  ledger: Ledger | undefined,
  shared: Shared,
  { clock, stateDirectory }: Pick<ProbeDeps, 'clock'> & { stateDirectory: string },
): Promise<Record<string, VerifyAnswer>> {
  const { verifier } = shared;
  const { level, bytesPerSecond } = integrity;
  const sinceMs = ledger?.sinceMs ?? clock.nowMs();
  const newest = artifacts.at(-1);
  const due = artifacts.filter(
    (artifact) =>
      artifact.verify &&
      !artifact.verified &&
      !ledger?.verified[keyOf(artifact)] &&
      (artifact === newest || artifact.endMs > sinceMs),
  );
  if (level === 'none' || due.length === 0) return {};
  const { verifiedAnswers } = await import('./journal.ts');
  const recorded = verifiedAnswers(stateDirectory, name);
  const known = await recorded.read();
  const waiting = new Set(due.toReversed());
  const ask = async () => {
    const found: [string, VerifyAnswer][] = [];
    for (const artifact of waiting) {
      const key = keyOf(artifact);
      const before = known.get(`${level} ${key}`);
      const answer = before ?? verifier.ask(`${name} ${key}`, { ...artifact.verify!, level, bytesPerSecond });
      if (!answer) continue;
      waiting.delete(artifact);
      found.push([key, answer]);
      if (!before && answer.result !== 'unknown') await recorded.record(`${level} ${key}`, answer);
    }
    return found;
  };
  return Object.fromEntries(await patiently(shared, clock, due.length, ask));
}

/** Asks for `expected` answers, and once more for those that come soon. */
async function patiently<T>(
  { verifier, patienceMs }: Shared,
  clock: ProbeDeps['clock'],
  expected: number,
  ask: () => T[] | Promise<T[]>,
): Promise<T[]> {
  const first = await ask();
  if (first.length === expected) return first;
  let cancel = () => {};
  const patience = new Promise<void>((resolve) => {
    cancel = clock.after(patienceMs, resolve);
  });
  await Promise.race([verifier.idle(), patience]);
  cancel();
  return [...first, ...(await ask())];
}

function findingOf(
  backup: BackupOptions,
  evidence: Evidence,
  judgement: Judgement,
  siblings: readonly Standing[],
  offsite: OffsiteStanding | undefined,
): Finding {
  const labels = labelsOf(backup);
  const { ledger, results } = judgement;
  const own = siblings.find(({ options }) => options.name === backup.name)!;
  const sample = (name: AgentMetricName, value: number | undefined): Sample[] =>
    value === undefined ? [] : [{ name, labels, value }];
  const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
  const durationMs = ledger.success && ledger.success.endMs - ledger.success.startMs;
  const newest = evidence.artifacts.at(-1);
  const hasDamage = Object.keys(evidence.log?.damaged ?? {}).length > 0;
  const answer = hasDamage
    ? 'corrupt'
    : newest && (newest.verified ?? ledger.verified[keyOf(newest)]?.result);
  const isUncleared = offsite?.newestMs !== undefined && (evidence.snapshots?.length ?? 0) > 0;
  const failed = (Object.keys(results) as BackupResult[])
    .filter((result) => failures.has(result))
    .reduce((sum, result) => sum + results[result]!, 0);
  return {
    ...verdictOf(judgement, offsite, isUncleared ? evidence.snapshots! : []),
    gauges: [
      ...sample('svc_backup_configured', 1),
      ...sample('svc_backup_last_success_timestamp_seconds', seconds(ledger.success?.endMs)),
      ...sample('svc_backup_last_failure_timestamp_seconds', seconds(ledger.lastFailureMs)),
      ...sample('svc_backup_recovery_point_timestamp_seconds', seconds(recoveryPointOf(own, siblings))),
      ...sample('svc_backup_last_size_bytes', sizeOf(ledger.success?.sizeBytes)),
      ...sample('svc_backup_last_duration_seconds', durationMs ? durationMs / 1000 : undefined),
      // Before the first success that none is kept says nothing more.
      ...sample('svc_backup_retention_compliant', ledger.success && (judgement.isRetentionKept ? 1 : 0)),
      ...sample('svc_backup_offsite_last_success_timestamp_seconds', seconds(offsite?.newestMs)),
      ...(answer === 'ok' || answer === 'corrupt'
        ? [
            {
              name: 'svc_backup_integrity_ok' as const,
              labels: { ...labels, level: backup.integrity.level },
              value: answer === 'ok' ? 1 : 0,
            },
          ]
        : []),
    ],
    increases: [
      ...(Object.entries(results) as [BackupResult, number][]).map(([result, value]) => ({
        name: 'svc_backup_runs_total' as const,
        labels: { ...labels, result },
        value,
      })),
      ...(failed > 0 ? [{ name: 'svc_backup_failures_total' as const, labels, value: failed }] : []),
    ],
    details: {
      store: backup.store,
      type: backup.type,
      artifacts: evidence.artifacts.length,
      newest: newest && {
        id: newest.id,
        start: new Date(newest.startMs).toISOString(),
        bytes: sizeOf(newest.sizeBytes),
      },
      integrity: evidence.log
        ? { result: evidence.log.result, msg: evidence.log.msg, damaged: evidence.log.damaged }
        : newest && (ledger.verified[keyOf(newest)] ?? newest.verified ?? 'not verified yet'),
    },
    remember: ledger,
  };
}

const sizeOf = (bytes: number | undefined) => (bytes === Number.MAX_SAFE_INTEGER ? undefined : bytes);

function verdictOf(
  { reason, msg }: Judgement,
  { missing, unreadable }: OffsiteStanding = { missing: [] },
  uncleared: readonly string[],
): Pick<Finding, 'reason' | 'msg'> {
  if (reason !== undefined) return { reason, msg };
  if (unreadable !== undefined) return { reason: 'evidence_unreadable', msg: `off-site: ${unreadable}` };
  if (missing.length > 0) {
    return { reason: 'offsite_missing', msg: `no off-site copy of ${missing.slice(0, 3).join(', ')}` };
  }
  if (uncleared.length > 0) {
    const names = uncleared.slice(0, 3).join(', ');
    return {
      reason: 'snapshot_not_cleared',
      msg: `snapshots with an off-site copy still on the node: ${names}`,
    };
  }
  return { msg };
}

async function offsiteOf(
  { offsite }: BackupOptions,
  { artifacts }: Evidence,
  deps: BucketDeps,
): Promise<OffsiteStanding | undefined> {
  if (!offsite) return undefined;
  const { compareOffsite, copiesInDirectory } = await import('./offsite.ts');
  const copies = offsite.objectStore
    ? (await (await import('./bucket.ts')).listObjects(offsite.objectStore, deps)).map(
        ({ key, sizeBytes }) => ({
          name: key,
          sizeBytes,
        }),
      )
    : await copiesInDirectory(offsite.directory ?? '');
  return compareOffsite(artifacts, copies, offsite.maxLagMs, deps.clock.nowMs());
}

interface Recoverable {
  store: string;
  database: string;
}

/** Databases that any backup but one of configuration is of. */
function recoverables({ backups, stores }: BackupsOptions): Recoverable[] {
  const found = new Map<string, Recoverable>();
  for (const { store, database, type } of backups) {
    if (type === 'config' || store === undefined) continue;
    const known = Object.keys(stores.find(({ name }) => name === store)?.databases ?? {});
    const all = database ? [database] : known;
    for (const each of all) found.set(`${store}/${each}`, { store, database: each });
  }
  return [...found.values()];
}

const objectives = (options: BackupsOptions, { store, database }: Recoverable): BackupOptions[] =>
  options.backups.filter(
    (backup) =>
      backup.type !== 'config' &&
      backup.store === store &&
      (backup.database === undefined || backup.database === database),
  );

function recoveryRow(of: Recoverable, options: BackupsOptions, shared: Shared, key: string): ProbeRow {
  const backups = objectives(options, of);
  return {
    name: `recovery/${of.store}${of.database ? `/${of.database}` : ''}`,
    kind: 'recovery',
    target: `${of.store} ${of.database}`.trim(),
    service: '',
    schedule: { intervalMs: Math.min(...backups.map(({ intervalMs }) => intervalMs)), timeoutMs: 10_000 },
    shows: {},
    reasons: recoveryFailureReasons,
    lane: laneOf(of),
    key,
    open: async (deps) => ({ check: () => checkRecovery(of, backups, options.stateDirectory, shared, deps) }),
  };
}

async function checkRecovery(
  of: Recoverable,
  backups: readonly BackupOptions[],
  stateDirectory: string,
  { standings }: Shared,
  { clock }: ProbeDeps,
): Promise<Finding> {
  const nowMs = clock.nowMs();
  const all = backups.map(({ name }) => standings.get(name));
  // The first polls of the backups have not ended yet: that is neither ready nor unreadable.
  if (all.some((standing) => standing === undefined)) return { msg: 'the evidence has not been read yet' };
  const drills = await readDrills(stateDirectory, of);
  const newest = drills.at(-1);
  const readiness = readinessOf(all as Standing[], newest, nowMs);
  const labels = { store: of.store, database: of.database };
  const gauges: Sample[] = backupTypes.flatMap((type) => {
    const ofType = backups.filter((backup) => backup.type === type).map((backup) => backup.objectives);
    if (ofType.length === 0) return [];
    const which = { ...labels, backup_type: type };
    const tightest = (ms: readonly number[]) => Math.min(...ms) / 1000;
    return [
      { name: 'svc_rpo_objective_seconds', labels: which, value: tightest(ofType.map(({ rpoMs }) => rpoMs)) },
      { name: 'svc_rto_objective_seconds', labels: which, value: tightest(ofType.map(({ rtoMs }) => rtoMs)) },
    ] satisfies Sample[];
  });
  for (const drill of drills) {
    const which = { ...labels, procedure: drill.procedure };
    gauges.push(
      { name: 'svc_restore_drill_last_success_timestamp_seconds', labels: which, value: drill.endMs / 1000 },
      { name: 'svc_restore_drill_last_duration_seconds', labels: which, value: drill.durationMs / 1000 },
    );
  }
  if (readiness.isReady !== undefined) {
    gauges.push({ name: 'svc_recovery_ready', labels, value: readiness.isReady ? 1 : 0 });
  }
  return {
    reason: readiness.reason as RecoveryFailureReason | undefined,
    msg: newest ? readiness.msg : `${readiness.msg}; no restore has been tried yet`,
    gauges,
    details: { chain: chainDetails(readiness.chain ?? chainOf(all as Standing[])), drill: newest },
  };
}

const chainDetails = (chain: ReturnType<typeof chainOf>) =>
  chain && {
    recoveryPoint: new Date(chain.recoveryPointMs).toISOString(),
    links: chain.links.map((link) => ({
      ...link,
      recoveryPointMs: undefined,
      to: new Date(link.recoveryPointMs).toISOString(),
    })),
  };

/** The newest success of each procedure that restores this database, oldest first. */
async function readDrills(stateDirectory: string, { store, database }: Recoverable): Promise<Drill[]> {
  const { journalPath, readRuns } = await import('./journal.ts');
  const drills: Drill[] = [];
  for (const procedure of ['database-corruption', 'cluster-loss']) {
    const path = journalPath(stateDirectory, 'recovery', drillName(procedure, store, database));
    const last = (await readRuns(path))
      .filter(({ status, endMs }) => status === 0 && endMs !== undefined)
      .at(-1);
    if (last) drills.push({ procedure, endMs: last.endMs!, durationMs: last.endMs! - last.startMs });
  }
  return drills.sort((one, other) => one.endMs - other.endMs);
}

/** Name under which a drill of one database is recorded. */
export const drillName = (procedure: string, store: string, database: string): string =>
  [procedure, store, database].filter((part) => part !== '').join('.');
