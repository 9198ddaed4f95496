import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { command } from '../e2e/process.ts';
import {
  asPostgres,
  connectionTo,
  hasPostgres,
  ownedByPostgres,
  type Postgres,
  postgresFolder,
  postgresProgram,
  postgresPrograms,
  startPostgres,
} from '../postgres.ts';

/** A server that replays what its primary writes. */
async function startStandby(primary: Postgres, place: string) {
  const data = join(place, 'replica');
  const from = connectionTo(primary);
  postgresProgram('pg_basebackup', [...from, '-R', '-D', data, '--checkpoint=fast']);
  const standby = await startPostgres({ data });
  onTestFinished(() => standby.stop());
  return standby;
}

// A dump states only when it began, on the clock of the host that makes it.
test.skipIf(!hasPostgres)(
  'a dump of a standby counts for nothing, and a job of the primary makes none',
  async () => {
    const place = postgresFolder();
    onTestFinished(() => rmSync(place, { recursive: true, force: true }));
    const primary = await startPostgres({ settings: ['wal_level=replica', 'max_wal_senders=4'] });
    onTestFinished(() => primary.stop());
    await primary.query('CREATE TABLE executions AS SELECT 1 AS i');
    const standby = await startStandby(primary, place);
    await standby.query('SELECT pg_wal_replay_pause()');
    await primary.query('INSERT INTO executions VALUES (2)');

    const state = join(place, 'state');
    const file = join(place, 'agent.yaml');
    const jobs = ['primary', 'replica', 'unknown'];
    const entry = (name: string) => {
      const takenFrom = name === 'unknown' ? '' : `, takenFrom: ${name}`;
      return `  - {name: ${name}, store: ${name}, database: persistence, type: full, source: {files: {directory: ${place}, pattern: '^${name}\\.dump$', settle: 1ms, timeZone: ${Intl.DateTimeFormat().resolvedOptions().timeZone}${takenFrom}}}}\n`;
    };
    writeFileSync(
      file,
      `stateDirectory: ${state}
stores:
${jobs.map((name) => `  - {name: ${name}, kind: postgres, address: '127.0.0.1:${primary.port}', user: postgres, databases: {persistence: postgres}}\n`).join('')}backups:
${jobs.map(entry).join('')}`,
    );
    /** Runs a job that names a server, in the same way as cron. */
    const run = (name: string, { port }: Postgres) => {
      const target = [...connectionTo({ port }), '-Fc', '-f', join(place, `${name}.dump`)];
      const dump = asPostgres([join(postgresPrograms, 'pg_dump'), ...target, 'postgres']);
      return command(['backup', 'run', '--job', name, '-c', file, '--', ...dump]);
    };
    expect(run('primary', standby)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('hot standby'),
    });
    for (const name of ['replica', 'unknown']) expect(run(name, standby).status).toBe(0);
    expect(run('primary', primary).status).toBe(0);
    const said = JSON.parse(command(['probe', 'recovery', '-c', file, '--json']).stdout) as Record<
      string,
      string
    >[];
    expect(Object.fromEntries(said.map(({ target, msg }) => [target!.split(' ')[0], msg]))).toEqual({
      primary: expect.stringContaining('would be lost'),
      replica: expect.stringContaining(
        'it is from a replica (source.files.takenFrom), and does not state the lag of the replica',
      ),
      unknown: expect.stringContaining('set source.files.takenFrom: primary'),
    });
  },
);

// The label of such a backup has the time at which it began; nothing says what the standby had received by then.
test.skipIf(!hasPostgres)('a base backup of a standby has no time of its own', async () => {
  const place = postgresFolder();
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const server = await startPostgres({ settings: ['wal_level=replica', 'max_wal_senders=4'] });
  onTestFinished(() => server.stop());
  const base = (port: number, name: string, ...more: string[]) => {
    const target = join(place, name);
    const from = [...connectionTo({ port }), '-D', target];
    const program = join(postgresPrograms, 'pg_basebackup');
    const [first, ...rest] = asPostgres([program, ...from, '--checkpoint=fast', ...more]);
    execFileSync(first!, rest, { cwd: '/', stdio: 'pipe' });
    return target;
  };
  const content = async (path: string) => {
    const answer = await verifyBackup({ path, level: 'full', bytesPerSecond: 1e12 });
    expect(answer).toMatchObject({ result: 'ok' });
    return answer.content;
  };
  const own = base(server.port, 'own');
  expect(await content(own)).toMatchObject({ startMs: expect.any(Number), systemId: expect.any(String) });
  expect(await content(base(server.port, 'own-tar', '--format=tar'))).toMatchObject({
    startMs: expect.any(Number),
    systemId: expect.any(String),
  });

  const data = base(server.port, 'standby');
  writeFileSync(join(data, 'standby.signal'), '');
  ownedByPostgres(join(data, 'standby.signal'));
  const standby = await startPostgres({ data });
  onTestFinished(() => standby.stop());
  for (const format of ['plain', 'tar']) {
    const found = await content(base(standby.port, `of-standby-${format}`, `--format=${format}`));
    expect(found).not.toHaveProperty('startMs');
    expect(found).toMatchObject({ unknown: expect.stringContaining('standby') });
  }
});
