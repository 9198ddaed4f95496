import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';

/** A role of the service in a separate process, which shell commands stop and start. Nothing listens while it is down. */
export interface Role {
  health: string;
  metrics: string;
  /** The words of `recovery.commands`; each may be run twice. */
  stop: readonly string[];
  start: readonly string[];
  isUp(): Promise<boolean>;
  /** Ends it finally. */
  remove(): void;
}

/** A program whose page counts one poll for each time that it is read. */
const program = `let polls = 0;
require('node:http')
  .createServer(({ url }, response) => {
    if (url !== '/metrics') return response.end('{"ok":true,"msg":""}');
    response.setHeader('content-type', 'text/plain; version=0.0.4');
    polls += 1;
    response.end('# TYPE svc_matching_poll_success counter\\nsvc_matching_poll_success ' + polls + '\\n');
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
`;

/** Starts the role in that folder, unless it is down. */
export async function startRole(folder: string, { isDown = false } = {}): Promise<Role> {
  const port = await freePort();
  const path = (name: string) => join(folder, name);
  writeFileSync(path('role.cjs'), program);
  // A process that was killed stays in the table until its parent has read its status; it has no command line any more.
  const running = `[ -e ${path('role.pid')} ] && grep -qs role.cjs "/proc/$(cat ${path('role.pid')})/cmdline"`;
  writeFileSync(
    path('start-role.sh'),
    `${running} && exit 0
setsid ${process.execPath} ${path('role.cjs')} ${port} < /dev/null > /dev/null 2>&1 &
echo $! > ${path('role.pid')}
`,
  );
  writeFileSync(
    path('stop-role.sh'),
    `[ -e ${path('role.pid')} ] && kill -9 "$(cat ${path('role.pid')})"; rm -f ${path('role.pid')}\n`,
  );
  const isUp = () =>
    new Promise<boolean>((resolve) => {
      const socket = createConnection({ host: '127.0.0.1', port });
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  const [start, stop] = [
    ['sh', path('start-role.sh')],
    ['sh', path('stop-role.sh')],
  ] as const;
  if (!isDown) {
    execFileSync(start[0], start.slice(1), { stdio: 'ignore' });
    await until('the role answers', async () => (await isUp()) || undefined);
  }
  return {
    health: `http://127.0.0.1:${port}/health`,
    metrics: `http://127.0.0.1:${port}/metrics`,
    stop,
    start,
    isUp,
    remove() {
      if (existsSync(path('role.pid')))
        process.kill(Number(readFileSync(path('role.pid'), 'utf8')), 'SIGKILL');
    },
  };
}
