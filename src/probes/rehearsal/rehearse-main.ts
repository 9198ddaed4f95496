/**
 * The process that rehearses one recovery. Its argument is a request as JSON; its standard output has a line of JSON for each
 * phase that begins, and the answer as the last line. It and everything that it starts have the lowest priority. It ends together
 * with everything that it started when the agent ends.
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

/**
 * Locks an agent's rehearsals, of which one runs at a time. The kernel releases the name together with the process. Only Linux
 * has such names.
 */
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
  // ionice runs if it is installed; it also applies to what is started from here.
  spawnSync('ionice', ['-c', '3', '-p', String(process.pid)], { stdio: 'ignore' });
  // If there is no answer, the agent asks again later.
  if (!(await takeLock(request.owner))) return;
  await removeLeftovers(request.directory, request.owner);
  if ('clean' in request) return;
  const cut = new AbortController();
  process.once('SIGTERM', () => cut.abort());
  write(await rehearse(request, (phase) => write({ phase }), cut.signal));
}

// The reader of the pipe is gone if the agent has ended, which the sandbox notices, too.
process.stdout.on('error', () => {});
main().catch((thrown: unknown) => {
  process.stderr.write(errorText(thrown));
  process.exitCode = 1;
});
