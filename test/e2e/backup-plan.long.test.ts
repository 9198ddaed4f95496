import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { systemClock } from '../../src/core/clock.ts';
import { isInstalled } from '../installed.ts';
import { hasMariadb, type Mariadb, startMariadb } from '../mariadb.ts';
import { keys, type ObjectStoreServer, openObjectStore } from '../object-store.ts';
import { hasPostgres, ownedFolder, type Postgres, postgresFolder, startPostgres } from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { command, mainFile } from './process.ts';

// Everything that `svc-agent backup plan` prints is run as it is printed: the preparations, the lines of the crontab, the
// manifests' commands, and the commands that restore.

const hasRclone = isInstalled('rclone');

/** Runs a program asynchronously, because servers of the test run in this process. */
function run(program: string, args: readonly string[], env: Record<string, string>) {
  return new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const output = ['', ''];
    for (const [at, stream] of [child.stdout, child.stderr].entries())
      stream.setEncoding('utf8').on('data', (text: string) => (output[at] += text));
    child.on('close', (status) => resolve({ status, stdout: output[0]!, stderr: output[1]! }));
  });
}

/** The plan of a configuration as files, and a function that runs them in the same way as cron. */
function planned(place: string, config: object, directory: string, offsite: readonly string[] = []) {
  const file = join(place, 'agent.yaml');
  const [out, bin, home] = ['plan', 'bin', 'home'].map((name) => join(place, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [bin, home]) mkdirSync(path, { recursive: true });
  writeFileSync(join(bin, 'svc-agent'), `#!/bin/sh\nexec '${process.execPath}' '${mainFile}' "$@"\n`);
  chmodSync(join(bin, 'svc-agent'), 0o755);
  writeFileSync(join(home, '.my.cnf'), '[client]\npassword=b\n');
  const whole = { stateDirectory: join(place, 'state'), ...config };
  writeFileSync(file, JSON.stringify(whole));
  const args = ['backup', 'plan', '-c', file, '--directory', directory, ...offsite];
  const { status, stderr } = command([...args, '--out', out]);
  if (status !== 0) throw new Error(stderr);
  const text = (name: string) => readFileSync(join(out, name), 'utf8');
  const { backups } = parse(text('backups.yaml')) as { backups: object[] };
  writeFileSync(file, JSON.stringify({ ...whole, backups }));
  const crontab = text('crontab').split('\n');
  // The keys are where rclone and the agent look for the keys of their user.
  mkdirSync(join(home, '.aws'), { recursive: true });
  writeFileSync(
    join(home, '.aws', 'credentials'),
    `[default]\naws_access_key_id = ${keys.accessKeyId}\naws_secret_access_key = ${keys.secretAccessKey}\n`,
  );
  const env = {
    HOME: home,
    PATH: `${bin}:${/^PATH=(.*)$/m.exec(text('crontab'))![1]}`,
  };
  const shell = (line: string) => run('bash', ['-c', line], env);
  /** The comment lines of a script from one that begins with `from` to the next line that is no comment. */
  const comments = (name: string, from: string) => {
    const lines = text(`${name}.sh`).split('\n');
    const first = lines.indexOf(`# ${from}`) + 1;
    const rest = lines.slice(first);
    const end = rest.findIndex((line) => !line.startsWith('# '));
    return rest.slice(0, end).map((line) => line.slice(2));
  };
  return {
    file,
    out,
    env,
    shell,
    once: (name: string) => comments(name, 'Once:').map((line) => line.trim()),
    restore: (name: string, places: Readonly<Record<string, string>>) =>
      comments(name, 'To restore:')
        .filter((line) => !line.startsWith('#'))
        .join('\n')
        .replace(/[A-Z_]{4,}/g, (name) => (places[name] === undefined ? name : shellWord(places[name]))),
    backups: backups as Entry[],
    async run(job: string, expected = 0) {
      const line = crontab.find((each) => each.includes(`--job ${job} `))!;
      const { status, stderr, stdout } = await shell(cronCommand(line));
      expect(status, `${stdout}${stderr}`).toBe(expected);
    },
    manifests: () =>
      parseAllDocuments(command([...args, '--format', 'kubernetes']).stdout)
        .map((document) => document.toJS())
        .filter((manifest) => manifest?.kind === 'CronJob'),
  };
}
type Planned = ReturnType<typeof planned>;
interface Entry {
  name: string;
  source: Record<string, object>;
  offsite?: { objectStore: object };
}

async function nextSecond(): Promise<void> {
  const second = () => Math.floor(Date.now() / 1000);
  const begun = second();
  await until('the next second', () => second() > begun);
}

/**
 * The command that cron passes to the shell: up to the first percent sign without a backslash; the backslash before other percent
 * signs is removed.
 */
function cronCommand(line: string): string {
  const [command = ''] = line.replace(/^(?:\S+ ){5}root /, '').split(/(?<!\\)%/);
  return command.replaceAll('\\%', '%');
}

const shellWord = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

const newest = (directory: string, pattern: RegExp) =>
  join(
    directory,
    readdirSync(directory)
      .filter((name) => pattern.test(name))
      .sort()
      .at(-1)!,
  );
const countOf = (directory: string, pattern: RegExp) =>
  readdirSync(directory).filter((name) => pattern.test(name)).length;

describe.skipIf(!hasPostgres)('the plan for PostgreSQL', () => {
  const place = folder();
  let base: string;
  let backups: string;
  let server: Postgres;
  let store: ObjectStoreServer;
  let plan: Planned;
  const configOf = (port: number) => ({
    stores: [
      {
        ...{ name: 'main', kind: 'postgres', address: `127.0.0.1:${port}` },
        databases: { persistence: 'svc', visibility: `it's a "visibility" 100%` },
      },
    ],
  });

  beforeAll(async () => {
    base = postgresFolder();
    // A shell splits this path unless it is quoted.
    backups = join(base, 'my 100% backups');
    store = await openObjectStore({ clock: systemClock });
    const first = planned(place.path, configOf(1), backups);
    const settings = first.once('main-wal').filter((line) => / = /.test(line));
    // The directory belongs to the group of the agent, as the documentation says.
    mkdirSync(backups);
    chownSync(backups, 0, 65534);
    chmodSync(backups, 0o2755);
    const [make] = first.once('main-wal').filter((line) => line.startsWith('mkdir '));
    expect((await first.shell(make!)).status).toBe(0);
    server = await startPostgres({
      settings: ['wal_level=replica', ...settings.map((line) => line.replace(/ = '?(.*?)'?$/, '=$1'))],
    });
    await server.query('CREATE DATABASE svc');
    await server.query(`CREATE DATABASE "it's a ""visibility"" 100%"`);
    await server.query('CREATE TABLE executions AS SELECT generate_series(1, 500) i', 'svc');
    const offsite = ['--offsite', 'away:archive/svc/', '--region', 'eu-west-1', '--endpoint', store.url];
    plan = planned(place.path, configOf(server.port), backups, hasRclone ? offsite : []);
    for (const line of plan.once('main-persistence-full').filter((text) => text.endsWith(';')))
      await server.query(line.replace('<password>', 'b'));
  });
  afterAll(async () => {
    await server?.stop();
    await store?.close();
    place.remove();
  });
  const rows = async () =>
    Number((await server.query('SELECT count(*) FROM executions', 'svc')).rows[0].count);

  test('every line of the crontab runs, and what it leaves is what the planned entries expect', async () => {
    for (const job of ['main-persistence-full', 'main-visibility-full', 'main-base', 'main-wal'])
      await plan.run(job);
    expect(command(['check', '-c', plan.file]).status).toBe(0);
    expect(existsSync(newest(backups, /^main-persistence-.*\.dump$/))).toBe(true);
    expect(existsSync(join(newest(backups, /^main-base-/), 'backup_manifest'))).toBe(true);
  });

  test('the group of the directory may read everything that the jobs and the server write', async () => {
    await server.archiveWal();
    const foreign = ['-not', '-group', '65534', '-o', '-not', '-perm', '-g=r'];
    const closed = ['-type', 'd', '-not', '-perm', '-g=rx'];
    const found = execFileSync('find', [backups, '(', ...foreign, '-o', ...closed, ')'], {
      encoding: 'utf8',
    });
    expect(found.split('\n').filter((path) => path !== '' && !path.endsWith('.lock'))).toEqual([]);
    expect(readdirSync(join(backups, 'wal')).length).toBeGreaterThan(0);
  });

  /** The agent's findings for each entry, with files that count at once and copies that are due at once. */
  const probed = async (): Promise<Record<string, { reason: string; msg: string }>> => {
    const at = join(place.path, 'at-once.yaml');
    const config = parse(readFileSync(plan.file, 'utf8')) as object;
    const entries = plan.backups.map(({ source, offsite, ...rest }) => {
      const [kind, options] = Object.entries(source)[0]!;
      return {
        ...rest,
        source: { [kind]: { ...options, settle: '1ms' } },
        // Another test covers verification.
        integrity: { level: 'none' },
        offsite: { ...offsite, maxLag: '0s' },
      };
    });
    writeFileSync(at, JSON.stringify({ ...config, backups: entries }));
    const { stdout } = await run(
      process.execPath,
      [mainFile, 'probe', 'backup', '--json', '-c', at],
      plan.env,
    );
    return Object.fromEntries(
      JSON.parse(stdout).map(({ name, ...rest }: { name: string; reason: string; msg: string }) => [
        name.replace('backup/', ''),
        rest,
      ]),
    );
  };

  /** Removes an object from the bucket until it is put back. */
  const lose = (part: string) => {
    const [key = 'none'] = [...store.objects.keys()].filter((each) => each.includes(part)).sort();
    const [time, content] = [store.objects.get(key)!, store.contents.get(key)!];
    store.objects.delete(key);
    store.contents.delete(key);
    return () => {
      store.objects.set(key, time);
      store.contents.set(key, content);
    };
  };

  test.skipIf(!hasRclone)(
    'rclone copies off-site, and the agent finds each copy that is missing',
    async () => {
      const segment = await server.archiveWal();
      await plan.run('main-wal');
      const missing = async () => {
        const all = Object.entries(await probed());
        return all.filter(([, { reason }]) => reason === 'offsite_missing').map(([name]) => name);
      };
      expect(await missing()).toEqual([]);
      const undo = ['main-persistence-full/', 'backup_manifest', `main-wal/${segment}`].map(lose);
      expect((await missing()).sort()).toEqual(['main-base', 'main-persistence-full', 'main-wal']);
      await plan.run('main-wal');
      expect((await missing()).sort()).toEqual(['main-base', 'main-persistence-full']);
      for (const put of undo) put();
    },
  );

  test.skipIf(!hasRclone)('a copy comes back as it was', async () => {
    const dump = newest(backups, /^main-persistence-.*\.dump$/);
    const remote = readFileSync(join(plan.out, 'main-wal.sh'), 'utf8').match(/^export RCLONE_.*$/gm)!;
    const copy = `away:archive/svc/main-persistence-full/${basename(dump)}`;
    const fetched = await plan.shell([...remote, `rclone copy ${copy} ${place.path}/fetched`].join('\n'));
    expect(fetched.status, fetched.stderr).toBe(0);
    expect(readFileSync(join(place.path, 'fetched', basename(dump))).equals(readFileSync(dump))).toBe(true);
  });

  test.skipIf(!hasRclone)('an upload that is refused fails the job', async () => {
    Object.assign(plan.env, { AWS_ACCESS_KEY_ID: 'another', AWS_SECRET_ACCESS_KEY: 'secret' });
    await server.query('SELECT pg_switch_wal()');
    lose('main-wal/');
    await plan.run('main-wal', 1);
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) Reflect.deleteProperty(plan.env, name);
    expect((await probed())['main-wal']!.reason).toBe('backup_failed');
    await plan.run('main-wal');
  });

  test('the command of the manifest takes a dump, too', async () => {
    const manifest = plan
      .manifests()
      .find(({ metadata }) => metadata.name === 'svc-backup-main-persistence-full');
    const container = manifest.spec.jobTemplate.spec.template.spec.containers[0];
    const before = countOf(backups, /\.dump$/);
    const [program, ...args] = [...container.command] as [string, ...string[]];
    args.splice(2, 0, '-c', plan.file);
    // The name of a dump is its second.
    await nextSecond();
    const { status, stderr } = await run(program, args, plan.env);
    expect(status, stderr).toBe(0);
    expect(countOf(backups, /\.dump$/)).toBe(before + 1);
  });

  test('WAL is kept from the first segment that the oldest base backup needs', async () => {
    const wal = () =>
      readdirSync(join(backups, 'wal'))
        .filter((name) => /^[0-9A-F]{24}$/.test(name))
        .sort();
    const bases = () =>
      readdirSync(backups)
        .filter((name) => name.startsWith('main-base-'))
        .sort();
    const firstOf = (folder: string) =>
      /\(file ([0-9A-F]{24})\)/.exec(readFileSync(join(folder, 'backup_label'), 'utf8'))![1]!;
    await server.archiveWal();
    // The name of a base backup is its second.
    const second = () => new Date().toISOString().slice(0, 19);
    const now = second();
    await until('the next second', () => second() !== now);
    await plan.run('main-base');
    await server.archiveWal();
    await plan.run('main-wal');
    const [oldest, newer] = bases().map((name) => join(backups, name));
    expect(wal()[0]).toBe(firstOf(oldest!));
    const kept = join(place.path, 'kept');
    execFileSync('mv', [oldest!, kept]);
    await plan.run('main-wal');
    expect(wal()[0]).toBe(firstOf(newer!));
    expect(firstOf(kept) < firstOf(newer!)).toBe(true);
  });

  test('--json has the very scripts of --out', () => {
    const { stdout } = command(['backup', 'plan', '--json', '-c', plan.file, '--directory', backups]);
    const { jobs } = JSON.parse(stdout) as {
      jobs: { name: string; type: string; cron: string; script: string; entry: object }[];
    };
    expect(jobs.map(({ name, type }) => [name, type])).toEqual([
      ['main-persistence-full', 'full'],
      ['main-base', 'full'],
      ['main-wal', 'log'],
      ['main-visibility-full', 'full'],
    ]);
    const out = join(place.path, 'plan-again');
    command(['backup', 'plan', '--out', out, '-c', plan.file, '--directory', backups]);
    const { backups: entries } = parse(readFileSync(join(out, 'backups.yaml'), 'utf8'));
    const crontab = readFileSync(join(out, 'crontab'), 'utf8');
    for (const { name, script, cron, entry } of jobs) {
      expect(readFileSync(join(out, `${name}.sh`), 'utf8')).toBe(script);
      expect(crontab).toContain(`${cron} root svc-agent backup run --job ${name} `);
      expect(entries).toContainEqual(entry);
    }
  });

  test('a dump restores a damaged database, and one that is gone', async () => {
    const lines = plan.restore('main-persistence-full', {
      FILE: newest(backups, /^main-persistence-.*\.dump$/),
    });
    for (const damage of ['DROP TABLE executions', undefined]) {
      if (damage === undefined) await server.query('DROP DATABASE svc WITH (FORCE)');
      else await server.query(damage, 'svc');
      const { status, stderr } = await plan.shell(`set -e\n${lines}`);
      expect(status, stderr).toBe(0);
      expect(await rows()).toBe(500);
    }
  });

  test('a base backup and the log restore what was written after it', async () => {
    await server.query('INSERT INTO executions SELECT generate_series(501, 700)', 'svc');
    await server.archiveWal();
    await server.stop();
    const data = join(postgresFolder(), 'data');
    ownedFolder(data, 0o700);
    // The dump of the test before was restored after this base backup, and the log repeats that.
    const lines = plan.restore('main-base', {
      FOLDER: newest(backups, /^main-base-/),
      DATA_DIRECTORY: data,
    });
    const { status, stderr } = await plan.shell(`set -e\n${lines}`);
    expect(status, stderr).toBe(0);
    server = await startPostgres({ data });
    await until('the log is replayed', async () => (await rows()) === 700);
  });
});

const mysqlPrograms = ['mysql', 'mysqldump', 'mysqlbinlog', 'mysqladmin'];
const hasMysqlPrograms = mysqlPrograms.every((name) => existsSync(join('/usr/bin', name)));

describe.skipIf(!hasMariadb || !hasMysqlPrograms)('the plan for MySQL', () => {
  const place = folder();
  const backups = join(place.path, "the store's 5% of backups");
  let server: Mariadb;
  let plan: Planned;
  beforeAll(async () => {
    server = await startMariadb('--log-bin=bin', '--server-id=1');
    await server.sql('CREATE DATABASE svc');
    await server.sql('CREATE TABLE svc.executions (i int PRIMARY KEY)');
    await server.sql('INSERT INTO svc.executions SELECT seq FROM svc.seq_1_to_500');
    await server.sql('CREATE PROCEDURE svc.prune() DELETE FROM svc.executions WHERE i > 1000000');
    await server.sql("GRANT ALL ON *.* TO root@'127.0.0.1' IDENTIFIED BY 'b' WITH GRANT OPTION");
    const store = { name: 'main', kind: 'mysql', address: `127.0.0.1:${server.port}` };
    plan = planned(place.path, { stores: [{ ...store, databases: { persistence: 'svc' } }] }, backups);
    for (const line of plan.once('main-persistence-full').filter((text) => /;(?: -- MariaDB)?$/.test(text)))
      await server.sql(line.replace('<password>', 'b'));
  });
  afterAll(async () => {
    await server?.stop();
    place.remove();
  });

  test('a dump and the binary log after it restore everything', async () => {
    const crontab = readFileSync(join(plan.out, 'crontab'), 'utf8');
    expect(crontab).toContain(` -c ${plan.file} -- `);
    await plan.run('main-binlog');
    await plan.run('main-persistence-full');
    await server.sql('INSERT INTO svc.executions SELECT seq FROM svc.seq_501_to_700');
    await plan.run('main-binlog');
    await plan.run('main-binlog');
    const dump = newest(backups, /\.sql\.gz$/);
    expect(statSync(dump).mode & 0o777).toBe(0o640);
    expect(readFileSync(`${dump}.grants.sql`, 'utf8')).toMatch(/GRANT .* TO `backup`/);
    const head = execFileSync('sh', ['-c', 'gzip -dc "$0" | head -n 50', dump], { encoding: 'utf8' });
    const [, log, position] = /MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)/.exec(head)!;
    const logs = readdirSync(join(backups, 'binlog')).sort();
    const later = logs.slice(logs.indexOf(log!) + 1).map((name) => join(backups, 'binlog', name));
    expect(logs).toContain(log);
    await server.sql('SET sql_log_bin = 0; DROP DATABASE svc; SET sql_log_bin = 1');
    const lines = [
      plan.restore('main-persistence-full', { FILE: dump }),
      plan
        .restore('main-binlog', { POSITION: position!, FILE: log! })
        .replace(`${shellWord(join(backups, 'binlog'))}/LATER_FILES`, later.map(shellWord).join(' ')),
    ];
    const { status, stderr } = await plan.shell(`set -e -o pipefail\n${lines.join('\n')}`);
    expect(status, stderr).toBe(0);
    const [counted] = await server.sql('SELECT COUNT(*) AS n FROM svc.executions');
    expect(counted!.n).toBe(700);
    expect(await server.sql("SHOW PROCEDURE STATUS WHERE Db = 'svc'")).toHaveLength(1);
  });

  test('a replica is not dumped, whether it follows its source or not', async () => {
    const before = readdirSync(backups).sort();
    await server.sql("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'root'");
    await plan.run('main-persistence-full', 1);
    expect(readdirSync(backups).sort()).toEqual(before);
  });
});

test.skipIf(!hasMariadb || !existsSync('/usr/bin/mariabackup') || process.getuid?.() !== 0)(
  'a physical backup of MariaDB is prepared on a copy, and a server runs on what the printed lines restore',
  async () => {
    const place = folder();
    const server = await startMariadb();
    await server.sql('CREATE DATABASE svc; CREATE TABLE svc.executions (i int PRIMARY KEY)');
    await server.sql('INSERT INTO svc.executions SELECT seq FROM svc.seq_1_to_500');
    const store = { name: 'main', kind: 'mysql', address: `127.0.0.1:${server.port}` };
    const backups = join(place.path, 'backups');
    const plan = planned(place.path, { stores: [{ ...store, databases: { persistence: 'svc' } }] }, backups);
    const once = [...plan.once('main-persistence-full'), ...plan.once('main-physical')];
    for (const line of once.filter((text) => /;$/.test(text)))
      await server.sql(line.replace('<password>', 'b'));
    await plan.run('main-physical');
    await server.sql('DROP TABLE svc.executions');
    const data = join(server.folder, 'restored');
    const lines = plan.restore('main-physical', {
      FOLDER: newest(backups, /^main-physical-/),
      PREPARED: join(place.path, 'prepared'),
      DATA_DIRECTORY: data,
    });
    const { status, stderr } = await plan.shell(`set -e\n${lines}`);
    expect(status, stderr).toBe(0);
    await server.restart([`--datadir=${data}`]);
    expect(Number((await server.sql('SELECT COUNT(*) AS n FROM svc.executions'))[0]!.n)).toBe(500);
    await server.stop();
    place.remove();
  },
);

test.each([
  [
    'a block list',
    ['data_file_directories:', '    - A', "    - 'B'", 'commitlog_directory: /nowhere/log'],
    2,
  ],
  ['a list without indentation', ['data_file_directories:', '- A', '- "B"', 'hints_directory: /nowhere'], 2],
  ['a flow list', ['data_file_directories: [A, "B"]', 'commitlog_directory: /nowhere/log'], 2],
  ['a string', ['data_file_directories: "A"', 'commitlog_directory: /nowhere/log'], 1],
  [
    'a comment before it',
    ['# data_file_directories: [/nowhere]', 'data_file_directories: # here', '  - A'],
    1,
  ],
])('the data directories of Cassandra: %s', (_, lines, roots) => {
  const place = folder();
  const places = { A: join(place.path, 'a'), B: join(place.path, 'b') };
  const yaml = lines.join('\n').replace(/\b[AB]\b/g, (name) => places[name as 'A' | 'B']);
  writeFileSync(join(place.path, 'cassandra.yaml'), `cluster_name: a\n${yaml}\n`);
  const bin = join(place.path, 'bin');
  mkdirSync(bin);
  const program = (name: string, text: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  // Each directory gets a snapshot, as nodetool creates them.
  const each = Object.values(places).map((root) => {
    const snapshot = `${root}/svc/executions-1/snapshots/"$3"`;
    return `mkdir -p ${snapshot}; echo x > ${snapshot}/a`;
  });
  program('nodetool', `[ "$1" != snapshot ] || { ${each.join('; ')}; }`);
  program('cp', `echo "$2" >> ${place.path}/copied\nexec /bin/cp "$@"`);
  const file = join(place.path, 'agent.yaml');
  const store = { name: 'main', kind: 'widecolumn', address: '127.0.0.1:1' };
  writeFileSync(file, JSON.stringify({ stores: [{ ...store, databases: { persistence: 'svc' } }] }));
  const [out, copies] = [join(place.path, 'out'), join(place.path, 'copies')];
  const planned = command(['backup', 'plan', '-c', file, '--directory', copies, '--out', out]);
  expect(planned.status, planned.stderr).toBe(0);
  execFileSync(join(out, 'main-persistence-full.sh'), {
    env: { PATH: `${bin}:${process.env.PATH}`, CASSANDRA_CONF: place.path },
    stdio: 'pipe',
  });
  const from = readFileSync(join(place.path, 'copied'), 'utf8').trim().split('\n');
  expect(from.map((path) => path.split('/svc/')[0]).sort()).toEqual(Object.values(places).slice(0, roots));
  place.remove();
});

test.each([
  ['a line break in the name of a database', { persistence: 'svc\ntouch /tmp/owned' }, []],
  ['an escape in the directory', { persistence: 'svc' }, ['--directory', '/var/\u001b[2J']],
])('%s is refused', (_, databases, args) => {
  const place = folder();
  const file = join(place.path, 'agent.yaml');
  const store = { name: 'a', kind: 'mysql', address: '127.0.0.1:1', databases };
  writeFileSync(file, JSON.stringify({ stores: [store] }));
  const { status, stderr } = command(['backup', 'plan', '-c', file, ...args]);
  expect({ status, stderr }).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('control character'),
  });
  place.remove();
});

test('the configuration is copied when it has changed, and not otherwise', async () => {
  const place = folder();
  const [live, backups] = [join(place.path, 'production.yaml'), join(place.path, 'backups')];
  const dynamic = join(place.path, 'dynamic.yaml');
  writeFileSync(dynamic, 'a: 1\n');
  const first = `log: {level: info}\ndynamicconfig: {client: filebased, filebased: {filepath: ${dynamic}}}\n`;
  writeFileSync(live, first);
  const plan = planned(
    place.path,
    {
      serviceConfig: [live],
      stores: [{ name: 'a', kind: 'mysql', address: '127.0.0.1:1', databases: { persistence: 'svc' } }],
    },
    backups,
  );
  await plan.run('configuration');
  await plan.run('configuration');
  const copies = () => readdirSync(join(backups, 'config'));
  expect(copies()).toHaveLength(1);
  expect(statSync(join(backups, 'config', copies()[0]!, 'production.yaml')).size).toBe(first.length);
  expect(readFileSync(join(backups, 'config', copies()[0]!, 'dynamic.yaml'), 'utf8')).toBe('a: 1\n');
  // The name of a copy is its second.
  await nextSecond();
  writeFileSync(live, 'log: {level: warn}\n\n');
  await plan.run('configuration');
  expect(copies()).toHaveLength(2);
  place.remove();
});
