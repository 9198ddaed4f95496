import type { ProbeDeps } from '../probe.ts';
import type { BackupOptions } from './block.ts';
import type { Evidence, VerifyAnswer } from './evidence.ts';
import { keyOf, type Ledger } from './ledger.ts';
import type { LogReading } from './log-evidence.ts';
import type { Verifier } from './verifier.ts';
import type { VerifyRequest } from './verify.ts';

/** What the check of one backup asks the verifier, and how long it waits for the answers. */

interface Verifying {
  verifier: Verifier;
  /** How long a check waits for verifications, ms. */
  verificationWaitMs: number;
  /** How many of the newest backups are verified at the first check. */
  verifiedAtFirst: number;
  stateDirectory: string;
}

/** Verifies segments of archived log; a request without an answer yet is repeated at the next check. */
export function segmentVerification(
  { name, integrity: { level, bytesPerSecond } }: BackupOptions,
  path: string,
  shared: Verifying,
  clock: ProbeDeps['clock'],
): LogReading['verify'] {
  let asked: VerifyRequest | undefined;
  let unread: VerifyAnswer | undefined;
  return async (segments) => {
    asked ??= { path, level, bytesPerSecond, segments };
    const request = asked;
    const [answer] = await askWithin(shared, clock, 1, () =>
      [shared.verifier.ask(name, request)].filter((one) => one !== undefined),
    );
    if (answer === undefined) return unread;
    asked = undefined;
    unread = answer.isUnreadable && answer;
    return answer;
  };
}

/**
 * Verifies each artifact, and again after `integrity.everyMs`, beginning with the newest; returns the answers so far. Long
 * verifications continue in the background and are answered at a later check; until then the earlier answer counts.
 */
export async function verifications(
  { name, type, integrity }: BackupOptions,
  { artifacts }: Evidence,
  ledger: Ledger | undefined,
  shared: Verifying,
  clock: ProbeDeps['clock'],
): Promise<Record<string, VerifyAnswer>> {
  const { verifier } = shared;
  const { level, bytesPerSecond, everyMs } = integrity;
  const nowMs = clock.nowMs();
  const sinceMs = ledger?.sinceMs ?? nowMs;
  // An answer of an earlier version contains no content.
  const isCurrent = (answer: VerifyAnswer | undefined): answer is VerifyAnswer =>
    answer !== undefined &&
    (answer.result !== 'ok' || answer.content !== undefined) &&
    nowMs - (answer.atMs ?? 0) < everyMs;
  const newest = new Set(artifacts.slice(-shared.verifiedAtFirst));
  const due = artifacts.filter(
    (artifact) =>
      artifact.verify &&
      !artifact.verified &&
      !isCurrent(ledger?.verified[keyOf(artifact)]) &&
      // An incremental backup is useless without the backups that it builds upon.
      (type === 'incremental' || newest.has(artifact) || artifact.endMs > sinceMs),
  );
  if (level === 'none' || due.length === 0) return {};
  const { verifiedAnswers } = await import('./journal.ts');
  const journal = verifiedAnswers(shared.stateDirectory, name);
  const known = await journal.read();
  const waiting = new Set(due.toReversed());
  const ask = async () => {
    const found: [string, VerifyAnswer][] = [];
    for (const artifact of waiting) {
      const key = keyOf(artifact);
      const recorded = known.get(`${level} ${key}`);
      const before = isCurrent(recorded) ? recorded : undefined;
      const fresh = before ?? verifier.ask(`${name} ${key}`, { ...artifact.verify!, level, bytesPerSecond });
      if (!fresh) continue;
      const answer = { ...fresh, atMs: before?.atMs ?? nowMs };
      waiting.delete(artifact);
      found.push([key, answer]);
      if (!before && answer.result !== 'unknown') await journal.record(`${level} ${key}`, answer);
    }
    return found;
  };
  return Object.fromEntries(await askWithin(shared, clock, due.length, ask));
}

/** Requests the `expected` answers. If some are missing, waits up to `verificationWaitMs` and requests them once more. */
async function askWithin<T>(
  { verifier, verificationWaitMs }: Verifying,
  clock: ProbeDeps['clock'],
  expected: number,
  ask: () => T[] | Promise<T[]>,
): Promise<T[]> {
  const first = await ask();
  if (first.length === expected) return first;
  let cancel = () => {};
  const timeout = new Promise<void>((resolve) => {
    cancel = clock.after(verificationWaitMs, resolve);
  });
  await Promise.race([verifier.idle(), timeout]);
  cancel();
  return [...first, ...(await ask())];
}
