import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectionTo, hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { writeAgentFile } from './agent-file.ts';
import { command, type RunningAgent, startAgent } from './process.ts';

// Backups with the built program: the verifying process is a separate file in dist/.

const runJob = (file: string, job: string, ...program: string[]) =>
  command(['backup', 'run', '--job', job, '-c', file, '--', ...program]);

describe.skipIf(!hasPostgres)('a backup of a real store, through the built program', () => {
  let server: Postgres;
  const place = folder();
  const dumps = join(place.path, 'dumps');
  const agents: RunningAgent[] = [];
  const labels = 'backup="nightly",store="main",database="persistence",backup_type="full"';
  let file: string;

  beforeAll(async () => {
    execFileSync('mkdir', ['-m', '777', dumps]);
    server = await startPostgres();
    await server.query('CREATE TABLE executions AS SELECT i, md5(i::text) FROM generate_series(1, 20000) i');
    file = writeAgentFile(
      place.path,
      `roles: [history]
services: {history: {logs: {paths: [${place.path}/none.log]}}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: postgres, databases: {persistence: postgres}}]
backups:
  - name: nightly
    store: main
    database: persistence
    type: full
    source: {files: {timeZone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}, directory: ${dumps}, pattern: '\\.dump$', settle: 3s, takenFrom: primary}}
    integrity: {level: full}
    interval: 200ms
`,
    );
  });
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.end();
  });
  afterAll(async () => {
    await server?.stop();
    place.remove();
  });

  const run = async () => {
    const agent = await startAgent(file);
    agents.push(agent);
    return agent;
  };
  const shown = async (agent: RunningAgent, name: string, more = '') => {
    const page = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
    const wanted = [...`${labels}${more}`.split(',')].sort();
    const line = page
      .split('\n')
      .find((text) => text.startsWith(`${name}{`) && wanted.every((label) => text.includes(label)));
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
  };
  const ready = async (agent: RunningAgent) => {
    const page = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
    return /^svc_recovery_ready\{[^}]*\} (\d)$/m.exec(page)?.[1];
  };
  const backUp = (name: string) =>
    command([
      ...['backup', 'run', '--job', 'nightly', '-c', file, '--artifact', join(dumps, name), '--'],
      ...['pg_dump', ...connectionTo(server), '-Fc'],
      ...['-f', join(dumps, name), 'postgres'],
    ]);

  test('taken, verified, damaged, failed and lost: each is found, counted once, and recovery is ready or not', async () => {
    const agent = await run();
    await until('a backup is configured', async () => (await shown(agent, 'svc_backup_configured')) === 1);
    await until('nothing to recover from', async () => (await ready(agent)) === '0');

    expect(backUp('a.dump').status).toBe(0);
    await until(
      'success',
      async () => (await shown(agent, 'svc_backup_runs_total', ',result="success"')) === 1,
    );
    // On a busy machine a check that is too slow may come between, and shows no gauges.
    const { size } = statSync(join(dumps, 'a.dump'));
    await until(
      'its integrity',
      async () => (await shown(agent, 'svc_backup_integrity_ok', ',level="full"')) === 1,
    );
    await until('its size', async () => (await shown(agent, 'svc_backup_last_size_bytes')) === size);
    await until('recovery is ready', async () => (await ready(agent)) === '1');
    // The recovery point is the time in the dump, as its own tool prints it, and not a time of its file.
    const list = execFileSync('pg_restore', ['--list', join(dumps, 'a.dump')], { encoding: 'utf8' });
    const created = /Archive created at (\S+ \S+)/.exec(list)![1]!;
    const point = await until('its recovery point', () =>
      shown(agent, 'svc_backup_recovery_point_timestamp_seconds'),
    );
    expect(point).toBe(Date.parse(created.replace(' ', 'T')) / 1000);

    // The table of contents of the dump stays readable.
    truncateSync(join(dumps, 'a.dump'), statSync(join(dumps, 'a.dump')).size - 2000);
    execFileSync('pg_restore', ['--list', join(dumps, 'a.dump')]);
    await until(
      'corrupt',
      async () => (await shown(agent, 'svc_backup_runs_total', ',result="corrupt"')) === 1,
    );
    await until('recovery is not ready', async () => (await ready(agent)) === '0');
    await until(
      'the full verification has failed',
      async () => (await shown(agent, 'svc_backup_integrity_ok', ',level="full"')) === 0,
    );

    const failed = runJob(file, 'nightly', 'sh', '-c', 'echo out; echo err >&2; exit 7');
    expect(failed).toMatchObject({ status: 7, stdout: 'out\n' });
    expect(failed.stderr).toContain('err');
    await until(
      'failed',
      async () => (await shown(agent, 'svc_backup_runs_total', ',result="failed"')) === 1,
    );
    const page = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
    const failures = page.match(/^svc_backup_runs_total\{.*result="(?!success").* [1-9].*$/gm) ?? [];
    const results = failures.map((line) => /result="(\w+)".* (\d+)$/.exec(line)!.slice(1).join(' '));
    expect(results.toSorted()).toEqual(['corrupt 1', 'failed 1']);
    expect(await shown(agent, 'svc_backup_failures_total')).toBe(2);

    expect(backUp('b.dump').status).toBe(0);
    await until('recovery is ready again', async () => (await ready(agent)) === '1');

    // Each result is still counted once after a kill.
    await agent.end('SIGKILL');
    const next = await run();
    await until('ready after the kill', async () => (await ready(next)) === '1');
    const counted = async (by: RunningAgent) => ({
      success: await shown(by, 'svc_backup_runs_total', ',result="success"'),
      corrupt: await shown(by, 'svc_backup_runs_total', ',result="corrupt"'),
      failed: await shown(by, 'svc_backup_runs_total', ',result="failed"'),
    });
    // Gauges are shown at once, counters once they are committed: the kill may have come before the commit of `b.dump`.
    await until('both successes are counted', async () => (await counted(next)).success === 2);
    expect(await counted(next)).toEqual({ success: 2, corrupt: 1, failed: 1 });

    for (const name of readdirSync(dumps)) unlinkSync(join(dumps, name));
    await until('nothing left', async () => (await ready(next)) === '0');
    // At its end an agent commits everything that it counted, and the next one shows it.
    await next.end();
    expect(await counted(await run())).toEqual({ success: 2, corrupt: 1, failed: 1 });
  });

  test('svc-agent probe judges at once, with a verification', async () => {
    for (const name of readdirSync(dumps)) unlinkSync(join(dumps, name));
    expect(backUp('c.dump').status).toBe(0);
    // A file that changed a moment ago may not be complete.
    const found = await until('the dump has settled', () => {
      const { stdout } = command(['probe', 'backup', 'recovery', '-c', file, '--json']);
      const probed = JSON.parse(stdout) as { details: { artifacts?: number } }[];
      return probed[0]!.details.artifacts === 1 ? probed : undefined;
    });
    expect(found).toMatchObject([
      { name: 'backup/nightly', ok: true, details: { integrity: { result: 'ok' } } },
      { name: 'recovery/main/persistence', ok: true, details: { chain: { links: [{ what: 'c.dump' }] } } },
    ]);
    // The backups are read for it, although they are not requested.
    expect(JSON.parse(command(['probe', 'recovery', '-c', file, '--json']).stdout)).toMatchObject([
      { name: 'recovery/main/persistence', ok: true, details: { chain: { links: [{ what: 'c.dump' }] } } },
    ]);
  });

  test('a directory that does not exist has no backup; one that cannot be read is unknown', async () => {
    const agent = await run();
    const successes = () => shown(agent, 'svc_backup_runs_total', ',result="success"');
    const begun = Date.now() / 1000;
    expect(backUp('kept.dump').status).toBe(0);
    await until('the backup is judged', async () => {
      const last = await shown(agent, 'svc_backup_last_success_timestamp_seconds');
      return (last ?? 0) >= begun;
    });
    // Counters are shown once they are committed, so the last one may appear later than its gauges.
    const judged = Date.now() / 1000;
    await until('the counters are committed', async () => {
      const page = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
      const committed = /^svc_agent_state_last_commit_timestamp_seconds(?:\{.*\})? (\S+)$/m.exec(page)?.[1];
      return Number(committed) > judged;
    });
    const before = await successes();
    expect(before).toBeGreaterThan(0);
    await until('judged', async () => (await ready(agent)) === '1');
    execFileSync('mv', [dumps, `${dumps}-away`]);
    try {
      await until('not ready', async () => (await ready(agent)) === '0');
      const probed = JSON.parse(command(['probe', 'recovery', 'backup', '-c', file, '--json']).stdout);
      expect(probed).toMatchObject([
        { name: 'backup/nightly', reason: 'no_backup', msg: expect.stringContaining('dumps does not exist') },
        {
          name: 'recovery/main/persistence',
          reason: 'no_backup',
          msg: expect.stringContaining('does not exist'),
        },
      ]);
      writeFileSync(dumps, 'a file where the directory was');
      await until('unknown', async () => {
        const { stdout } = command(['probe', 'recovery', '-c', file, '--json']);
        return stdout.includes('evidence_unreadable');
      });
      expect(await ready(agent)).toBe('0');
      unlinkSync(dumps);
    } finally {
      execFileSync('mv', [`${dumps}-away`, dumps]);
    }
    await until('judged again', async () => (await ready(agent)) === '1');
    // Backups that were moved away and back had been counted before.
    expect(await successes()).toBe(before);
  });

  test.each([
    [['backup', 'run', '--', 'true'], /--job is missing/],
    [['backup', 'run', '--job', 'nightly'], /no command/],
    [['backup', 'walk'], /unknown action, got "walk"/],
  ])('%j is wrong usage', (args, message) => {
    const { status, stderr } = command([...args.slice(0, 2), '-c', file, ...args.slice(2)]);
    expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringMatching(message) });
  });

  test('a job that the configuration does not have runs all the same, and is not recorded', () => {
    const { status, stderr } = runJob(file, 'nighty', 'sh', '-c', 'exit 3');
    expect(status).toBe(3);
    expect(stderr).toMatch(
      /no such backup, got "nighty"; did you mean nightly\?.*\n.*this run is not recorded/,
    );
  });

  test('a command that cannot be started is 127, and recorded', () => {
    const { status, stderr } = runJob(file, 'nightly', '/no/such/program');
    expect(status).toBe(127);
    expect(stderr).toContain('/no/such/program cannot be started: ENOENT');
  });
});

test('the planned commands are valid shell, and cover each store', () => {
  const place = folder();
  const file = join(place.path, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${place.path}
services: {history: {health: 'http://127.0.0.1:1/health'}}
stores:
  - {name: pg, kind: postgres, address: 'db:5432', databases: {persistence: svc, visibility: svc_visibility}}
  - {name: my, kind: mysql, address: 'db:3306', databases: {persistence: svc}}
  - {name: wide, kind: widecolumn, address: 'db:9042', databases: {persistence: svc}}
`,
  );
  const { status, stdout } = command(['backup', 'plan', '-c', file]);
  expect(status).toBe(0);
  // Single entries are copied out of the plan, and an alias without its anchor is no YAML.
  expect(stdout).not.toMatch(/^# .*: [&*]a\d/m);
  for (const wanted of [
    'pg_dump --format=custom',
    'pg_basebackup',
    'mysqldump',
    '--single-transaction',
    '--routines',
    '--triggers',
    '--events',
    '--hex-blob',
    'nodetool snapshot',
  ]) {
    expect(stdout).toContain(wanted);
  }
  for (const script of stdout.split('#!/bin/bash\n').slice(1)) {
    execFileSync('bash', ['-n'], { input: script.split('\n# ----')[0] });
  }
  const entries = stdout
    .split('\n# Passwords')[0]!
    .split('\n')
    .filter((line) => line.startsWith('#   '))
    .map((line) => line.slice(4))
    .join('\n');
  writeFileSync(file, `${readFileSync(file, 'utf8')}\n${entries}\n`);
  expect(command(['check', '-c', file]).stderr).toBe('');
  const kubernetes = command(['backup', 'plan', '--format', 'kubernetes', '-c', file]).stdout;
  expect(kubernetes.match(/kind: CronJob/g)).toHaveLength(9);
  place.remove();
});

describe('heartbeats and an off-site directory', () => {
  const place = folder();
  let agent: RunningAgent;
  beforeAll(async () => {
    execFileSync('mkdir', ['-p', join(place.path, 'dumps'), join(place.path, 'away')]);
    writeFileSync(join(place.path, 'token'), 'let-me-in\n');
    const file = writeAgentFile(
      place.path,
      `roles: [history]
services: {history: {logs: {paths: [${place.path}/none.log]}}}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', databases: {persistence: svc}}]
backups:
  - {name: beat, store: main, database: persistence, type: full, source: {heartbeat: {token: {file: ${place.path}/token}}}, interval: 1h}
  - name: away
    store: main
    database: persistence
    type: full
    source: {files: {directory: ${place.path}/dumps, pattern: '\\.gz$', settle: 1ms, takenFrom: primary}}
    offsite: {directory: ${place.path}/away, maxLag: 0s}
    interval: 200ms
`,
    );
    agent = await startAgent(file);
  });
  afterAll(async () => {
    await agent?.end();
    place.remove();
  });
  const post = async (path: string, token = 'let-me-in', method = 'POST') =>
    (
      await fetch(`http://${agent.address('admin')}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      })
    ).status;
  const probed = async (name: string) => {
    const probes = (await (await fetch(`http://${agent.address('admin')}/probes`)).json()) as {
      name: string;
      last?: { reason?: string; msg: string };
    }[];
    return probes.find((probe) => probe.name === name)?.last;
  };
  const page = async () => (await fetch(`http://${agent.address('metrics')}/metrics`)).text();

  test('only with the token of the backup, only for backups that are configured, only by POST', async () => {
    expect(await post('/backup/beat/start', 'wrong')).toBe(401);
    expect(await post('/backup/other/start', 'wrong')).toBe(401);
    expect(await post('/backup/other/start')).toBe(404);
    expect(await post('/backup/away/start')).toBe(404);
    expect(await post('/backup/beat/start', 'let-me-in', 'GET')).toBe(405);
    expect(await post('/backup/beat/success?size=much')).toBe(400);
  });

  test('start, success with a size, and fail are runs', async () => {
    expect(await post('/backup/beat/start')).toBe(200);
    expect(await post('/backup/beat/success?size=123456')).toBe(200);
    await until('the success shows', async () =>
      /^svc_backup_last_size_bytes\{[^}]*"beat"[^}]*\} 123456$/m.test(await page()),
    );
    expect(await post('/backup/beat/fail')).toBe(200);
    await until('the failure shows', async () => (await probed('backup/beat'))?.reason === 'backup_failed');
    expect(await page()).toMatch(/^svc_backup_runs_total\{[^}]*"beat"[^}]*result="failed"[^}]*\} 1$/m);
  });

  test('a backup without an off-site copy of its size is missing there', async () => {
    execFileSync('sh', ['-c', `echo data | gzip > ${place.path}/dumps/a.gz`]);
    await until('missing', async () => (await probed('backup/away'))?.reason === 'offsite_missing');
    execFileSync('cp', [join(place.path, 'dumps', 'a.gz'), join(place.path, 'away')]);
    await until('there', async () => {
      const last = await probed('backup/away');
      return last && last.reason === undefined;
    });
    // A check that takes longer than this short interval shows nothing.
    await until('the copy is on the page', async () =>
      /^svc_backup_offsite_last_success_timestamp_seconds\{[^}]*"away"/m.test(await page()),
    );
  });
});
