import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { errorText } from '../../core/errors.ts';
import { runCommand } from '../command.ts';
import type { Progress } from '../probe.ts';
import type { VerifyAnswer } from './evidence.ts';
import type { VerifyRequest } from './verify.ts';

/** Verifies one backup, which may take hours. Rejects if the backup cannot be read, and when `signal` aborts. */
export type VerifyBackup = (
  request: VerifyRequest,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
) => Promise<VerifyAnswer>;

/** The program of the verifying process, which is beside the agent's program in the bundle. */
function verifyProgram(): string {
  const places = ['./verify.mjs', '../verify.mjs'].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  return places.find((path) => existsSync(path)) ?? places[0]!;
}

/** Verifies in a separate process with the lowest priority, whose memory is released at its end. */
export const verifyInProcess: VerifyBackup = async (request, signal, onProgress) => {
  const command = [process.execPath, verifyProgram(), JSON.stringify(request)];
  let answer: VerifyAnswer | undefined;
  const onLine = (line: string) => {
    const message = JSON.parse(line) as VerifyAnswer | Progress;
    if ('result' in message) answer = message;
    else onProgress(message);
  };
  await runCommand(command, { signal, maxBytes: 64 * 1024, onLine });
  if (answer === undefined) throw new Error('the verifying process ended without an answer');
  return answer;
};

/** Verifications in the background: one at a time for all backups of the agent. */
export interface Verifier {
  /**
   * Returns the answer, or makes the request and returns undefined until the answer is there. A backup that cannot be read is
   * `unknown` and is tried again after the next call.
   */
  ask(key: string, request: VerifyRequest): VerifyAnswer | undefined;
  /** Progress of the running verification, if its key is this one or begins with it and a space. */
  progress(key: string): Progress | undefined;
  /** Resolves when no verification waits any more. */
  idle(): Promise<void>;
  /** Registers a user; returns a function that removes the user. Without users the running verification is aborted. */
  join(): () => void;
}

export function createVerifier(verify: VerifyBackup = verifyInProcess): Verifier {
  const answers = new Map<string, VerifyAnswer>();
  const waiting = new Map<string, VerifyRequest>();
  let closing = new AbortController();
  let members = 0;
  let running: Promise<void> | undefined;
  let underWay: { key: string; progress: Progress } | undefined;

  const run = async (): Promise<void> => {
    for (let [next] = waiting; next; [next] = waiting) {
      const [key, request] = next;
      const { signal } = closing;
      const onProgress = (progress: Progress) => {
        underWay = { key, progress };
      };
      const answer = await verify(request, signal, onProgress).catch(
        (thrown): VerifyAnswer => ({
          result: 'unknown',
          msg: `cannot be verified: ${errorText(thrown)}`,
          isFailure: true,
        }),
      );
      underWay = undefined;
      if (signal.aborted) continue;
      answers.set(key, answer);
      waiting.delete(key);
    }
    running = undefined;
  };

  return {
    ask(key, request) {
      const answer = answers.get(key);
      if (answer) {
        // The caller remembers the answer across restarts, so it need not be stored here.
        answers.delete(key);
        return answer;
      }
      if (!waiting.has(key)) {
        waiting.set(key, request);
        running ??= run();
      }
      return undefined;
    },
    progress: (key) =>
      underWay && (underWay.key === key || underWay.key.startsWith(`${key} `))
        ? underWay.progress
        : undefined,
    idle: async () => running,
    join() {
      if (members++ === 0) closing = new AbortController();
      return () => {
        if (--members > 0) return;
        closing.abort();
        waiting.clear();
      };
    },
  };
}
