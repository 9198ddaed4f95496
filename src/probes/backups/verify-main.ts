/**
 * The process that verifies one backup: a request as JSON in its argument, the answer as JSON on standard output.
 * Apart from the agent so that its memory goes away with it, and at the lowest priority so that a store on the same
 * host does not notice it.
 */
import { constants, setPriority } from 'node:os';
import { errorText, systemCode } from '../../core/errors.ts';
import { type VerifyRequest, verifyBackup } from './verify.ts';

setPriority(constants.priority.PRIORITY_LOW);
try {
  const answer = await verifyBackup(JSON.parse(process.argv[2] ?? '') as VerifyRequest);
  process.stdout.write(JSON.stringify(answer));
} catch (thrown) {
  process.stderr.write(`${systemCode(thrown) ?? ''} ${errorText(thrown)}`.trim());
  process.exitCode = 1;
}
