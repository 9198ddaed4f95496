import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { entriesIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { bySize, onlyShort, testOnce } from '../size.ts';
import { until } from '../until.ts';
import { command, commandHere, mainFile, type RunningAgent, start, startAgent } from './process.ts';

// `svc-agent backup run` and heartbeats, with the built program, for jobs that fail, hang or are killed.

const place = newFolder(afterAll);
const file = join(place, 'agent.yaml');
const state = join(place, 'state');

beforeAll(() => {
  writeFileSync(join(place, 'token'), 'let-me-in\n');
  writeFileSync(
    file,
    `stateDirectory: ${state}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc}}]
backups:
  - {name: job, store: main, database: persistence, type: full, source: {runs: {}}, integrity: {level: none}, interval: 200ms}
  - {name: beat, store: main, database: persistence, type: full, source: {heartbeat: {token: {file: ${place}/token}}}, interval: 200ms}
`,
  );
});
beforeEach(() => rmSync(state, { recursive: true, force: true }));

const runs = (name: string) =>
  entriesIn<{ startMs: number; endMs?: number; status?: number; msg?: string }>(
    readFileSync(join(state, 'backup-runs', `${name}.jsonl`), 'utf8'),
  );
const job = (...words: string[]) => ['backup', 'run', '--job', 'job', '-c', file, '--', ...words];

describe('backup run', () => {
  const mebibytes = bySize({ short: 64, long: 1024, nightly: 1024 });
  test(`passes ${mebibytes} MiB of output through, byte by byte, and the exit status`, async () => {
    const bytes = mebibytes << 20;
    const child = spawn(
      process.execPath,
      [mainFile, ...job('sh', '-c', `head -c ${bytes} /dev/zero; exit 5`)],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let got = 0;
    for await (const chunk of child.stdout) got += (chunk as Buffer).length;
    const status = child.exitCode ?? (await new Promise((resolve) => child.once('exit', resolve)));
    expect({ got, status }).toEqual({ got: bytes, status: 5 });
    expect(runs('job').at(-1)).toMatchObject({ status: 5 });
  });

  testOnce('hands SIGTERM on, and takes the status that the command then ends with', async () => {
    const running = start(process.execPath, [
      mainFile,
      ...job('sh', '-c', 'trap "echo cleaned up; exit 7" TERM; echo ready; while :; do sleep 0.1; done'),
    ]);
    await until('the command runs', () => running.output().includes('ready'));
    expect(await running.end('SIGTERM')).toBe(7);
    expect(running.output()).toContain('cleaned up');
    expect(runs('job').at(-1)).toMatchObject({ status: 7 });
  });

  testOnce('a command that is killed has failed, by 128 and the number of the signal', () => {
    const { status, stderr } = command(job('sh', '-c', 'kill -9 $$'));
    expect({ status, stderr }).toEqual({ status: 137, stderr: 'svc-agent: sh was ended by SIGKILL\n' });
    expect(runs('job').at(-1)).toMatchObject({ status: 137, msg: 'sh was ended by SIGKILL' });
  });

  testOnce('two runs of one job at once are two runs', async () => {
    const [one, other] = ['one', 'other'].map((name) => join(place, name));
    // Each of the two waits until the other has begun.
    const meet = 'touch "$0"; until [ -e "$1" ]; do sleep 0.05; done';
    const both = [
      [one!, other!],
      [other!, one!],
    ].map((files) => start(process.execPath, [mainFile, ...job('sh', '-c', meet, ...files)]));
    expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([0, 0]);
    const recorded = runs('job');
    expect(recorded.filter(({ status }) => status === 0)).toHaveLength(2);
  });

  testOnce('what cannot be recorded is told, and neither prevents nor fails the backup', () => {
    writeFileSync(state, 'not a directory');
    const { status, stdout, stderr } = command(job('echo', 'saved'));
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'saved\n' });
    expect(stderr).toContain('this run cannot be recorded in');
  });

  testOnce.each([
    ['an invalid configuration', 'stores: {', 'job'],
    ['a configuration without the entry', 'admin: ~\nroles: []\n', 'job'],
    ['no configuration', undefined, 'job'],
  ])('with %s the command runs all the same, and that is reported', (_, text, name) => {
    const other = join(place, 'other.yaml');
    rmSync(other, { force: true });
    if (text !== undefined) writeFileSync(other, text);
    const words = ['backup', 'run', '--job', name, '-c', other, '--', 'sh', '-c', 'echo saved; exit 5'];
    const { status, stdout, stderr } = command(words);
    expect({ status, stdout }).toEqual({ status: 5, stdout: 'saved\n' });
    expect(stderr).toContain('the command runs all the same; this run is not recorded');
  });

  testOnce.each(['../../etc/passwd', 'job/../job', 'job\n', '', '--', '$(id)'])(
    'a job %j does not exist',
    async (name) => {
      const { status } = await commandHere(['backup', 'run', '--job', name, '-c', file, '--', 'true']);
      expect(status).toBe(2);
    },
  );

  testOnce.each([
    ['nothing', []],
    ['an argument with spaces, quotes and a line break', ['a b', '"c"', "d'e", 'f\ng', '$HOME', '*']],
  ])('hands on %s as it was given', (_, words) => {
    const { stdout } = command(job('printf', '[%s]', ...words));
    expect(stdout).toBe(words.length === 0 ? '[]' : words.map((word) => `[${word}]`).join(''));
  });
});

onlyShort(describe)('heartbeats', () => {
  let agent: RunningAgent;
  const post = (path: string) =>
    fetch(`http://${agent.address('admin')}${path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer let-me-in' },
    }).then(({ status }) => status);
  const shows = (wanted: RegExp) =>
    until(String(wanted), async () =>
      wanted.test(await (await fetch(`http://${agent.address('metrics')}/metrics`)).text()),
    );

  test('a start before a restart of the agent and a success after it are one run, counted once', async () => {
    agent = await startAgent(file);
    expect(await post('/backup/beat/start')).toBe(200);
    await agent.end('SIGKILL');
    agent = await startAgent(file);
    try {
      expect(await post('/backup/beat/success?size=9')).toBe(200);
      await shows(/^svc_backup_runs_total\{[^}]*"beat"[^}]*result="success"[^}]*\} 1$/m);
      const [begun, ended] = runs('beat');
      expect(ended).toMatchObject({ startMs: begun!.startMs, status: 0 });
      await agent.end('SIGKILL');
      agent = await startAgent(file);
      await shows(/^svc_backup_runs_total\{[^}]*"beat"[^}]*result="success"[^}]*\} 1$/m);
    } finally {
      await agent.end();
    }
  });

  test('names and sizes that nobody configured are refused, and leave no file', async () => {
    agent = await startAgent(file);
    try {
      for (const path of [
        '/backup/..%2f..%2fbeat/start',
        '/backup/job/start',
        '/backup/beat%0a/start',
        '/backup/beat/start/x',
        '/backup/beat/delete',
        '/backup//start',
      ])
        expect(await post(path), path).toBe(404);
      for (const size of ['-1', '1e9', '99999999999999999', 'NaN'])
        expect(await post(`/backup/beat/success?size=${size}`), size).toBe(400);
      expect(readdirSync(state).filter((name) => name.endsWith('-runs'))).toEqual([]);
    } finally {
      await agent.end();
    }
  });
});
