import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import { backupFailureReasons, backupResults } from '../../core/reasons.ts';
import { runCommand } from '../command.ts';
import {
  type Finding,
  type Probe,
  type ProbeDeps,
  ProbeError,
  type ProbeRow,
  type SeriesName,
} from '../probe.ts';
import { assess } from './assessment.ts';
import { backupFinding, labelsOf } from './backup-finding.ts';
import type { BackupOptions } from './block.ts';
import { type Artifact, type Evidence, forEntry, unreadable, withArchive } from './evidence.ts';
import type { SegmentReadings } from './formats/segment-readings.ts';
import type { BinlogPlace } from './formats/segments.ts';
import type { RunRecord } from './journal.ts';
import { incrementalsOn, isAsked, isAwaited, type KnownStore, knownStore, logsOf } from './known-store.ts';
import { keyOf, type Ledger } from './ledger.ts';
import type { LogReading } from './log-evidence.ts';
import type { Copied, Copies, EvidenceDeps, OffsiteStanding } from './offsite.ts';
import type { Standing } from './recovery-point.ts';
import { segmentVerification, verifications } from './verifications.ts';
import type { Verifier } from './verifier.ts';

/** What the probes of all backups share. */
interface SharedByBackups {
  /** The standings by the names of the backups. */
  standings: Map<string, Standing>;
  verifier: Verifier;
  /** How long a check waits for verifications, ms. Default: 5 s, but at most half of the time of a check. */
  verificationWaitMs?: number;
  /** How many of the newest backups are verified at the first check. */
  verifiedAtFirst: number;
  stateDirectory: string;
  /** The databases that a backup must contain: their names in the store by their roles. */
  databasesOf(backup: BackupOptions): Readonly<Record<string, string>>;
  /** A key that changes when any backup changes. */
  key: string;
}

/** The probe of one entry of `backups`: it reads the evidence, has it verified and assesses it. */
export function backupRow(backup: BackupOptions, shared: SharedByBackups): ProbeRow {
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
    schedule: {
      intervalMs: backup.intervalMs,
      timeoutMs,
      phase: { name: laneOf(backup), delayMs: 0 },
    },
    shows: { counters },
    reasons: backupFailureReasons,
    lane: laneOf(backup),
    key: shared.key,
    open: async (deps) => {
      const verificationWaitMs = shared.verificationWaitMs ?? Math.min(usualWaitMs, timeoutMs / 2);
      return openBackup(backup, { ...shared, verificationWaitMs }, deps);
    },
  };
}

const usualWaitMs = 5_000;
/** What the probes of all backups share, with the defaults filled in. */
type Shared = SharedByBackups & { verificationWaitMs: number };

/** The lane of a store's probes: the databases of the store are assessed after their backups. */
export const laneOf = ({ store }: { store?: string }): string => `backups/${store ?? ''}`;

function targetOf({ source }: BackupOptions): string {
  if (source.kind === 'command') return source.command[0] ?? '';
  if ('keyspace' in source) return `${source.dataDirectory}/${source.keyspace}`;
  return 'directory' in source ? source.directory : source.kind;
}

async function openBackup(backup: BackupOptions, shared: Shared, deps: ProbeDeps): Promise<Probe> {
  const leave = shared.verifier.join();
  const verify = segmentVerification(backup, targetOf(backup), shared, deps.clock);
  let readings: SegmentReadings | undefined;
  const openReadings = async () => {
    const { openSegmentReadings } = await import('./formats/segment-readings.ts');
    readings ??= await openSegmentReadings(
      join(shared.stateDirectory, 'backup-verified', `${backup.name}.segments.jsonl`),
    );
    return readings;
  };
  return {
    async check(signal, recalled) {
      try {
        return await checkBackup(backup, shared, deps, {
          log: {
            verify,
            everyMs: backup.integrity.everyMs,
            readings: backup.source.kind === 'segments' ? await openReadings() : undefined,
          },
          signal,
          ledger: recalled as Ledger | undefined,
        });
      } catch (thrown) {
        const isOfSystem = systemCode(thrown) !== undefined && !(thrown instanceof ProbeError);
        const fault = isOfSystem ? unreadable(`cannot be read: ${errorText(thrown)}`, thrown) : thrown;
        if (!(fault instanceof ProbeError)) throw thrown;
        shared.standings.set(backup.name, { options: backup, unreadable: fault.message });
        return {
          reason: fault.reason,
          msg: fault.message,
          gauges: [{ name: 'svc_backup_configured', labels: labelsOf(backup), value: 1 }],
          details: { store: backup.store, type: backup.type },
        };
      }
    },
    progress: () => shared.verifier.progress(backup.name),
    close: async () => leave(),
  };
}

async function checkBackup(
  backup: BackupOptions,
  shared: Shared,
  { clock, readSecret, tracing, latest: shown }: ProbeDeps,
  { log, signal, ledger }: { log: LogReading; signal: AbortSignal; ledger: Ledger | undefined },
): Promise<Finding> {
  const { journalPath, readRuns } = await import('./journal.ts');
  const runs = await readRuns(journalPath(shared.stateDirectory, 'backup', backup.name));
  const deps = { signal, readSecret, clock, tracing };
  const latest = shown ?? (() => undefined);
  const named = shared.databasesOf(backup);
  // A backup whose source is a command needs no store.
  const awaitsTables = shown !== undefined && isAwaited(backup, Object.keys(named), latest);
  const databases = Object.values(named);
  const known = knownStore(backup, ledger?.store, latest, { nowMs: clock.nowMs(), databases });
  const places = siblingsOf(backup, shared).flatMap(placesOf);
  const awaitsStore = shown !== undefined && !isAsked(backup.store, latest);
  const read = await readEvidence(backup, runs, {
    ...deps,
    latest,
    log: { ...log, places },
    known,
    awaitsStore,
  });
  const evidence = {
    ...read,
    jobs: runs,
    expects: databases,
    tables: known.tables,
    unlogged: known.unlogged,
    aheadMs: known.aheadMs,
    awaitsTables,
  };
  const device = await deviceWith(evidence, directoryOf(backup), ledger?.device);
  const answers = await verifications(backup, evidence, ledger, shared, clock);
  const assessment = assess(backup, evidence, answers, ledger, clock.nowMs());
  assessment.ledger.device = device;
  assessment.ledger.store = known;
  shared.standings.set(backup.name, { options: backup, assessed: { evidence, assessment } });
  const before = { device: ledger?.offsiteDevice, copiedTo: ledger?.offsiteCopiedTo };
  const offsite = await offsiteOf(backup, evidence, assessment.ledger.verified, { deps, before }).catch(
    (thrown) => {
      if (thrown instanceof ProbeError) return { ...before, missing: [], unreadable: thrown.message };
      throw thrown;
    },
  );
  assessment.ledger.offsiteDevice = offsite?.device;
  assessment.ledger.offsiteCopiedTo = offsite?.copiedTo;
  const siblings = siblingsOf(backup, shared);
  return backupFinding(backup, evidence, assessment, { siblings, offsite, nowMs: clock.nowMs() });
}

function directoryOf({ source }: BackupOptions): string | undefined {
  if ('keyspace' in source) return join(source.dataDirectory, source.keyspace);
  return 'directory' in source ? source.directory : undefined;
}

/**
 * The device of the backups' file system. If a file system is unmounted, its empty mount point, which is on another device, is
 * left: then nothing is known about the backups, and they do not count as deleted.
 */
async function deviceWith(
  { artifacts, log, missingDirectory }: Evidence,
  directory: string | undefined,
  before: number | undefined,
): Promise<number | undefined> {
  if (directory === undefined || missingDirectory !== undefined) return before;
  return deviceOf(directory, artifacts.length + (log?.placed.length ?? 0) === 0, before);
}

async function deviceOf(
  directory: string,
  isEmpty: boolean,
  before: number | undefined,
): Promise<number | undefined> {
  const { dev } = await stat(directory);
  if (isEmpty && before !== undefined && before !== dev)
    throw unreadable(
      `${directory} has no backup and is on another file system than before; mount the one with the backups`,
    );
  return isEmpty ? before : dev;
}

/** The positions in its binary log at which the verified backups of a store were taken. */
const placesOf = ({ assessed }: Standing): BinlogPlace[] =>
  (assessed?.assessment.usable ?? []).flatMap(({ content }) => content?.binlog ?? []);

const siblingsOf = ({ store, database }: BackupOptions, { standings }: SharedByBackups): Standing[] =>
  [...standings.values()].filter(
    ({ options }) =>
      options.store === store &&
      (options.database === undefined || database === undefined || options.database === database),
  );

/** What the polls of a store say about its log. */
const ofLog = ({ leavesOut, aheadMs, wrote, writer }: KnownStore) => ({ leavesOut, aheadMs, wrote, writer });

/** Reads the evidence. The code of a source is loaded when it is first used. */
async function readEvidence(
  { source, store, type, integrity, retention }: BackupOptions,
  runs: readonly RunRecord[],
  {
    signal,
    readSecret,
    clock,
    tracing,
    latest,
    log,
    known,
    awaitsStore,
  }: EvidenceDeps &
    Required<Pick<ProbeDeps, 'latest'>> & { log: LogReading; known: KnownStore; awaitsStore: boolean },
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
  /** The archived log according to the last poll of the store. */
  const logOfStore = () =>
    logsOf(store, latest)
      .sort((one, other) => (one.wholeUntilMs ?? 0) - (other.wholeUntilMs ?? 0))
      .at(-1);
  switch (source.kind) {
    case 'files':
      return withRuns(await (await import('./files.ts')).readFiles(source, runs, nowMs));
    case 'segments': {
      const { readSegments } = await import('./log-evidence.ts');
      const read = await readSegments(source, nowMs, { ...log, server: logOfStore() });
      return withRuns({ ...read, log: { ...read.log, ...ofLog(known), awaitsStore } });
    }
    case 'snapshot':
      return withRuns(
        await (await import('./cassandra-backups.ts')).readSnapshotEvidence(source, {
          schema: known.tables && Object.keys(known.tables),
          runs,
          nowMs,
        }),
      );
    case 'incrementals': {
      const { readIncrementals } = await import('./cassandra-incrementals.ts');
      const isOn = incrementalsOn(store, latest);
      return readIncrementals(source, runs, {
        nowMs,
        keepMs: retention.keepMs,
        node: { isOn, off: known.off },
      });
    }
    case 'configuration':
      return withRuns(await (await import('./files.ts')).readDrift(source.files, source.directory));
    case 'command': {
      const { parseReport } = await import('./tool-reports.ts');
      const { stdout } = await runCommand(source.command, { signal, maxBytes: 16 << 20 }).catch((thrown) => {
        throw unreadable(thrown.message, thrown);
      });
      const report = withArchive(parseReport(source.format, stdout, nowMs), logOfStore());
      return withRuns(forEntry(report, type, integrity.level, source));
    }
    case 'objectStore': {
      const { listObjects } = await import('./offsite.ts');
      const objects = await listObjects(source.objectStore, { signal, readSecret, clock, tracing });
      return withRuns((await import('./offsite.ts')).evidenceOfObjects(objects, source.pattern));
    }
    case 'heartbeat':
    case 'runs':
      return evidenceOfRuns(runs, nowMs);
  }
}

async function offsiteOf(
  { offsite }: BackupOptions,
  { artifacts, log, snapshots }: Evidence,
  answers: Ledger['verified'],
  { deps, before }: { deps: EvidenceDeps; before: Pick<OffsiteStanding, 'device' | 'copiedTo'> },
): Promise<OffsiteStanding | undefined> {
  if (!offsite) return undefined;
  const { compareOffsite, copiesInDirectory, withCopiesInBucket } = await import('./offsite.ts');
  const { objectStore, directory = '', maxLagMs } = offsite;
  const isCompared = offsite.checksums;
  const segments = log?.placed.map(({ segment: { name: id, endMs, sizeBytes, content } }): Copied => {
    return { id, endMs, sizeBytes, md5: isCompared ? content?.md5 : undefined };
  });
  const md5Of = (artifact: Artifact) => answers[keyOf(artifact)]?.content?.md5;
  const backups =
    segments ??
    artifacts.map((artifact): Copied => ({ ...artifact, md5: isCompared ? md5Of(artifact) : undefined }));
  const compare = (copies: Copies) =>
    compareOffsite(backups, copies, {
      ...{ maxLagMs, nowMs: deps.clock.nowMs(), snapshots },
      ...{ isLog: segments !== undefined, copiedTo: before.copiedTo },
    });
  if (objectStore) return withCopiesInBucket(objectStore, deps, compare);
  const copies = copiesInDirectory(directory);
  const device = await deviceOf(directory, await copies.isEmpty(), before.device);
  return { ...(await compare(copies)), device };
}
