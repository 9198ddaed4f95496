/**
 * The process that verifies one backup. Its argument is a request as JSON; its standard output has a line of JSON for its
 * progress from time to time, and the answer as the last line. It is separate from the agent, so that its memory is released when
 * it ends, and it has the lowest priority, so that a store on the same host does not notice it.
 */
import { constants, setPriority } from 'node:os';
import { errorText, systemCode } from '../../core/errors.ts';
import type { Progress } from '../probe.ts';
import type { VerifyAnswer } from './evidence.ts';
import { bytesToRead, type VerifyRequest, verifyBackup } from './verify.ts';

/** The answer for a file that the system refuses to read. A file that is gone gives no such answer: it was removed meanwhile. */
function asUnreadable(thrown: unknown): VerifyAnswer {
  const code = systemCode(thrown);
  if (code === undefined || code === 'ENOENT' || !/^E(?!RR_)[A-Z]+$/.test(code)) throw thrown;
  return { result: 'unknown', msg: errorText(thrown), isFailure: true, isUnreadable: true };
}

/** Time between two lines of progress. */
const progressEveryMs = 500;

setPriority(constants.priority.PRIORITY_LOW);
try {
  const request = JSON.parse(process.argv[2] ?? '') as VerifyRequest;
  const totalBytes = await bytesToRead(request);
  let doneBytes = 0;
  const write = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
  const beganMs = performance.now();
  let lastProgressMs = beganMs;
  const onBytes = (bytes: number) => {
    doneBytes = Math.min(doneBytes + bytes, totalBytes);
    const nowMs = performance.now();
    if (nowMs - lastProgressMs < progressEveryMs) return;
    lastProgressMs = nowMs;
    write({
      doneBytes,
      totalBytes,
      bytesPerSecond: Math.round((doneBytes / (nowMs - beganMs)) * 1000),
    } satisfies Progress);
  };
  write(await verifyBackup({ ...request, onBytes }).catch(asUnreadable));
} catch (thrown) {
  process.stderr.write(`${systemCode(thrown) ?? ''} ${errorText(thrown)}`.trim());
  process.exitCode = 1;
}
