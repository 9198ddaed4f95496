import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { mainFile, start } from '../e2e/process.ts';
import { listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';

test('a process that may open too few files to start says how many it may, and how many to allow', () => {
  const place = newFolder();
  const config = join(place, 'agent.yaml');
  writeFileSync(
    config,
    'metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\nservices: {history: {statsd: 127.0.0.1:0}}\n',
  );
  const script = 'ulimit -n 20; exec "$0" "$@"';
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', script, process.execPath, mainFile, 'run', '-c', config],
    { encoding: 'utf8', timeout: 60_000 },
  );
  expect(stderr).toBe(
    'svc-agent: open files: too few are allowed to start, got 20; raise ulimit -n, or LimitNOFILE of the systemd unit, to 1024\n',
  );
  expect(status).toBe(1);
});

/** Asks over a connection that is open, because a process without descriptors accepts no other. */
async function statusOver(socket: Socket): Promise<{ process: { rssBytes: number } }> {
  let answer = '';
  const read = (text: string) => {
    answer += text;
  };
  socket.setEncoding('utf8').on('data', read);
  socket.write('GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const whole = /^HTTP\/1\.1 200 .*?content-length: (\d+).*?\r\n\r\n(.*)$/is;
  const body = await until('the answer is complete', () => {
    const [, length, text] = whole.exec(answer) ?? [];
    return text !== undefined && Buffer.byteLength(text) >= Number(length) ? text : undefined;
  });
  socket.off('data', read);
  return JSON.parse(body);
}

test('clients that hold every descriptor do not end the process, and its status still comes', async () => {
  const place = newFolder();
  const config = join(place, 'agent.yaml');
  const most = 60;
  writeFileSync(
    config,
    'admin: {listenAddress: 127.0.0.1:0}\nmetrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\nservices: {history: {}}\n',
  );
  const script = `ulimit -n ${most}; exec "$0" "$@"`;
  const args = ['run', '-c', config];
  const agent = start('sh', ['-c', script, process.execPath, mainFile, ...args], {}, place);
  onTestFinished(() => void agent.end('SIGKILL'));
  const portOf = async (listener: string) => {
    const address = await until(`${listener} listens`, () => listenersIn(agent.output()).get(listener));
    return Number(address.split(':')[1]);
  };
  const [admin, metrics] = [await portOf('admin'), await portOf('metrics')];
  await until('it is ready', () => agent.output().includes('"msg":"ready"'));
  const open = () => connect(admin, '127.0.0.1').on('error', () => {});
  const first = open();
  onTestFinished(() => void first.destroy());
  await once(first, 'connect');
  const before = await statusOver(first);

  const held: Socket[] = [];
  onTestFinished(() => {
    for (const socket of held) socket.destroy();
  });
  const descriptors = () => readdirSync(`/proc/${agent.child.pid}/fd`).length;
  let polls = 0;
  await until('no descriptor is left, and none was for a while', () => {
    // The system accepts connections for the process until its queue is full.
    const socket = connect(held.length % 2 ? admin : metrics, '127.0.0.1').on('error', () => {});
    // A request that is not complete, because the agent ends connections without one to make room.
    socket.write('GET /metrics HTTP/1.1\r\n');
    held.push(socket);
    polls = descriptors() >= most ? polls + 1 : 0;
    return polls >= 20;
  });
  const after = await statusOver(first);
  expect(after.process.rssBytes).toBeGreaterThan(before.process.rssBytes / 4);

  for (const socket of held) socket.destroy();
  await until(
    'it answers new clients again',
    async () => (await fetch(`http://127.0.0.1:${metrics}/health`)).ok,
  );
  expect(await agent.end(), agent.output()).toBe(0);
});
