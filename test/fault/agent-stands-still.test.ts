import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import type { StatusReport } from '../../src/agent/report.ts';
import { startAgent } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { listening } from '../ports.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { until } from '../until.ts';

const timeoutS = 3;
const stoodStillMs = (timeoutS + 0.5) * 1e3;

/** Listens, and calls back at each connection before anything is read from it. */
async function serving(server: Server, onConnection: () => void): Promise<number> {
  server.on('connection', onConnection);
  onTestFinished(() => void server.close());
  return (await listening(server)).port;
}

test.skipIf(!hasPostgres)(
  'the agent stands still in the middle of a check of each kind: nothing is wrong with what it checks',
  async () => {
    /** What the agent is stopped in the middle of, and what has to be done then. */
    let awaited = '';
    let arrived = () => {};
    const on = (what: string) => () => {
      if (what === awaited) arrived();
    };
    const certificates = makeCertificates();
    const authority = certificates.authority('ours', 60);
    const served = certificates.signed('served', authority, { days: 60 });
    const files = { cert: readFileSync(served.cert), key: readFileSync(served.key) };
    const health = (_: unknown, response: { end(text: string): void }) =>
      response.end('{"ok":true,"msg":""}');
    const secure = await serving(createHttps(files, health), on('health over TLS'));
    const plain = await serving(createHttp(health), on('health'));
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const store = await serving(
      createServer((socket) => {
        const inner = connect(postgres.port, '127.0.0.1');
        const drop = () => {
          socket.destroy();
          inner.destroy();
        };
        socket.on('error', drop);
        inner.on('error', drop);
        socket.pipe(inner).pipe(socket);
      }),
      on('store'),
    );
    const every = { interval: `${timeoutS}s`, timeout: `${timeoutS}s` };
    const folder = newFolder();
    const file = join(folder, 'agent.yaml');
    writeFileSync(
      file,
      stringify({
        stateDirectory: join(folder, 'state'),
        metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
        admin: { listenAddress: '127.0.0.1:0' },
        services: {
          frontend: {
            health: { ...every, url: `https://localhost:${secure}/health`, tls: { caFile: authority.cert } },
          },
          history: {
            health: { ...every, url: `http://127.0.0.1:${plain}/health` },
          },
        },
        stores: [
          {
            ...{ ...every, name: 'main', kind: 'postgres', address: `127.0.0.1:${store}`, user: 'postgres' },
            databases: { persistence: 'postgres' },
          },
        ],
      }),
    );
    const agent = await startAgent(file);
    onTestFinished(() => void agent.end('SIGKILL'));
    const ask = async (port: string, path: string) =>
      await (await fetch(`http://${agent.address(port)}${path}`)).text();
    const seen = new Set<string>();
    const checked = async (sinceMs: number) => {
      const report = JSON.parse(await ask('admin', '/api/status')) as StatusReport;
      for (const { id } of report.verdict.problems) seen.add(id);
      const isNew = report.probes.every(({ last }) => last && Date.parse(last.at) > sinceMs);
      return isNew && report.probes.length > 0 && report;
    };
    await until('everything was checked', () => checked(0));
    // What the agent notes about a store at its first checks is no part of this test.
    const before = [...seen];

    for (const what of ['health over TLS', 'health', 'store']) {
      const stopped = new Promise<void>((resolve) => {
        arrived = () => {
          awaited = '';
          agent.child.kill('SIGSTOP');
          resolve();
        };
      });
      awaited = what;
      await stopped;
      const stoppedMs = performance.now();
      await until('more than the timeout is over', () => performance.now() - stoppedMs > stoodStillMs);
      const resumedMs = Date.now();
      agent.child.kill('SIGCONT');
      const report = await until(`everything was checked after the agent stood still in ${what}`, () =>
        checked(resumedMs),
      );
      const failed = report.probes.filter(
        ({ last, consecutiveFailures }) => !last!.ok || consecutiveFailures,
      );
      expect([what, failed]).toEqual([what, []]);
      const slow = report.probes.filter(({ last }) => last!.durationMs >= stoodStillMs);
      expect([what, slow]).toEqual([what, []]);
    }

    const metrics = await ask('admin', '/metrics');
    const counts = metrics.match(/^svc_(?:probe|role_health|store)_failures_total\{.*\} .*$/gm)!;
    expect(counts.filter((line) => !line.endsWith(' 0'))).toEqual([]);
    expect([...seen].filter((id) => !before.includes(id))).toEqual([]);
    expect(((await checked(0)) as StatusReport).incidents).toEqual([]);
  },
);
