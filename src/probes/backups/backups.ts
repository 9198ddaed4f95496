import { createHash } from 'node:crypto';
import { backupTypes, recoveryFailureReasons } from '../../core/reasons.ts';
import type { Finding, ProbeDeps, ProbeRow, Sample } from '../probe.ts';
import type { StoreOptions } from '../stores/store-options.ts';
import type { LogArchive } from '../stores/store-probe.ts';
import { backupRow, laneOf } from './backup-probe.ts';
import type { BackupOptions } from './block.ts';
import { configurationReadiness, type Drill, readinessOf } from './readiness.ts';
import type { Chain, Standing } from './recovery-point.ts';
import { createVerifier, type VerifyBackup } from './verifier.ts';

export interface BackupsOptions {
  backups?: readonly BackupOptions[];
  stores: readonly StoreOptions[];
  /** The directory in which runs of backups and of recovery procedures are recorded. */
  stateDirectory?: string;
}

interface BackupsDeps {
  verify?: VerifyBackup;
  /** How long a check waits for verifications, ms. By default, small backups are assessed in one check. */
  verificationWaitMs?: number;
  /** How many of the newest backups are verified at the first check. Default: 1. */
  verifiedAtFirst?: number;
}

/**
 * Probes of backups: one for each entry of `backups`, which reads and assesses its evidence, and one for each database of a
 * store, which decides from all its backups whether the database could be recovered within its objectives now. The probes share a
 * table of standings; the counts are part of the snapshot of the state.
 */
export function planBackups(configured: BackupsOptions, deps: BackupsDeps = {}): ProbeRow[] {
  const { backups = [], stores, stateDirectory = '' } = configured;
  if (backups.length === 0) return [];
  const standings = new Map<string, Standing>();
  const shared = {
    standings,
    verifier: createVerifier(deps.verify),
    verificationWaitMs: deps.verificationWaitMs,
    verifiedAtFirst: deps.verifiedAtFirst ?? 1,
    stateDirectory,
    databasesOf: (backup: BackupOptions) => databasesOf(backup, stores),
    // A change of any backup restarts the probes of all, because they read each other's standings.
    key: JSON.stringify([backups, stateDirectory, stores.map(({ name, databases }) => [name, databases])]),
  };
  return [
    ...backups.map((backup) => backupRow(backup, shared)),
    ...recoverables(backups, stores).map((database) => recoveryRow(database, backups, shared)),
    ...(backups.some(({ type }) => type === 'config') ? [configurationRow(backups, shared)] : []),
  ];
}

/** The directory in which segments of a store's write-ahead log are archived, for the probe of that store. */
export const archivesOf =
  ({ backups = [] }: BackupsOptions) =>
  (name: string): LogArchive[] =>
    backups.flatMap(({ store, source }) => {
      if (store !== name || source.kind !== 'segments' || source.log !== 'wal') return [];
      const check: LogArchive['check'] = async (log) =>
        (await import('./archive-check.ts')).checkArchive(source, log);
      return [{ ...source, check }];
    });

/** The names of the databases of a backup in its store, by their roles. */
function databasesOf(
  { store, database }: BackupOptions,
  stores: readonly StoreOptions[],
): Readonly<Record<string, string>> {
  const names: Readonly<Record<string, string>> = stores.find(({ name }) => name === store)?.databases ?? {};
  return Object.fromEntries(
    Object.entries(names).filter(([role]) => database === undefined || role === database),
  );
}

/** A database of a store; `''` for a store whose databases have no names. */
export interface Recoverable {
  store: string;
  database: string;
}

/** Databases that have a backup other than a backup of the configuration. */
export function recoverables(
  backups: readonly BackupOptions[],
  stores: readonly StoreOptions[],
): Recoverable[] {
  const found = new Map<string, Recoverable>();
  for (const { store, database, type } of backups) {
    if (type === 'config' || store === undefined) continue;
    const known = Object.keys(stores.find(({ name }) => name === store)?.databases ?? {});
    const all = database ? [database] : known;
    for (const each of all) found.set(`${store}/${each}`, { store, database: each });
  }
  return [...found.values()];
}

interface SharedByRecovery {
  standings: ReadonlyMap<string, Standing>;
  stateDirectory: string;
  key: string;
}

const afterBackupsMs = 100;

/** The last assessment. It is remembered so that a restarted agent shows it at once. */
interface RememberedStanding {
  /** A digest of the configuration with which the assessment was made. */
  by: string;
  atMs: number;
  gauges: readonly Sample[];
  /** From this time on the database is no longer ready, in any case; ms since the epoch. */
  untilMs?: number;
}

/** For how many intervals an assessment is valid: as long as the gauges of a running agent are. */
const heldIntervals = 3;

const digestOf = (key: string): string => createHash('sha256').update(key).digest('base64');

function stillShown(recalled: unknown, key: string, intervalMs: number, nowMs: number): readonly Sample[] {
  const last = recalled as RememberedStanding | undefined;
  if (last?.by !== digestOf(key)) return [];
  const ageMs = nowMs - last.atMs;
  if (ageMs < 0 || ageMs >= heldIntervals * intervalMs) return [];
  const { gauges, untilMs = Number.POSITIVE_INFINITY } = last;
  return nowMs < untilMs ? gauges : gauges.filter(({ name }) => name !== 'svc_recovery_ready');
}

/** The probe that decides whether one database can be recovered within its objectives. It runs after the database's backups. */
function recoveryRow(of: Recoverable, all: readonly BackupOptions[], shared: SharedByRecovery): ProbeRow {
  const backups = all.filter(
    (backup) =>
      backup.type !== 'config' &&
      backup.store === of.store &&
      (backup.database === undefined || backup.database === of.database),
  );
  const intervalMs = Math.min(...backups.map((backup) => backup.intervalMs));
  return {
    name: `recovery/${of.store}${of.database ? `/${of.database}` : ''}`,
    kind: 'recovery',
    target: `${of.store} ${of.database}`.trim(),
    service: '',
    // By then the checks of the backups, which share the lane, are queued.
    schedule: { intervalMs, timeoutMs: 10_000, phase: { name: laneOf(of), delayMs: afterBackupsMs } },
    shows: {},
    reasons: recoveryFailureReasons,
    lane: laneOf(of),
    key: shared.key,
    stillShown: (recalled, nowMs) => stillShown(recalled, shared.key, intervalMs, nowMs),
    open: async (deps) => ({
      check: async (_, recalled) =>
        (await checkRecovery(of, backups, shared, deps)) ?? {
          // Until each backup has been checked once, the result is neither ready nor unreadable.
          msg: 'the evidence has not been read yet',
          gauges: stillShown(recalled, shared.key, intervalMs, deps.clock.nowMs()),
        },
    }),
  };
}

async function checkRecovery(
  of: Recoverable,
  backups: readonly BackupOptions[],
  { standings, stateDirectory, key }: SharedByRecovery,
  { clock }: ProbeDeps,
): Promise<Finding | undefined> {
  const nowMs = clock.nowMs();
  const all = backups.map(({ name }) => standings.get(name));
  if (all.some((standing) => standing === undefined)) return undefined;
  const drills = await readDrills(stateDirectory, of);
  const newest = drills.at(-1);
  const readiness = readinessOf(all as Standing[], newest, nowMs);
  const labels = { store: of.store, database: of.database };
  const gauges = [...objectiveGauges(labels, backups), ...drillGauges(labels, drills)];
  gauges.push({ name: 'svc_recovery_ready', labels, value: readiness.isReady ? 1 : 0 });
  const remember: RememberedStanding = { by: digestOf(key), atMs: nowMs, gauges, untilMs: readiness.untilMs };
  return {
    reason: readiness.reason,
    msg: newest || readiness.reason ? readiness.msg : `${readiness.msg}; no restore has been tried yet`,
    gauges,
    details: { chain: readiness.chain && chainDetails(readiness.chain), drill: newest },
    remember,
  };
}

/** The labels of the configuration, which belongs to no store. */
const configuration: Recoverable = { store: 'configuration', database: '' };

/** The probe that decides whether every copy of the configuration is within its objective. */
function configurationRow(all: readonly BackupOptions[], { standings, key }: SharedByRecovery): ProbeRow {
  const backups = all.filter(({ type }) => type === 'config');
  const intervalMs = Math.min(...backups.map((backup) => backup.intervalMs));
  return {
    name: 'recovery/configuration',
    kind: 'recovery',
    target: 'configuration',
    service: '',
    schedule: { intervalMs, timeoutMs: 10_000, phase: { name: laneOf({}), delayMs: afterBackupsMs } },
    shows: {},
    reasons: recoveryFailureReasons,
    lane: laneOf({}),
    key,
    open: async ({ clock }) => ({
      check: async () => {
        const known = backups.map(({ name }) => standings.get(name));
        if (known.some((standing) => standing === undefined))
          return { msg: 'the evidence has not been read yet' };
        const { reason, msg } = configurationReadiness(known as Standing[], clock.nowMs());
        const ready: Sample = {
          name: 'svc_recovery_ready',
          labels: { ...configuration },
          value: reason === undefined ? 1 : 0,
        };
        return { reason, msg, gauges: [...objectiveGauges(configuration, backups), ready] };
      },
    }),
  };
}

function objectiveGauges(labels: Recoverable, backups: readonly BackupOptions[]): Sample[] {
  return backupTypes.flatMap((type): Sample[] => {
    const ofType = backups.filter((backup) => backup.type === type).map((backup) => backup.objectives);
    if (ofType.length === 0) return [];
    const which = { ...labels, backup_type: type };
    const tightest = (ms: readonly number[]) => Math.min(...ms) / 1000;
    return [
      { name: 'svc_rpo_objective_seconds', labels: which, value: tightest(ofType.map(({ rpoMs }) => rpoMs)) },
      { name: 'svc_rto_objective_seconds', labels: which, value: tightest(ofType.map(({ rtoMs }) => rtoMs)) },
    ];
  });
}

const drillGauges = (labels: Recoverable, drills: readonly Drill[]): Sample[] =>
  drills.flatMap(({ procedure, endMs, durationMs }): Sample[] => {
    const which = { ...labels, procedure };
    return [
      { name: 'svc_restore_drill_last_success_timestamp_seconds', labels: which, value: endMs / 1000 },
      { name: 'svc_restore_drill_last_duration_seconds', labels: which, value: durationMs / 1000 },
    ];
  });

const chainDetails = ({ recoveryPointMs, links }: Chain) => ({
  recoveryPoint: new Date(recoveryPointMs).toISOString(),
  links: links.map(({ recoveryPointMs: ms, ...link }) => ({
    ...link,
    ...(ms !== undefined && { to: new Date(ms).toISOString() }),
  })),
});

/** Procedures that restore a database; their runs are drills. */
const drillProcedures: readonly string[] = ['database-corruption', 'cluster-loss', 'rehearsal'];

/** The newest success of each procedure that restores this database, oldest first. */
async function readDrills(stateDirectory: string, { store, database }: Recoverable): Promise<Drill[]> {
  const { journalPath, readRuns } = await import('./journal.ts');
  const drills: Drill[] = [];
  for (const procedure of drillProcedures) {
    const path = journalPath(stateDirectory, 'recovery', drillName(procedure, store, database));
    const last = (await readRuns(path))
      .filter(({ status, endMs }) => status === 0 && endMs !== undefined)
      .at(-1);
    if (last) drills.push({ procedure, endMs: last.endMs!, durationMs: last.endMs! - last.startMs });
  }
  return drills.sort((one, other) => one.endMs - other.endMs);
}

/** The name under which a drill of one database is recorded. */
export const drillName = (procedure: string, store: string, database: string): string =>
  [procedure, store, database].filter((part) => part !== '').join('.');
