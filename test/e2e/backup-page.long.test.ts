import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { hasCassandra, startCassandra, superuser } from '../cassandra.ts';
import { hasMariadb, startMariadb } from '../mariadb.ts';
import { hasPostgres, postgresFolder, startPostgres } from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';
import { mainFile } from './process.ts';
import { type Role, startRole } from './role.ts';

// Follows docs/backups-and-recovery.md, "From no backup to a proven recovery", literally: runs its blocks in their order, with
// the places and addresses of this machine, for each kind of store, from no backup to a service that runs on the restored data.

const page = readFileSync(
  fileURLToPath(new URL('../../docs/backups-and-recovery.md', import.meta.url)),
  'utf8',
);
const [, section = ''] = /^## From no backup to a proven recovery\n(.*?)^## /ms.exec(page) ?? [];

interface Block {
  language: string;
  text: string;
}

const kinds = ['PostgreSQL', 'MySQL or MariaDB', 'Wide-column store'] as const;
type Kind = (typeof kinds)[number];

/** The blocks of one kind, and those of all kinds: the first line says which kind a block is for. */
const blocksOf = (kind: Kind): Block[] =>
  [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .map(([, language = '', text = '']) => ({ language, text }))
    .filter(({ text }) => {
      const named = kinds.find((each) => text.startsWith(`# ${each}\n`) || text.startsWith(`-- ${each}\n`));
      return named === undefined || named === kind;
    });

interface Shop {
  address: string;
  /** Settings of the store's programs, such as its port. */
  env: Record<string, string>;
  /** Replacements for programs that are not installed. */
  programs?: Readonly<Record<string, string>>;
  /** Runs statements as the administrator. */
  admin(statements: string): Promise<void>;
  /** Entries that are removed, because the server archives nothing, or because they are restored by hand. */
  unneeded: readonly string[];
  /** Writes rows after the dump. */
  goOn?(): Promise<void>;
  damage(): Promise<void>;
  content(): Promise<unknown>;
  expected: unknown;
}

const statementsOf = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => !line.startsWith('--'))
    .join('\n')
    .split(/;\s*(?:$|\n)/)
    .map((each) => each.trim())
    .filter((each) => each !== '');

async function openPostgres(): Promise<Shop> {
  const server = await startPostgres();
  onTestFinished(() => server.stop());
  await server.query('CREATE DATABASE svc');
  await server.query(
    `CREATE TABLE executions AS SELECT i, now() AS start_time FROM generate_series(1, 500) i;
     CREATE TABLE schema_version AS SELECT 'svc' AS db_name, now() AS creation_time, '0.8' AS curr_version, '0.8' AS min_compatible_version`,
    'svc',
  );
  let database = 'postgres';
  return {
    address: `127.0.0.1:${server.port}`,
    env: { PGPORT: String(server.port) },
    async admin(text) {
      for (const line of text.split('\n')) {
        const connect = /^\\connect "(\w+)"/.exec(line);
        if (connect) database = connect[1]!;
        else if (line.endsWith('\\gexec')) {
          // psql runs each value of the result.
          for (const row of (await server.query(line.slice(0, -'\\gexec'.length), database)).rows)
            await server.query(String(Object.values(row as object)[0]), database);
        } else if (/\S/.test(line) && !line.startsWith('--')) await server.query(line, database);
      }
      database = 'postgres';
      await server.disconnect();
    },
    unneeded: ['main-base', 'main-wal'],
    async damage() {
      await server.query('DELETE FROM executions WHERE i > 10', 'svc');
      await server.disconnect();
    },
    async content() {
      const { rows } = await server.query('SELECT count(*)::int AS n FROM executions', 'svc');
      await server.disconnect();
      return rows[0].n;
    },
    expected: 500,
  };
}

async function openMariadb(): Promise<Shop> {
  const server = await startMariadb('--log-bin=bin', '--server-id=1');
  onTestFinished(() => server.stop());
  await server.sql(`CREATE DATABASE svc;
    CREATE TABLE svc.schema_version (db_name VARCHAR(255) NOT NULL PRIMARY KEY, creation_time DATETIME(6), curr_version VARCHAR(64), min_compatible_version VARCHAR(64));
    INSERT INTO svc.schema_version VALUES ('svc', NOW(), '0.8', '0.8');
    CREATE TABLE svc.executions (i INT PRIMARY KEY, start_time TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6));
    INSERT INTO svc.executions (i) SELECT seq FROM svc.seq_1_to_500`);
  await server.sql("GRANT ALL ON *.* TO root@'127.0.0.1' IDENTIFIED BY 'b' WITH GRANT OPTION");
  return {
    address: `127.0.0.1:${server.port}`,
    env: { MYSQL_TCP_PORT: String(server.port) },
    admin: async (text) => {
      await server.sql(text);
    },
    unneeded: ['main-physical'],
    goOn: async () => {
      // The service selects its database, too.
      await server.sql('USE svc; INSERT INTO executions (i) SELECT seq FROM seq_501_to_700; USE mysql');
    },
    async damage() {
      await server.sql('SET sql_log_bin = 0; DELETE FROM svc.executions WHERE i > 10; SET sql_log_bin = 1');
    },
    content: async () => Number((await server.sql('SELECT COUNT(*) AS n FROM svc.executions'))[0]!.n),
    expected: 700,
  };
}

const word = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

async function openCassandra(): Promise<Shop> {
  const server = await startCassandra({ authenticates: true });
  onTestFinished(() => server.remove());
  await server.run(
    "CREATE KEYSPACE svc WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
    'CREATE TABLE svc.schema_version (keyspace_name text PRIMARY KEY, curr_version text)',
    "INSERT INTO svc.schema_version (keyspace_name, curr_version) VALUES ('svc', '0.8')",
    'CREATE TABLE svc.executions (i int PRIMARY KEY, state text)',
    ...Array.from({ length: 50 }, (_, i) => `INSERT INTO svc.executions (i, state) VALUES (${i}, 'a')`),
  );
  const driver = fileURLToPath(new URL('../../node_modules/cassandra-driver/index.js', import.meta.url));
  const client = `const { Client } = require(${JSON.stringify(driver)});
const client = new Client({ contactPoints: ['${server.host}:${server.port}'], localDataCenter: 'datacenter1', credentials: ${JSON.stringify(superuser)} });
client.execute(process.argv.at(-1)).then(() => client.shutdown());`;
  return {
    address: `127.0.0.1:${server.port}`,
    env: { CASSANDRA_CONF: dirname(server.data) },
    programs: {
      nodetool: `exec ${server.nodetool().map(word).join(' ')} "$@"`,
      cqlsh: `exec ${process.execPath} -e ${word(client)} -- "$@"`,
    },
    admin: async (text) => server.run(...statementsOf(text)),
    unneeded: ['main-persistence-incremental'],
    // Deleted rows have a newer mark than the rows of the backup.
    damage: () =>
      server.run(...Array.from({ length: 40 }, (_, i) => `DELETE FROM svc.executions WHERE i = ${i}`)),
    content: async () => (await server.rows('SELECT i FROM svc.executions')).length,
    expected: 50,
  };
}

/** The things on this machine to which the page refers by the names of an installation. */
function host(role: Role, shop: Shop) {
  const place = folder();
  onTestFinished(place.remove);
  const [bin, home, etc, cron] = ['bin', 'home', 'etc', 'cron'].map((name) => join(place.path, name)) as [
    string,
    string,
    string,
    string,
  ];
  for (const path of [bin, home, etc, cron]) mkdirSync(path);
  // The server writes there, too.
  const backups = hasPostgres ? postgresFolder() : join(place.path, 'backups');
  const program = (name: string, text: string) => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  program('svc-agent', `exec ${process.execPath} ${mainFile} "$@"`);
  program(
    'kubectl',
    `case "$*" in *--replicas=0*) exec ${role.stop.join(' ')} ;; *) exec ${role.start.join(' ')} ;; esac`,
  );
  for (const [name, text] of Object.entries(shop.programs ?? {})) program(name, text);
  writeFileSync(join(home, '.my.cnf'), '[client]\npassword=b\n');
  writeFileSync(join(home, '.pgpass'), '*:*:*:*:b\n', { mode: 0o600 });
  writeFileSync(join(etc, 'main.password'), 'b\n');
  const here = (text: string) =>
    text
      .replaceAll('/etc/svc-agent', etc)
      .replaceAll('/etc/cron.d', cron)
      .replaceAll('/var/backups/svc', backups)
      .replaceAll('http://history.local:8080/health', role.health)
      .replace(/db\.local:\d+/g, shop.address)
      .replaceAll('db.local', '127.0.0.1');
  const env = { ...process.env, ...shop.env, HOME: home, PATH: `${bin}:${process.env.PATH}` };
  const run = (line: string) =>
    new Promise<{ status: number | null; output: string }>((resolve) => {
      const child = spawn('bash', ['-euc', line], { cwd: etc, env, stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => (output += text));
      child.on('close', (status) => resolve({ status, output }));
    });
  return { etc, cron, here, run };
}

/** The command that cron runs for a line: a percent sign would end it. */
const cronCommand = (line: string) => line.replace(/^(?:\S+ ){5}root /, '').replaceAll('\\%', '%');

async function follow(kind: Kind, open: () => Promise<Shop>): Promise<void> {
  const shop = await open();
  const rolePlace = folder();
  onTestFinished(rolePlace.remove);
  const role = await startRole(rolePlace.path);
  onTestFinished(role.remove);
  const { etc, cron, here, run } = host(role, shop);
  const file = join(etc, 'agent.yaml');
  // The page does not say where the state is.
  writeFileSync(file, `stateDirectory: ${join(rolePlace.path, 'state')}\n`);
  const ran: string[] = [];
  const passes = async (line: string) => {
    // A file counts as a backup once it has been unchanged for the time of `settle`.
    const { status, output } = await until(`${line}: a backup that has settled`, async () => {
      const answer = await run(line);
      return answer.output.includes('no backup yet') ? undefined : answer;
    });
    // With a log this is expected until a restore was timed, as the page says.
    const isUntimed = /probe backup recovery/.test(line) && /recovery\/\S+ +drill_missing/.test(output);
    expect(status, `${line}\n${output}`).toBe(isUntimed && shop.goOn ? 1 : 0);
    ran.push(line);
    return output;
  };
  for (const { language, text } of blocksOf(kind)) {
    if (language === 'yaml') writeFileSync(file, here(text), { flag: 'a' });
    else if (language === 'sql') await shop.admin(text);
    else if (language === 'sh' || text.startsWith('svc-agent ')) {
      const commands = here(text);
      if (commands.includes('recover ') && !commands.includes('--plan')) await shop.damage();
      const output = await passes(commands);
      if (commands.includes('--print-grants'))
        await shop.admin(output.slice(output.indexOf('-- Store')).replaceAll('<password>', 'b'));
      if (commands.includes('backup plan')) await prepare(shop, { etc, cron });
      if (commands.includes('backup run')) await runJobs(shop, { cron, passes });
      if (commands.includes('probe backup recovery')) expect(output).toMatch(/at most \S+ would be lost/);
    }
  }
  expect(ran.some((line) => line.includes('recover ') && line.includes('--execute'))).toBe(true);
  expect(await shop.content()).toBe(shop.expected);
  expect(await role.isUp()).toBe(true);
}

/**
 * Does what an administrator does first for each script; entries that are not needed are removed, together with their lines in
 * the crontab.
 */
async function prepare(shop: Shop, { etc, cron }: { etc: string; cron: string }): Promise<void> {
  const crontab = readFileSync(join(cron, 'svc-backup'), 'utf8').split('\n');
  const isNeeded = (line: string) => !shop.unneeded.some((name) => line.includes(`--job ${name} `));
  writeFileSync(join(cron, 'svc-backup'), crontab.filter(isNeeded).join('\n'));
  const config = parse(readFileSync(join(etc, 'agent.yaml'), 'utf8')) as {
    backups: { name: string; source: Record<string, object> }[];
  };
  config.backups = config.backups
    .filter(({ name }) => !shop.unneeded.includes(name))
    .map((entry) => {
      const [[source, options]] = Object.entries(entry.source) as [[string, object]];
      // The page waits for a minute.
      return source === 'snapshot' ? entry : { ...entry, source: { [source]: { ...options, settle: '1s' } } };
    });
  writeFileSync(join(etc, 'agent.yaml'), stringify(config));
  for (const { name } of config.backups) {
    const script = readFileSync(join(etc, 'backup', `${name}.sh`), 'utf8');
    const once = script
      .split('\n')
      .filter((line) => /^# {5}\S.*;$/.test(line))
      .map((line) => line.slice(2).trim().replace('<password>', 'b'));
    if (once.length > 0) await shop.admin(once.join('\n'));
  }
}

/** Runs the rest of the crontab, then writes rows that only the log has, and archives the log again. */
async function runJobs(
  shop: Shop,
  { cron, passes }: { cron: string; passes: (line: string) => Promise<string> },
): Promise<void> {
  const text = readFileSync(join(cron, 'svc-backup'), 'utf8');
  expect(text).toContain('PATH=');
  const lines = text.split('\n').filter((line) => line.includes('--job '));
  const isLog = (line: string) => line.includes('-binlog ');
  for (const line of lines.filter((each) => !/main-persistence-full/.test(each)))
    await passes(cronCommand(line));
  await shop.goOn?.();
  for (const line of lines.filter(isLog)) await passes(cronCommand(line));
}

test.skipIf(!hasPostgres)('the page for PostgreSQL', () => follow('PostgreSQL', openPostgres));
test.skipIf(!hasMariadb || !existsSync('/usr/bin/mysqlbinlog'))('the page for MariaDB', () =>
  follow('MySQL or MariaDB', openMariadb),
);
test.skipIf(!hasCassandra)('the page for the wide-column store', () =>
  follow('Wide-column store', openCassandra),
);
