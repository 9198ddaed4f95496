import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { errorText } from '../../core/errors.ts';
import { runCommand } from '../command.ts';
import type { CleaningRequest, RehearsalAnswer, RehearsalRequest } from './rehearsal.ts';

export interface RunningRehearsal {
  phase(): string | undefined;
  /**
   * Resolves with the answer. Undefined for a request to clean, after the rehearsal was cut off, and if another rehearsal was
   * under way. Never rejects.
   */
  ended: Promise<RehearsalAnswer | undefined>;
}

export type StartRehearsal = (
  request: RehearsalRequest | CleaningRequest,
  signal: AbortSignal,
) => RunningRehearsal;

/** Time for the removal after the time limit of the rehearsal. */
const removalMs = 60_000;

/** The program of the rehearsing process, which is beside the agent's program in the bundle. */
function rehearsalProgram(): string {
  const places = ['./rehearse.mjs', '../rehearse.mjs'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  return places.find((path) => existsSync(path)) ?? places[0]!;
}

/** Rehearses in a separate process with the lowest priority, which ends together with everything that it started. */
export const startRehearsal: StartRehearsal = (request, signal) => {
  let phase: string | undefined;
  let answer: RehearsalAnswer | undefined;
  const onLine = (line: string) => {
    const message = JSON.parse(line) as RehearsalAnswer | { phase: string };
    if ('phase' in message) phase = message.phase;
    else answer = message;
  };
  const limitMs = ('clean' in request ? 0 : request.timeoutMs) + removalMs;
  const ended = runCommand([process.execPath, rehearsalProgram(), JSON.stringify(request)], {
    signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
    maxBytes: 64 * 1024,
    onLine,
  }).then(
    () => answer,
    (thrown): RehearsalAnswer | undefined =>
      'clean' in request || signal.aborted
        ? undefined
        : { result: 'unknown', msg: `the rehearsing process failed: ${errorText(thrown)}`, phasesMs: {} },
  );
  return { phase: () => phase, ended };
};
