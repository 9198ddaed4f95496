import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { servingBare } from '../serving.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { command, commandHere, mainFile, type RunningAgent, start, startAgent } from './process.ts';

const place = newFolder(afterAll);
const running: RunningAgent[] = [];
afterEach(async () => {
  for (const agent of running.splice(0)) await agent.end();
});

let count = 0;
/** A separate folder for a test. */
function own(): string {
  const path = join(place, String(count++));
  mkdirSync(path);
  return path;
}

async function started(directory: string, more = ''): Promise<RunningAgent> {
  const agent = await startAgent(agentFile(directory, { more }));
  running.push(agent);
  return agent;
}

describe('exit status and streams', () => {
  test('--version says it alone', () => {
    const { status, stdout, stderr } = command(['--version']);
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect([status, stdout, stderr]).toEqual([0, `svc-agent ${version}\n`, '']);
  });

  test('--help and the help of every command go to stdout', async () => {
    expect(command(['--help']).stdout).toMatch(/^(Usage:|svc-agent)/);
    for (const args of [
      ['--help'],
      ...['run', 'check', 'status', 'init', 'demo', 'schema', 'healthcheck', 'completion', 'rules'].map(
        (name) => [name, '--help'],
      ),
    ]) {
      const { status, stdout } = await commandHere(args);
      expect(status, args.join(' ')).toBe(0);
      expect(stdout, args.join(' ')).toMatch(/^(Usage:|svc-agent)/);
    }
  });

  test.each([
    [['chek'], 'svc-agent: unknown command, got "chek"; did you mean check? see svc-agent --help'],
    [['check', '--confg', 'x'], 'did you mean --config?'],
    [['completion', 'tcsh'], 'use bash, zsh or fish'],
  ])('wrong usage %j ends with 2', (args, message) => {
    const { status, stdout, stderr } = command(args);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  test('in a directory that was removed every command ends with 1 and says so', async () => {
    const gone = join(own(), 'gone');
    mkdirSync(gone);
    const script = `cd "${gone}" && rmdir "${gone}" && exec "${process.execPath}" "${mainFile}" --version`;
    const ran = start('sh', ['-c', script]);
    expect([await ran.ended, ran.output()]).toEqual([
      1,
      'svc-agent: the current directory was removed; change to another one\n',
    ]);
  });

  test('the URL of an agent shows neither password nor query', async () => {
    const url = 'http://u:s3cret@127.0.0.1:1/a?token=s3cret';
    for (const args of [['healthcheck'], ['status'], ['incidents']]) {
      const { stdout, stderr } = await commandHere([...args, '--url', url]);
      expect(stdout + stderr, args[0]).toContain('http://127.0.0.1:1/a');
      expect(stdout + stderr, args[0]).not.toContain('s3cret');
    }
  });

  test('an invalid agent.yaml ends run, check, status and healthcheck with 2, every fault on stderr or in the report', () => {
    const directory = own();
    const file = join(directory, 'agent.yaml');
    writeFileSync(file, 'log: {level: INFO}\nmetrcs: {}\n');
    for (const name of ['run', 'status', 'healthcheck']) {
      const { status, stderr } = command([name, '-c', file]);
      expect(status, name).toBe(2);
      expect(stderr, name).toContain(
        `${file}:1:14: log.level: unknown level, got "INFO"; use debug, info, warn, error or fatal (lower case)`,
      );
      expect(stderr, name).toContain(`${file}:2:1: metrcs: unknown key`);
    }
    expect(command(['check', '-c', file]).status).toBe(2);
  });

  test('two reporters in one block are fatal, say which, and end with 2', () => {
    const directory = own();
    const file = join(directory, 'agent.yaml');
    writeFileSync(
      file,
      'metrics:\n  pullmetrics: {listenAddress: 127.0.0.1:0}\n  pushmetrics: {hostPort: 127.0.0.1:8125}\n',
    );
    const { status, stderr } = command(['run', '-c', file]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/metrics.*pullmetrics.*pushmetrics/s);
  });

  test('a port in use ends with 1 and names listener and address', async () => {
    const port = await servingBare();
    const directory = own();
    const file = join(directory, 'agent.yaml');
    writeFileSync(
      file,
      `stateDirectory: ${directory}/state\nmetrics: {pullmetrics: {listenAddress: 127.0.0.1:${port}}}\nadmin: ~\n`,
    );
    const { status, stderr } = command(['run', '-c', file]);
    expect(status).toBe(1);
    expect(stderr).toContain(`127.0.0.1:${port}`);
    expect(stderr).toContain('address already in use');
  });

  test('a second agent on one state directory ends with 1', async () => {
    const directory = own();
    await started(directory);
    const { status, stderr } = command(['run', '-c', join(directory, 'agent.yaml')]);
    expect(status).toBe(1);
    expect(stderr).toContain(join(directory, 'state'));
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('%s stops it with 0', async (signal) => {
    const agent = await started(own());
    expect(await agent.end(signal)).toBe(0);
  });
});

describe('a running agent', () => {
  test('answers /health and /ready on both listeners, status and healthcheck see it', async () => {
    const directory = own();
    const agent = await started(directory);
    for (const listener of ['admin', 'metrics']) {
      for (const path of ['health', 'ready']) {
        const response = await fetch(`http://${agent.address(listener)}/${path}`);
        expect([response.status, await response.json()], `${listener} ${path}`).toEqual([
          200,
          { ok: true, msg: 'OK' },
        ]);
      }
    }
    const admin = `http://${agent.address('admin')}`;
    expect(command(['healthcheck', '--url', `${admin}/health`])).toMatchObject({
      status: 0,
      stdout: 'ok: OK\n',
    });
    expect(command(['healthcheck', '--url', 'http://127.0.0.1:1/health']).status).toBe(1);
    const status = command(['status', '--url', `${admin}/api/status`, '--json']);
    expect(status.status).toBe(0);
    expect(JSON.parse(status.stdout)).toMatchObject({
      roles: ['history'],
      ready: true,
      state: { directory: join(directory, 'state') },
    });
    expect(command(['status', '--url', `${admin}/api/status`]).stdout).toContain('saved in');
    expect(await (await fetch(`${admin}/`)).text()).toContain('<title>svc-agent');
  });

  test('logs to stderr in the spec’s entry, to stdout where log.stdout says so', async () => {
    const toStderr = await started(own());
    let stdout = '';
    toStderr.child.stdout?.on('data', (text: string) => (stdout += text));
    await toStderr.end();
    expect(stdout).toBe('');
    for (const line of toStderr.output().trim().split('\n'))
      expect(JSON.parse(line)).toMatchObject({
        ts: expect.stringMatching(/^\d{4}-.*Z$/),
        level: expect.stringMatching(/^(info|warn)$/),
        msg: expect.any(String),
      });

    const toStdout = await started(own(), 'log: {stdout: true}\n');
    expect(toStdout.address('admin')).not.toBe('');
  });

  test('tails its own log by its own rules', async () => {
    const directory = own();
    const outputFile = join(directory, 'agent.log');
    const rule =
      '{name: svc_observed_listeners_total, type: counter, match: {msg: listening}, labels: {listener: listener}}';
    const file = agentFile(directory, {
      more: `  observer: {logs: {paths: [${outputFile}], startAt: beginning, rules: [${rule}]}}\nlog: {outputFile: ${outputFile}}\n`,
    });
    const port = await freePort();
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(
        'admin: {listenAddress: 127.0.0.1:0}',
        `admin: {listenAddress: 127.0.0.1:${port}}`,
      ),
    );
    const agent = start(process.execPath, [mainFile, 'run', '-c', file]);
    const address = await until('its log says where it listens', () =>
      listenersIn(readFileSync(outputFile, 'utf8')).get('metrics'),
    );
    await until('it has counted itself', async () => {
      const page = await (await fetch(`http://${address}/metrics`)).text();
      return (
        /svc_observed_listeners_total\{listener="admin",svc_service="observer"\} 1/.test(page) || undefined
      );
    });
    expect(await agent.end()).toBe(0);
  });
});
