import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ownedFolder, postgresFolder, startPostgres } from '../../postgres.ts';
import { until } from '../../until.ts';
import { mainFile, type RunningAgent, start, startAgent } from '../process.ts';
import { startLivePrometheus } from './prometheus.ts';

/**
 * A real PostgreSQL whose backups the built agent observes, and a real Prometheus that scrapes the agent: dumps by `svc-agent
 * backup run`, archived WAL, copies off-site and of the configuration. The dashboards' panels on backups are tested with it, and
 * their preview is drawn from it.
 */
export interface BackupStage {
  /** The host:port of Prometheus. */
  address: string;
  agent: RunningAgent;
  /** Makes a dump, and copies it off-site; a segment of WAL is archived. */
  backUp(): Promise<void>;
  /** Runs a dump that fails. */
  fail(): Promise<void>;
  /** Waits for the rehearsal of the newest dump, which is recorded as a drill. */
  drill(): Promise<void>;
  stop(): Promise<void>;
}

const schedule = { every: '20s', grace: '20s' };
const objectives = { rpo: '1m', rto: '30s' };

export async function startBackupStage(directory: string): Promise<BackupStage> {
  const base = postgresFolder();
  const [dumps, wal, away, copies] = ['dumps', 'wal', 'away', 'config'].map((name) => join(base, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const path of [dumps, wal, away, copies]) ownedFolder(path);
  const server = await startPostgres({ archiveCommand: `cp %p ${wal}/%f` });
  await server.query('CREATE TABLE executions AS SELECT i, md5(i::text) FROM generate_series(1, 5000) i');
  await server.query('CREATE TABLE schema_version (db_name text PRIMARY KEY, curr_version text)');
  await server.query("INSERT INTO schema_version VALUES ('postgres', '0.8')");
  const live = join(base, 'production.yaml');
  writeFileSync(live, 'log: {level: info}\n');
  copyFileSync(live, join(copies, 'production.yaml'));
  const file = join(directory, 'backups.yaml');
  const entry = (name: string, type: string, source: object, more: object = {}) => ({
    ...{ name, type, source, interval: '3s', schedule },
    ...(type !== 'config' && { store: 'main', database: 'persistence', objectives }),
    ...more,
  });
  const config = {
    stateDirectory: join(directory, 'state'),
    metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' }, tags: { cluster: 'dc1' } },
    admin: { listenAddress: '127.0.0.1:0' },
    stores: [
      {
        ...{ name: 'main', kind: 'postgres', address: `127.0.0.1:${server.port}`, user: 'postgres' },
        ...{ databases: { persistence: 'postgres' }, schema: { persistence: '0.8' } },
        ...{ interval: '2s', timeout: '1s' },
      },
    ],
    backups: [
      entry(
        'main-full',
        'full',
        {
          files: {
            directory: dumps,
            pattern: '^main-(?<time>\\d{8}T\\d{6}Z)\\.dump$',
            settle: '1s',
            takenFrom: 'primary',
          },
        },
        { integrity: { level: 'full' }, offsite: { directory: away, maxLag: '1m' } },
      ),
      entry('main-wal', 'log', { segments: { directory: wal, log: 'wal', settle: '1s' } }),
      entry(
        'configuration',
        'config',
        { configuration: { files: [live], directory: copies } },
        { schedule: {} },
      ),
    ],
    recovery: { rehearsal: { directory: base, schedule: { every: '1h' } } },
  };
  writeFileSync(file, JSON.stringify(config));
  const agent = await startAgent(file);
  const prometheus = await startLivePrometheus(directory, {
    alertmanager: '127.0.0.1:1',
    ruleFiles: [],
    targets: { 'svc-agent': [{ address: agent.address('metrics'), cluster: 'dc1' }] },
  });
  const program = (...args: string[]) => start(process.execPath, [mainFile, ...args]);
  const rehearsed = async () => {
    const page = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
    return /^svc_restore_drill_last_success_timestamp_seconds\{.*procedure="rehearsal"/m.test(page);
  };
  const run = (...argv: string[]) =>
    program('backup', 'run', '--job', 'main-full', '-c', file, '--', ...argv).ended;
  return {
    address: prometheus.address,
    agent,
    async backUp() {
      const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
      const path = join(dumps, `main-${stamp}.dump`);
      const dump = `pg_dump -h 127.0.0.1 -p ${server.port} -U postgres -Fc -f ${path}.part postgres && mv ${path}.part ${path}`;
      const status = await run('sh', '-c', dump);
      if (status !== 0) throw new Error(`the dump ended with ${status}`);
      copyFileSync(path, join(away, `main-${stamp}.dump`));
      await server.query('INSERT INTO executions SELECT i, md5(i::text) FROM generate_series(1, 500) i');
      await server.archiveWal();
    },
    async fail() {
      await run('sh', '-c', 'exit 3');
    },
    async drill() {
      await until('a rehearsal', rehearsed);
    },
    async stop() {
      await prometheus.end();
      await agent.end();
      await server.stop();
    },
  };
}
