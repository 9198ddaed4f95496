import { basename } from 'node:path';
import { planBackups } from '../../probes/backups/backups.ts';
import { type VerifyBackup, verifyInProcess } from '../../probes/backups/verifier.ts';
import { planProbes } from '../../probes/plan.ts';
import type { ProbeRow, Progress } from '../../probes/probe.ts';
import type { AgentConfig } from '../config/types.ts';
import { bar, progressLine, progressText, type Screen } from './io.ts';

/** The verification of every backup is shorter than this. */
export const longestMs = 7 * 24 * 36e5;

/** Called with the progress of a backup's verification, and without progress at its end. */
export type OnVerification = (path: string, progress?: Progress) => void;

const verificationText = (path: string, progress: Progress, screen: Screen): string =>
  `verifying ${basename(path)} ${progressText(progress, screen)}`;

/** Shows each verification on its own line, which is removed at its end. */
export function verificationLine(screen: Screen, write: (text: string) => void): OnVerification {
  const line = progressLine(screen, write);
  return (path, progress) => (progress ? line.show(verificationText(path, progress, screen)) : line.clear());
}

/** What a person sees while probes run. */
export interface ProbeProgress {
  begin(rows: readonly ProbeRow[]): void;
  done(name: string): void;
  clear(): void;
  onVerification: OnVerification;
}

/** One line: how many probes have a result and which ones are missing, or the progress of a verification. */
export function createProbeProgress(screen: Screen, write: (text: string) => void): ProbeProgress {
  const line = progressLine(screen, write);
  let total = 0;
  const waiting = new Set<string>();
  const show = (what = `waiting for ${[...waiting].join(', ')}`) => {
    const done = total - waiting.size;
    line.show(`${bar(done / Math.max(1, total), 10, screen)} ${done}/${total} ${what}`);
  };
  return {
    begin(rows) {
      for (const { name } of rows) waiting.add(name);
      total = rows.length;
      show();
    },
    done(name) {
      waiting.delete(name);
      show();
    },
    clear: () => line.clear(),
    onVerification: (path, progress) => show(progress && verificationText(path, progress, screen)),
  };
}

/** Verifies a backup in a separate process, as the agent does, and reports the progress. */
export const verifyWithProgress =
  (onVerification: OnVerification): VerifyBackup =>
  async (request, signal, onProgress) => {
    const { path, snapshot } = request;
    const what = snapshot === undefined ? path : `${path} ${snapshot}`;
    try {
      return await verifyInProcess(request, signal, (progress) => {
        onProgress(progress);
        onVerification(what, progress);
      });
    } finally {
      onVerification(what);
    }
  };

/**
 * All probes of a configuration, for a command that a person waits for. With `isPatient` the command waits until each backup is
 * verified, however big it is. `verifiedAtFirst` is the number of newest backups that are verified, by default one.
 */
export function planForPerson(
  config: AgentConfig,
  onVerification: OnVerification,
  isPatient: boolean,
  verifiedAtFirst?: number,
): ProbeRow[] {
  const others = planProbes(config).filter(({ kind }) => kind !== 'backup' && kind !== 'recovery');
  const verify = verifyWithProgress(onVerification);
  if (!isPatient) return [...others, ...planBackups(config, { verify })];
  const unhurried = planBackups(config, { verify, verificationWaitMs: longestMs, verifiedAtFirst }).map(
    (row) => ({
      ...row,
      schedule: { ...row.schedule, timeoutMs: longestMs },
    }),
  );
  return [...others, ...unhurried];
}
