import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { command, commandHere, mainFile, type RunningAgent, start, startAgent } from './process.ts';

const place = newFolder(afterAll);
const token = 'a-token-of-the-pipeline';
const roles = ['frontend', 'history', 'matching', 'worker'];
let agent: RunningAgent;
let url: string;
let file: string;

/** An agent whose four roles and whose store refuse every connection. */
beforeEach(async ({ task }) => {
  const directory = join(place, task.id.replace(/\W/g, '-'));
  mkdirSync(directory);
  const closed = await freePort();
  file = join(directory, 'agent.yaml');
  writeFileSync(
    file,
    stringify({
      stateDirectory: join(directory, 'state'),
      metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
      admin: { listenAddress: `127.0.0.1:${await freePort()}`, events: { token } },
      services: Object.fromEntries(
        roles.map((role) => [
          role,
          { health: { url: `http://127.0.0.1:${closed}/health`, interval: '1s', failureThreshold: 1 } },
        ]),
      ),
      stores: [
        {
          name: 'main',
          kind: 'postgres',
          address: `127.0.0.1:${closed}`,
          databases: { persistence: 'svc' },
          interval: '1s',
        },
      ],
    }),
  );
  agent = await startAgent(file);
  url = `http://${agent.address('admin')}`;
});
afterEach(() => agent.end());

const hasScript = isInstalled('script');

describe('svc-agent status', () => {
  test('says first that the store and the roles are down, and exits with 1', async () => {
    const { stdout, status } = await until('everything is down', () => {
      const asked = command(['status', '-c', file]);
      return /^CRITICAL.*4 roles are down/.test(asked.stdout) ? asked : undefined;
    });
    expect(status).toBe(1);
    expect(stdout.split('\n')[0]).toMatch(
      /^CRITICAL {2}Store main refuses connections \(since [\d:]+ UTC\); 4 roles are down because of it\.$/,
    );
    const json = await commandHere(['status', '-c', file, '--json']);
    expect([json.status, JSON.parse(json.stdout).verdict.level]).toEqual([1, 'critical']);
  });

  test('takes an address with and without a path or a scheme', async () => {
    const bare = url.slice('http://'.length);
    for (const address of [url, `${url}/`, `${url}/api/status`, bare, `${bare}/`]) {
      const { status, stdout, stderr } = await commandHere(['status', '--url', address, '--json']);
      expect(stderr, address).toBe('');
      expect(status, address).toBeLessThan(2);
      expect(JSON.parse(stdout).roles, address).toEqual(roles);
    }
    expect(await commandHere(['healthcheck', '--url', bare])).toMatchObject({ status: 0 });
    const wrong = await commandHere(['status', '--url', 'http://admin:hush@127.0.0.1:99999']);
    expect(wrong.status).toBe(2);
    expect(wrong.stderr).not.toContain('hush');
    const other = await commandHere(['status', '--url', `${url}/probes`]);
    expect(other.status).toBe(1);
    expect(other.stderr).toContain('the answer is not the status of an agent');
  });

  test('--watch asks again and again until a signal ends it, and says when nobody answers any more', async () => {
    const watching = start(process.execPath, [mainFile, 'status', '--watch', '--url', url]);
    await until('it shows the verdict', () => watching.output().includes('CRITICAL'));
    await agent.end();
    await until('it says that nobody answers', () => /^NO ANSWER .*no answer/m.test(watching.output()));
    expect(await watching.end('SIGINT')).toBe(0);
  });

  test('--watch ends when its reader has ended', async () => {
    const line = `${process.execPath} ${mainFile} status --watch --json --url ${url} | head -n 1`;
    const watching = start('/bin/sh', ['-c', line]);
    expect(await watching.ended).toBe(0);
    expect(JSON.parse(watching.output().split('\n')[0]!).verdict.level).toMatch(/critical|unknown/);
  });

  test('--check: one sentence and an exit status; incidents: what lasts', async () => {
    await until('the store is down', async () => {
      const { stdout } = await commandHere(['status', '--url', url, '--json']);
      return JSON.parse(stdout).verdict.cause?.id === 'store_down/main/persistence';
    });
    const check = await commandHere(['status', '--url', url, '--check']);
    expect(check.status).toBe(1);
    expect(check.stdout).toMatch(
      /^The deploy should wait: store main\/persistence refuses connections: connection refused by [\d.:]+ \(since \d\d:\d\d:\d\d UTC\)(?:, and \d more problems?)?\.\n$/,
    );
    const json = await commandHere(['status', '--url', url, '--check', '--for', 'failback', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, for: 'failback' });
    const wrong = await commandHere(['status', '--url', url, '--check', '--for', 'lunch']);
    expect([wrong.status, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('use deploy, upgrade, failback'),
    ]);
    expect((await commandHere(['status', '--url', url, '--for', 'deploy'])).status).toBe(2);
    const { stdout, status } = await commandHere(['incidents', '--url', url]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/so far +critical +store main\/persistence refuses connections/);
  });

  test('POST /event announces with its token, and with nothing else', async () => {
    const post = (body: string, bearer = token) =>
      fetch(`${url}/event`, { method: 'POST', body, headers: { authorization: `Bearer ${bearer}` } });
    expect((await post('{"text":"x"}', 'wrong')).status).toBe(401);
    expect((await fetch(`${url}/event`, { method: 'POST', body: '{"text":"x"}' })).status).toBe(401);
    for (const bad of [
      '',
      'x',
      'null',
      '{"text":""}',
      '{"kind":"began","text":"x"}',
      '{"kind":"maintenance","text":"x"}',
      '{"kind":"exit","text":"x"}',
    ])
      expect((await post(bad)).status, bad).toBe(400);
    expect((await post(`{"text":"${'x'.repeat(5_000)}"}`)).status).toBe(400);
    expect((await post('{"kind":"exit","role":"history","text":"killed by signal 9"}')).status).toBe(200);
    expect((await post('{"text":"history 1.4.2 password=hush"}')).status).toBe(200);
    expect((await post('{"kind":"maintenance","text":"disks","seconds":600}')).status).toBe(200);
    const { stdout } = await commandHere(['status', '--url', url, '--json']);
    const { changes, maintenance } = JSON.parse(stdout);
    expect(changes).toMatchObject([
      { kind: 'maintenance', what: 'disks', until: maintenance },
      { kind: 'deploy', what: 'history 1.4.2 password=…' },
      { kind: 'exit', what: 'history ended: killed by signal 9', role: 'history' },
    ]);
    await until('both are metrics', async () => {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      const incident = /^svc_incident\{cause="store_down",subject="main\/persistence"\} 1$/m;
      return /^svc_maintenance 1$/m.test(metrics) && incident.test(metrics);
    });
  });

  test.skipIf(!hasScript)('--watch leaves a terminal as it was', async () => {
    const words = `stty cols 80 rows 24; exec ${process.execPath} ${mainFile} status --watch --url ${url}`;
    const env = { TERM: 'xterm', LANG: 'C.UTF-8', NO_COLOR: '1' };
    const watching = start('script', ['-qec', words, '/dev/null'], env);
    await until('it shows the verdict', () => watching.output().includes('CRITICAL'));
    // This is what Ctrl-C sends.
    watching.child.stdin!.write('\u0003');
    expect(await watching.ended, watching.output()).toBe(0);
    const output = watching.output();
    expect(output.indexOf('\u001b[?1049h\u001b[?25l')).toBeGreaterThanOrEqual(0);
    expect(output.trimEnd().endsWith('\u001b[?25h\u001b[?1049l')).toBe(true);
    const lines = output.replace(/\u001b\[[?\d;]*[A-Za-z]/g, '').split(/\r?\n/);
    expect(Math.max(...lines.map((line) => line.trimEnd().length))).toBeLessThanOrEqual(80);
  });
});

test.skipIf(!hasScript)('--watch on a terminal of 40 × 10 shows a problem before its footer', async () => {
  const words = `stty cols 40 rows 10; exec ${process.execPath} ${mainFile} status --watch --url ${url}`;
  const env = { TERM: 'xterm', LANG: 'C.UTF-8', NO_COLOR: '1' };
  await until('the store and the roles are down', async () => {
    const { stdout } = await commandHere(['status', '--url', url, '--json']);
    return JSON.parse(stdout).verdict.problems.length === 5;
  });
  const watching = start('script', ['-qec', words, '/dev/null'], env);
  const shown = await until('a whole screen is there', () => {
    const [, screen] = watching.output().split('\u001b[H');
    return screen?.includes('Ctrl-C ends') ? screen.split('\u001b[J')[0] : undefined;
  });
  const lines = shown.split(/\r?\n/).map((line) => line.replaceAll('\u001b[K', ''));
  expect(lines[0]).toMatch(/^CRITICAL {2}Store main refuses/);
  const problem = lines.findIndex((line) => /^ {2}● store main\/persistence refuses/.test(line));
  expect(problem).toBeGreaterThan(0);
  expect(lines.findIndex((line) => line.endsWith('every 2 s; Ctrl-C ends'))).toBeGreaterThan(problem);
  // The last line stays free, so that the terminal does not scroll.
  expect(lines.length).toBeLessThan(10);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(40);
  watching.child.stdin!.write('\u0003');
  expect(await watching.ended).toBe(0);
});

test('an agent whose port the system chose is asked by --url', async () => {
  const other = join(place, 'any-port.yaml');
  writeFileSync(other, stringify({ services: { frontend: {} }, admin: { listenAddress: '127.0.0.1:0' } }));
  const { status, stderr } = await commandHere(['status', '-c', other]);
  expect(status).toBe(2);
  expect(stderr).toContain(
    'admin.listenAddress: the system chose the port, which the log line "listening" shows; give --url',
  );
});

describe('svc-agent maintenance', () => {
  test('announces planned work with the token of the configuration', async () => {
    const { status, stdout, stderr } = await commandHere([
      'maintenance',
      '--for',
      '10m',
      '--reason',
      'disks',
      '-c',
      file,
    ]);
    expect([status, stderr]).toEqual([0, '']);
    const [, until = ''] = /^maintenance for 10m, until (\S+): disks\n$/.exec(stdout) ?? [];
    const report = JSON.parse(await (await fetch(`${url}/api/status`)).text());
    expect(report.changes).toMatchObject([{ kind: 'maintenance', what: 'disks' }]);
    expect(Math.abs(Date.parse(report.maintenance) - Date.parse(until))).toBeLessThan(60_000);
  });

  test('ends it early, also with the token in a file and without a configuration', async () => {
    const tokenFile = join(place, 'token');
    writeFileSync(tokenFile, `${token}\n`);
    const work = async () => JSON.parse(await (await fetch(`${url}/api/status`)).text()).maintenance;
    const named = ['maintenance', '--url', url, '--token-file', tokenFile];
    expect((await commandHere([...named, '--for', '1d', '--reason', 'more'])).status).toBe(0);
    expect(await work()).toBeDefined();
    const { status, stdout } = await commandHere([...named, '--end']);
    expect([status, stdout]).toEqual([0, 'maintenance ended: planned work is over\n']);
    expect(await work()).toBeUndefined();
  });

  test.each([
    [['--reason', 'x'], 'svc-agent maintenance: option --for is missing'],
    [['--for', '10m'], 'svc-agent maintenance: option --reason is missing'],
    [['--for', 'soon', '--reason', 'x'], '--for: not a length of time, got "soon"; use a time from 1s to 7d'],
    [['--for', '8d', '--reason', 'x'], '--for: too short or too long, got "8d"; use a time from 1s to 7d'],
    [['--for', '1m', '--reason', ' '], '--reason: empty or too long, got " "; use 1 to 200 characters'],
    [['--for', '1m', '--end'], 'svc-agent maintenance: options --end and --for exclude each other'],
  ])('%j is wrong usage', async (args, message) => {
    const { status, stderr } = await commandHere(['maintenance', ...args, '-c', file]);
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });

  test('a file of several lines is no token', async () => {
    const tokenFile = join(place, 'lines');
    writeFileSync(tokenFile, 'sesame\nopen\n');
    const work = ['maintenance', '--for', '1m', '--reason', 'x', '--token-file', tokenFile, '--url', url];
    const { status, stderr } = await commandHere(work);
    expect(status).toBe(2);
    expect(stderr).toContain('the token has a character that a header cannot have, such as a line break');
    expect(stderr).not.toContain('sesame');
  });

  test('says what the agent refuses, and that a token is needed', async () => {
    const tokenFile = join(place, 'wrong');
    writeFileSync(tokenFile, 'another');
    const work = ['maintenance', '--for', '1m', '--reason', 'x'];
    const refused = await commandHere([...work, '--token-file', tokenFile, '--url', url]);
    expect(refused.status).toBe(1);
    expect(refused.stderr).toMatch(/refused with HTTP 401, Unauthorized/);
    const other = join(place, 'without.yaml');
    writeFileSync(other, stringify({ services: { frontend: {} }, admin: { listenAddress: '127.0.0.1:1' } }));
    const without = await commandHere([...work, '-c', other]);
    expect(without.status).toBe(2);
    expect(without.stderr).toContain('admin.events.token: missing');
  });
});
