import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/agent/config/load.ts';
import { openLogSink } from '../../src/agent/own-log.ts';
import { createReadSecret } from '../../src/agent/read-secret.ts';
import type { Log } from '../../src/core/ports.ts';
import { openCertificates } from '../../src/reporters/listen/certificates.ts';
import { mainFile, start } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';

// Opening a pipe waits until somebody writes to it, in one of the four threads that serve all files and the name resolution.

function newPipe(name: string): string {
  const path = join(newFolder(), name);
  execFileSync('mkfifo', [path]);
  return path;
}

const request = { roles: [], serviceConfig: [], env: {}, cwd: '/' };

test.each([
  ['a pipe', () => newPipe('token')],
  ['a device without an end', () => '/dev/zero'],
])('a secret in %s is refused, and checked for', async (_, place) => {
  const file = place();
  const read = createReadSecret({})({ file });
  await expect(read).rejects.toThrow(/cannot be read \(not a regular file\)/);
  const config = join(newFolder(), 'agent.yaml');
  writeFileSync(config, `services: {frontend: {}}\nadmin: {auth: {bearer: {file: ${file}}}}\n`);
  const { findings } = await loadConfig({ ...request, file: config });
  expect(findings.map(({ what }) => what)).toEqual([`file ${file} is not a regular file`]);
});

test('a configuration in a pipe to which nobody writes is a fault', async () => {
  const { faults } = await loadConfig({ ...request, file: newPipe('agent.yaml') });
  expect(faults.map(({ what }) => what)).toEqual(['empty']);
});

test('a pipe of a shell can be a configuration', async () => {
  const command = `"${process.execPath}" "${mainFile}" check <(read -r line; echo "$line")`;
  const check = start('bash', ['-c', command]);
  atTestEnd(() => check.end('SIGKILL'));
  check.child.stdin!.end('services: {frontend: {health: "http://127.0.0.1:1/health"}}\n');
  expect([await check.ended, check.output()]).toEqual([0, expect.stringMatching(/valid\n$/)]);
});

/** A configuration of the agent in a folder of its own. */
function newConfig(lines: string): string {
  const folder = newFolder();
  const config = join(folder, 'agent.yaml');
  writeFileSync(config, `stateDirectory: ${join(folder, 'state')}\n${lines}\n`);
  return config;
}

test('a certificate in a pipe is refused by every connection', async () => {
  const tls = `tls: {caFile: ${newPipe('ca.pem')}}`;
  const config = newConfig(`
admin: ~
services:
  frontend:
    scrape: {url: "https://127.0.0.1:1/metrics", interval: 1s, ${tls}}
    health: {url: "https://127.0.0.1:1/health", interval: 1s, ${tls}}
metrics:
  reportingInterval: 100ms
  hostedmetrics: {protocol: otlp, endpoint: "https://127.0.0.1:1/v1/metrics", ${tls}}`);
  const agent = start(process.execPath, [mainFile, 'run', '-c', config]);
  atTestEnd(() => agent.end('SIGKILL'));
  const refused = 'tls.caFile: cannot be read: not a regular file"';
  const refusedBy = (logger: string) => (line: string) =>
    line.includes(`"logger":"${logger}"`) && line.includes(refused);
  for (const logger of ['scrape', 'probes', 'hosted']) {
    await until(logger, () => agent.output().split('\n').some(refusedBy(logger)));
  }
  expect(await agent.end('SIGTERM')).toBe(0);
});

test('a pipe in the place of a listener’s certificate leaves the old one in use', () => {
  const { cert: certFile, key: keyFile } = makeCertificates().authority('own');
  const log: Log = { write: () => {}, named: () => log };
  const deps = { place: 'tls', nowMs: Date.now, log };
  const certificates = openCertificates({ certFile, keyFile }, deps);
  rmSync(certFile);
  execFileSync('mkfifo', [certFile]);
  expect(certificates.refresh()).toBe(false);
  expect(certificates.served.refused).toContain('tls.certFile: cannot be read (not a regular file)');
});

test('an own log in a pipe that nobody reads is a fault', () => {
  expect(() => openLogSink(newPipe('agent.log'), () => {})).toThrow('ENXIO');
});

test('a file that hangs does not keep the agent from ending', async () => {
  const pipe = newPipe('hangs');
  const reads = join(newFolder(), 'reads.cjs');
  writeFileSync(reads, `require('node:fs').readFile(${JSON.stringify(pipe)}, () => {});`);
  const config = newConfig('admin: ~\nservices: {frontend: {}}');
  const agent = start(process.execPath, ['--require', reads, mainFile, 'run', '-c', config]);
  atTestEnd(() => agent.end('SIGKILL'));
  await until('it runs', () => agent.output().includes('"msg":"ready"'));
  agent.child.kill('SIGTERM');
  expect(await agent.ended).toBe('SIGTERM');
});

test.each([
  // SIGTERM is an orderly end for systemd, which would not start the agent again.
  ['hangs', false, 'SIGKILL'],
  ['answers late', true, 2],
])('a file that %s does not hide that the agent failed', async (_, answers, end) => {
  const pipe = newPipe('late');
  const folder = newFolder();
  const reads = join(folder, 'reads.cjs');
  writeFileSync(reads, `require('node:fs').readFile(${JSON.stringify(pipe)}, () => {});`);
  const config = join(folder, 'agent.yaml');
  writeFileSync(config, 'services: none\n');
  const agent = start(process.execPath, ['--require', reads, mainFile, 'run', '-c', config]);
  atTestEnd(() => agent.end('SIGKILL'));
  await until('it says why', () => agent.output().includes('1 fault'));
  if (answers) closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
  expect(await agent.ended).toBe(end);
});
