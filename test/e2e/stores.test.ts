import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasCassandra, startCassandra, superuser } from '../cassandra.ts';
import { hasMariadb, schemaStatements, startMariadb, usersStatements } from '../mariadb.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { folder } from '../run-folder.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { writeAgentFile } from './agent-file.ts';
import { command, startAgent } from './process.ts';

// The drivers are chunks of the bundle that load when a store of their kind is polled: only the built program shows whether they
// can be loaded.

interface StoreServer {
  port: number;
  /** How the configuration logs in and which database it names, as YAML. */
  access: string;
  /** The number of clients that left in the middle of the protocol, as the server counts them. */
  abortedConnects?(): Promise<number>;
  stop(): Promise<void>;
}

interface StoreCase {
  kind: string;
  isInstalled: boolean;
  start(): Promise<StoreServer>;
  /** Matches a part of the version that the server reports. */
  version: RegExp;
  /** A check that only this kind of store has. */
  check: string;
}

const cases: readonly StoreCase[] = [
  {
    kind: 'postgres',
    isInstalled: hasPostgres,
    version: /^PostgreSQL \d+/,
    check: 'archive_mode',
    async start() {
      const server = await startPostgres();
      await server.query('CREATE DATABASE svc');
      await server.query('CREATE TABLE schema_version (db_name text PRIMARY KEY, curr_version text)', 'svc');
      await server.query("INSERT INTO schema_version VALUES ('svc', '0.8')", 'svc');
      return {
        port: server.port,
        access: 'user: postgres, databases: {persistence: svc}',
        stop: () => server.stop(),
      };
    },
  },
  {
    kind: 'mysql',
    isInstalled: hasMariadb,
    version: /MariaDB/,
    check: 'log_bin',
    async start() {
      const server = await startMariadb();
      await server.sql(schemaStatements('svc_main'));
      await server.sql(usersStatements);
      return {
        port: server.port,
        access: 'user: full, password: swordfish, databases: {persistence: svc_main}',
        async abortedConnects() {
          const [row] = await server.sql("SHOW GLOBAL STATUS LIKE 'Aborted_connects'");
          return Number(row!.Value);
        },
        stop: () => server.stop(),
      };
    },
  },
  {
    kind: 'widecolumn',
    isInstalled: hasCassandra,
    version: /^\d+\.\d+/,
    check: 'incremental_backups',
    async start() {
      const server = await startCassandra({ authenticates: true });
      await server.run(
        "CREATE KEYSPACE svc WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
        'CREATE TABLE svc.schema_version (keyspace_name text PRIMARY KEY, curr_version text)',
        "INSERT INTO svc.schema_version (keyspace_name, curr_version) VALUES ('svc', '0.8')",
      );
      const { username, password } = superuser;
      return {
        port: server.port,
        access: `user: ${username}, password: ${password}, databases: {persistence: svc}`,
        stop: () => server.remove(),
      };
    },
  },
];

for (const { kind, isInstalled, start, version, check } of cases) {
  describe.skipIf(!isInstalled)(`the built program and a real ${kind} server`, () => {
    let server: StoreServer;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server?.stop());

    function agentFile(): string {
      const place = folder();
      atTestEnd(() => place.remove());
      const file = writeAgentFile(
        place.path,
        `services: {}
stores: [{name: main, kind: ${kind}, address: '127.0.0.1:${server.port}', ${server.access}, schema: {persistence: "0.8"}, interval: 10s, timeout: 10s}]
`,
      );
      return file;
    }

    test('probe reports its version, its schema and its checks', () => {
      const { status, stdout, stderr } = command(['probe', '-c', agentFile(), '--json']);
      expect(stderr).not.toMatch(/not a function|TypeError/);
      const [found] = JSON.parse(stdout) as {
        ok: boolean;
        msg: string;
        details: { schema: string; checks: { check: string; holds: unknown }[] };
      }[];
      expect(found, stdout).toMatchObject({ ok: true, details: { schema: '0.8' } });
      expect(found!.msg).toMatch(version);
      expect(found!.details.checks.map((one) => one.check)).toEqual(
        expect.arrayContaining(['schema', check]),
      );
      expect([0, 1]).toContain(status);
    });

    test('run exports it as up, with its checks, and drops no connection', async () => {
      const agent = await startAgent(agentFile());
      atTestEnd(() => agent.end());
      const page = async () => (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
      const labels = `database="persistence",kind="${kind}",store="main"`;
      await until('the store is up', async () => (await page()).includes(`svc_store_up{${labels}} 1\n`));
      const text = await page();
      expect(text).toContain(`svc_store_schema_compatible{${labels}} 1\n`);
      expect(text).toMatch(new RegExp(`svc_store_check_ok\\{check="${check}",${labels}\\} [01]\n`));
      expect(text).not.toMatch(/svc_store_failures_total\{[^}]*\} [1-9]/);
      expect(await server.abortedConnects?.()).toBe(server.abortedConnects && 0);
    });
  });
}
