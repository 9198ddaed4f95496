import type { ProbesOptions } from '../options.ts';
import type { ProbeRow } from '../probe.ts';
import { backupRow } from './backup-probe.ts';
import type { Standing } from './readiness.ts';
import { recoverables, recoveryRow } from './recovery-probe.ts';
import { createVerifier, type VerifyBackup } from './verifier.ts';

export interface BackupsDeps {
  verify?: VerifyBackup;
  /** How long a check waits for verifications. Default: long enough that small backups are judged at once. */
  patienceMs?: number;
}

const defaultPatienceMs = 5_000;

/**
 * Probes of backups: one for each entry of `backups`, which reads and judges its evidence, and one for each database
 * of a store, which decides from all its backups whether the database could be recovered within its objectives now.
 * The probes share a table of standings; what is counted once is part of the snapshot of the state.
 */
export function planBackups(configured: ProbesOptions, deps: BackupsDeps = {}): ProbeRow[] {
  const { backups = [], stores, stateDirectory = '' } = configured;
  if (backups.length === 0) return [];
  const standings = new Map<string, Standing>();
  const shared = {
    standings,
    verifier: createVerifier(deps.verify),
    patienceMs: deps.patienceMs ?? defaultPatienceMs,
    stateDirectory,
    // A change of any backup restarts the probes of all, because they read each other's standings.
    key: JSON.stringify([backups, stateDirectory]),
  };
  return [
    ...backups.map((backup) => backupRow(backup, shared)),
    ...recoverables(backups, stores).map((database) => recoveryRow(database, backups, shared)),
  ];
}
