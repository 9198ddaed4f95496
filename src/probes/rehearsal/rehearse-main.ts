/**
 * The process that rehearses one recovery: a request as JSON in its argument, on standard output a line of JSON for each
 * phase that begins, and the answer as the last line. It has the lowest priority, and so has what it starts. It ends with
 * everything it started when the agent ends.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { constants, setPriority } from 'node:os';
import { errorText, systemCode } from '../../core/errors.ts';
import type { CleaningRequest, RehearsalRequest } from './rehearsal.ts';
import { rehearse } from './rehearse.ts';
import { removeLeftovers } from './sandbox.ts';

const write = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** One rehearsal of an agent at a time: the kernel releases the name with the process. Linux alone has such names. */
function takeLock(owner: string): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true);
  const name = `\0svc-agent-rehearsal-${createHash('sha256').update(owner).digest('hex').slice(0, 32)}`;
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (thrown) => (systemCode(thrown) === 'EADDRINUSE' ? resolve(false) : reject(thrown)));
    server.listen(name, () => resolve(true));
    server.unref();
  });
}

async function main(): Promise<void> {
  const request = JSON.parse(process.argv[2] ?? '') as RehearsalRequest | CleaningRequest;
  setPriority(constants.priority.PRIORITY_LOW);
  // Where it is installed; it holds for what is started from here, too.
  spawnSync('ionice', ['-c', '3', '-p', String(process.pid)], { stdio: 'ignore' });
  // Without an answer the agent asks again later.
  if (!(await takeLock(request.owner))) return;
  await removeLeftovers(request.directory, request.owner);
  if ('clean' in request) return;
  const cut = new AbortController();
  process.once('SIGTERM', () => cut.abort());
  write(await rehearse(request, (phase) => write({ phase }), cut.signal));
}

// A pipe whose reader is gone: the agent has ended, which the bounds of the sandbox notice, too.
process.stdout.on('error', () => {});
main().catch((thrown: unknown) => {
  process.stderr.write(errorText(thrown));
  process.exitCode = 1;
});
