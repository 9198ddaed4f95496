import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BackupOptions } from '../../src/probes/backups/block.ts';
import type { BackupSource } from '../../src/probes/backups/source-blocks.ts';
import type { Finding } from '../../src/probes/probe.ts';
import { backupOptions, openBackups, recoveryOf } from '../backup-probes.ts';
import { type Cassandra, hasCassandra, startCassandra } from '../cassandra.ts';
import { manualClock } from '../clock.ts';
import { entriesIn } from '../entries.ts';
import { folder } from '../run-folder.ts';
import { storeOn } from '../store-probe.ts';
import { until } from '../until.ts';
import { command, startAgent } from './process.ts';

// The jobs that `svc-agent backup plan` writes for a wide-column store, run unchanged on a real Cassandra: a snapshot, flushes
// after it, the loss when one is damaged, and the restore that the plan prints.

const hourMs = 3_600_000;

const shellQuoted = (words: readonly string[]) =>
  words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');

describe.skipIf(!hasCassandra)('incremental backups of a real Cassandra', () => {
  let server: Cassandra;
  const place = folder();
  const copies = join(place.path, 'backups');
  const jobs = join(place.path, 'jobs');
  const programs = join(place.path, 'programs');
  const file = join(place.path, 'agent.yaml');
  const state = join(place.path, 'state');
  const kept = join(copies, 'main-persistence');
  const tables = ['executions', 'tasks'];

  const insert = (table: string, from: number, to: number) =>
    server.run(
      ...Array.from(
        { length: to - from },
        (_, i) => `INSERT INTO svc.${table} (i, state) VALUES (${from + i}, 'state ${from + i}')`,
      ),
    );
  const env: Record<string, string> = { PATH: `${programs}:${process.env.PATH}` };
  /** Runs a job in the same way as cron, once the data directory of the node is known. */
  const take = (job: string) => {
    const script = join(jobs, `${job}.sh`);
    const taken = command(['backup', 'run', '--job', job, '-c', file, '--', script], env);
    expect(taken.status, taken.stderr + taken.stdout).toBe(0);
  };
  const runs = (job: string) =>
    entriesIn<{ startMs: number; status?: number }>(
      readFileSync(join(state, 'backup-runs', `${job}.jsonl`), 'utf8'),
    ).filter(({ status }) => status === 0);

  const entry = (name: string, type: BackupOptions['type'], kind: 'snapshot' | 'incrementals') =>
    backupOptions(name, type, { kind, dataDirectory: kept, keyspace: 'svc' } satisfies BackupSource, {
      ...(type === 'incremental' && { schedule: { everyMs: hourMs, usualGraceMs: hourMs } }),
      objectives: { rpoMs: type === 'full' ? 24 * hourMs : hourMs, rtoMs: hourMs },
      retention: { minCount: 1, keepMs: 7 * 24 * hourMs },
    });

  /** An agent that is started now. With another state directory it knows what was recorded, and has verified nothing. */
  const agent = async (stateDirectory = state) => {
    const clock = manualClock(Date.now() + 1000);
    const backups = [
      entry('main-persistence-full', 'full', 'snapshot'),
      entry('main-persistence-incremental', 'incremental', 'incrementals'),
    ];
    const stores = [storeOn(1, { kind: 'widecolumn' })];
    let polled: Finding | undefined;
    const { round, found, close } = await openBackups(
      { backups, state: stateDirectory, stores },
      (latest) => ({
        clock,
        latest: (name) => (name.startsWith('store/') ? polled : latest(name)),
      }),
    );
    return {
      polls(checks: object[]) {
        polled = { msg: '', details: { checks } };
      },
      async judged(laterMs = 0) {
        clock.jumpTo(Date.now() + 1000 + laterMs);
        await round();
        const { recovery, recoveryPointMs, ...rest } = recoveryOf(found('recovery/main/persistence'));
        const { reason, msg } = found('backup/main-persistence-incremental');
        return { ...rest, reason, msg, recovery: recovery.reason, pointMs: recoveryPointMs };
      },
      close,
    };
  };
  let watching: Awaited<ReturnType<typeof agent>>;

  beforeAll(async () => {
    server = await startCassandra({ settings: '\nincremental_backups: true\n' });
    await server.run(
      "CREATE KEYSPACE svc WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
      ...tables.map((name) => `CREATE TABLE svc.${name} (i int PRIMARY KEY, state text)`),
    );
    for (const name of tables) await insert(name, 0, 20);
    writeFileSync(
      file,
      `stateDirectory: ${state}
roles: [history]
services: {history: {logs: {paths: [${place.path}/none.log]}}}
stores: [{name: main, kind: widecolumn, address: '127.0.0.1:${server.port}', databases: {persistence: svc}}]
`,
    );
    const planned = command(['backup', 'plan', '--directory', copies, '--out', jobs, '-c', file]);
    expect(planned.status, planned.stderr).toBe(0);
    writeFileSync(file, readFileSync(file, 'utf8') + readFileSync(join(jobs, 'backups.yaml'), 'utf8'));
    env.CASSANDRA_CONF = dirname(server.data);
    mkdirSync(programs);
    const nodetool = `#!/bin/sh\nexec ${shellQuoted(server.nodetool())} "$@"\n`;
    writeFileSync(join(programs, 'nodetool'), nodetool, { mode: 0o755 });
    watching = await agent();
  });
  afterAll(async () => {
    await watching?.close();
    await server?.remove();
    place.remove();
  });

  const backupsOf = (name: string) =>
    join(kept, 'svc', readdirSync(join(kept, 'svc')).find((each) => each.startsWith(`${name}-`))!, 'backups');

  test('a snapshot, and flushes upon it: the recovery point is the start of the last flush', async () => {
    expect(await watching.judged()).toMatchObject({ ready: 0 });
    take('main-persistence-full');
    expect(await watching.judged()).toMatchObject({ links: ['full'] });
    await insert('executions', 20, 40);
    take('main-persistence-incremental');
    await insert('tasks', 20, 40);
    take('main-persistence-incremental');
    // These rows are in memory only.
    await insert('tasks', 40, 50);
    expect(await watching.judged()).toMatchObject({
      ...{ ready: 1, reason: undefined, links: ['full', 'incremental', 'incremental'] },
      pointMs: runs('main-persistence-incremental').at(-1)!.startMs,
    });
    const later = await agent();
    await later.judged();
    expect(await later.judged(3 * hourMs)).toMatchObject({
      ...{ ready: 0, recovery: 'recovery_point_too_old', reason: 'late' },
    });
    await later.close();
  });

  test('a flush of which files are gone counts for nothing, nor do those after it', async () => {
    const directory = backupsOf('executions');
    const whole = join(place.path, 'whole');
    cpSync(directory, whole, { recursive: true, preserveTimestamps: true });
    for (const name of readdirSync(directory)) unlinkSync(join(directory, name));
    const found = await watching.judged();
    cpSync(whole, directory, { recursive: true, preserveTimestamps: true });
    expect(found.links).toEqual(['full']);
    expect(found.pointMs).toBeLessThan(runs('main-persistence-incremental')[0]!.startMs);
    expect(await watching.judged()).toMatchObject({ links: ['full', 'incremental', 'incremental'] });
  });

  test('a flipped byte in the last flush', async () => {
    const directory = backupsOf('tasks');
    const written = readdirSync(directory).filter((name) => name.endsWith('-Data.db'));
    const [path] = written
      .map((name) => join(directory, name))
      .sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs) as [string];
    const bytes = readFileSync(path);
    const { mtime } = statSync(path);
    const write = (content: Buffer) => {
      writeFileSync(path, content);
      utimesSync(path, mtime, mtime);
    };
    const flipped = Buffer.from(bytes);
    flipped[30] = flipped[30]! ^ 0x10;
    write(flipped);
    // This agent has not verified the flush while it was whole.
    const stateOfNext = join(place.path, 'next');
    cpSync(join(state, 'backup-runs'), join(stateOfNext, 'backup-runs'), { recursive: true });
    const next = await agent(stateOfNext);
    const found = await next.judged();
    await next.close();
    write(bytes);
    expect(found).toMatchObject({ reason: 'corrupt', links: ['full', 'incremental'] });
  });

  test('a node that writes no incremental backups', async () => {
    watching.polls([{ check: 'incremental_backups', holds: false }]);
    expect(await watching.judged()).toMatchObject({
      ...{ reason: 'log_gap', links: ['full'] },
      msg: expect.stringMatching(/incremental_backups: true/),
    });
    watching.polls([]);
  });

  /** The first findings of a new agent about copies of the snapshot, about which no record says anything. */
  const firstLook = async (change: (tables: string) => void) => {
    const own = folder();
    const root = join(own.path, 'copies');
    for (const name of readdirSync(join(kept, 'svc')))
      cpSync(join(kept, 'svc', name, 'snapshots'), join(root, 'svc', name, 'snapshots'), {
        recursive: true,
      });
    change(join(root, 'svc'));
    const config = join(own.path, 'agent.yaml');
    writeFileSync(
      config,
      `stateDirectory: ${join(own.path, 'state')}
admin: {listenAddress: 127.0.0.1:0}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
roles: [history]
services: {history: {logs: {paths: [${own.path}/none.log]}}}
stores: [{name: main, kind: widecolumn, address: '127.0.0.1:${server.port}', databases: {persistence: svc}}]
backups:
  - {name: nightly, store: main, database: persistence, type: full, source: {snapshot: {dataDirectory: ${root}, keyspace: svc}}}
`,
    );
    const running = await startAgent(config);
    try {
      const metrics = `http://${running.address('metrics')}/metrics`;
      const isPolled = async () => (await (await fetch(metrics)).text()).includes('\nsvc_store_up{');
      await until('the node was polled', isPolled);
      const checks = ['backup/nightly', 'backup/nightly', 'recovery/main/persistence'];
      let said = '';
      for (const name of checks) {
        const url = `http://${running.address('admin')}/probe?name=${encodeURIComponent(name)}`;
        said = await (await fetch(url)).text();
      }
      return said;
    } finally {
      await running.end();
      own.remove();
    }
  };

  test('the schema of the node shows at the first look that the only snapshot lacks a table', async () => {
    expect(await firstLook(() => {})).toMatch(/at most \S+ would be lost/);
    const lacking = await firstLook((tables) => {
      const [name] = readdirSync(tables).filter((each) => each.startsWith('tasks-'));
      rmSync(join(tables, name!), { recursive: true });
    });
    expect(lacking).toMatch(/there is no full backup/);
  });

  test('the restore that the plan prints brings back all that was flushed', async () => {
    await server.run(...tables.map((name) => `TRUNCATE svc.${name}`));
    /** The commands that a script prints below `To restore:`, without the comments. */
    const printed = (job: string) =>
      readFileSync(join(jobs, `main-persistence-${job}.sh`), 'utf8')
        .split('# To restore:\n')[1]!
        .split('\n')
        .filter((line) => /^# [^#]/.test(line))
        .map((line) => line.slice(2))
        .join('\n');
    const idOf = (table: string) =>
      readdirSync(join(kept, 'svc')).find((each) => each.startsWith(`${table}-`))!;
    const [name] = readdirSync(join(kept, 'svc', idOf('executions'), 'snapshots'));
    const incremental = (table: string) =>
      printed('incremental').replace(' TABLE ', ` ${table} `).replace('TABLE-ID', idOf(table));
    for (const line of [printed('full').replace('NAME', name!), ...tables.map(incremental)]) {
      const restored = command(
        ['backup', 'run', '--job', 'main-persistence-full', '-c', file, '--', 'bash', '-euc', line],
        env,
      );
      expect(restored.status, `${line}\n${restored.stderr}${restored.stdout}`).toBe(0);
    }
    expect(await server.rows('SELECT i FROM svc.executions')).toHaveLength(40);
    expect(await server.rows('SELECT i FROM svc.tasks')).toHaveLength(40);
  });
});
