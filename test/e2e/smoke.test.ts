import { createSocket } from 'node:dgram';
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { freePort, listening } from '../ports.ts';
import { until } from '../until.ts';
import { command, type RunningAgent, startAgent } from './process.ts';

// Every part of the built program runs once, in one process: another version of Node could break any of them.

const place = newFolder(afterAll);
const log = join(place, 'history.log');
const file = join(place, 'agent.yaml');
const entry = (level: string) =>
  `${JSON.stringify({ ts: '2026-01-01T00:00:00Z', level, msg: 'm', logger: 'l' })}\n`;
const received: string[] = [];
const servers: Server[] = [];
let agent: RunningAgent;
let statsdPort: number;

async function serve(answer: (path: string, body: Buffer) => string): Promise<number> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.end(answer(request.url ?? '', Buffer.concat(chunks))));
  });
  servers.push(server);
  return (await listening(server)).port;
}

const page = async () => (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
const shows = async (line: string) =>
  expect(await until(line, async () => ((await page()).includes(`${line}\n`) ? line : undefined))).toBe(line);

beforeAll(async () => {
  mkdirSync(join(place, 'dumps'));
  writeFileSync(log, entry('info') + entry('error'));
  const role = await serve((path) =>
    path === '/health'
      ? '{"ok":true,"msg":"OK"}'
      : '# TYPE svc_history_client_requests counter\nsvc_history_client_requests{operation="Start"} 7\n',
  );
  const platform = await serve((path) => {
    received.push(path);
    return '';
  });
  statsdPort = await freePort();
  writeFileSync(
    file,
    `stateDirectory: ${join(place, 'state')}
roles: [history, worker]
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0, openMetrics: true}}
admin: {listenAddress: 127.0.0.1:0}
services:
  history:
    logs: {paths: ['${place}/history*.log'], startAt: beginning}
    health: {url: 'http://127.0.0.1:${role}/health', interval: 200ms, timeout: 200ms}
    scrape: http://127.0.0.1:${role}/metrics
  worker:
    statsd: 127.0.0.1:${statsdPort}
    metrics: {hostedmetrics: {protocol: otlp, endpoint: 'http://127.0.0.1:${platform}/v1/metrics'}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc}}]
backups:
  - name: nightly
    store: main
    database: persistence
    type: full
    source: {files: {directory: ${place}/dumps, pattern: 'gz$', settle: 1ms}}
    integrity: {level: full}
    interval: 200ms
`,
  );
  agent = await startAgent(file);
});
afterAll(async () => {
  const status = await agent?.end();
  for (const server of servers) server.close();
  expect(status).toBe(0);
});

test('the configuration is checked in a process of its own', () => {
  expect(command(['check', '-c', file])).toMatchObject({ status: 0, stderr: '' });
});

test('log lines count once, through a rotation', async () => {
  await shows('svc_log_entries_total{level="error",logger="l",svc_service="history"} 1');
  appendFileSync(log, entry('error'));
  renameSync(log, `${log}.1`);
  writeFileSync(log, entry('error'));
  await shows('svc_log_entries_total{level="error",logger="l",svc_service="history"} 3');
});

test('a page is relayed, health is probed', async () => {
  await shows('svc_history_client_requests{operation="Start",svc_service="history"} 7');
  await shows('svc_role_up{svc_service="history"} 1');
});

test('a datagram reaches the hosted platform', async () => {
  const socket = createSocket('udp4');
  await new Promise((resolve) => socket.send('tasks:3|c', statsdPort, '127.0.0.1', resolve));
  socket.close();
  await until('a batch', () => received.length > 0);
  expect(received).toContain('/v1/metrics');
});

test('a backup is verified by the process that is made for it', async () => {
  const dump =
    '--\n-- PostgreSQL database dump\n--\n\nSELECT 1;\n\n--\n-- PostgreSQL database dump complete\n--\n';
  writeFileSync(join(place, 'dumps', 'a.gz'), gzipSync(dump));
  await shows(
    'svc_backup_integrity_ok{backup="nightly",backup_type="full",database="persistence",level="full",store="main"} 1',
  );
});

test('status, probes and reload', async () => {
  const status = (await (await fetch(`http://${agent.address('admin')}/api/status`)).json()) as {
    roles: string[];
  };
  expect(status.roles).toEqual(['history', 'worker']);
  agent.child.kill('SIGHUP');
  await until('reloaded', () => /reload/.test(agent.output()));
  await shows('svc_agent_config_last_reload_successful 1');
});
