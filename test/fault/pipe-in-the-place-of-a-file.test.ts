import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/agent/config/load.ts';
import { createReadSecret } from '../../src/agent/read-secret.ts';
import { mainFile, start } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
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

test('a file that hangs does not keep the agent from ending', async () => {
  const folder = newFolder();
  const config = join(folder, 'agent.yaml');
  const scrape = `{url: "https://127.0.0.1:1/metrics", interval: 100ms, tls: {caFile: ${newPipe('ca.pem')}}}`;
  writeFileSync(
    config,
    `stateDirectory: ${join(folder, 'state')}\nadmin: ~\nservices: {frontend: {scrape: ${scrape}}}\n`,
  );
  const agent = start(process.execPath, [mainFile, 'run', '-c', config]);
  atTestEnd(() => agent.end('SIGKILL'));
  await until('it waits for the file', () => agent.output().includes('"reason":"too_slow"'));
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
