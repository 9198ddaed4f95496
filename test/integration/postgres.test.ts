import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, utimesSync, writeSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { planStores } from '../../src/probes/stores/stores.ts';
import { hasPostgres, type Postgres, postgresProgram, startPostgres } from '../postgres.ts';
import { servingBare } from '../serving.ts';
import { bench, checkGauges, checkStore, checksOf, gauge, storeOn } from '../store-probe.ts';
import { pollUntil, until } from '../until.ts';

const minuteMs = 60_000;

/** Creates the table of the service's schema tool in both databases. */
async function addSchema(server: Postgres): Promise<void> {
  for (const [database, version] of [
    ['orders', '0.10'],
    ['orders_visibility', '0.9'],
  ] as const) {
    await server.query(`CREATE DATABASE ${database}`);
    await server.query(
      `CREATE TABLE schema_version (db_name text PRIMARY KEY, creation_time timestamp, curr_version text,
        min_compatible_version text);
       INSERT INTO schema_version VALUES ('${database}', now(), '${version}', '0.1')`,
      database,
    );
  }
}

describe.skipIf(!hasPostgres)('PostgreSQL as it should be', () => {
  let server: Postgres;
  const store = (over = {}) =>
    storeOn(server.port, {
      user: 'postgres',
      databases: { persistence: 'orders', visibility: 'orders_visibility' },
      schema: { persistence: '0.9', visibility: '0.10' },
      ...over,
    });

  beforeAll(async () => {
    server = await startPostgres({
      initdb: ['--data-checksums'],
      settings: ['fsync=on', 'archive_mode=on', 'archive_command=test -f %p', 'archive_timeout=60'],
    });
    await addSchema(server);
  });
  afterAll(() => server?.stop());

  test('every check holds, and every gauge is there', async () => {
    const finding = await checkStore(store());
    expect(finding.reason).toBeUndefined();
    const holds = [
      ...[
        'schema',
        'connections',
        'identity',
        'timeline',
        'uptime',
        'archive_mode',
        'archive_timeout',
        'archiver',
      ],
      ...['wal_backlog', 'wal_level', 'slots', 'data_checksums', 'checksum_failures', 'durable_settings'],
      ...['wraparound', 'free_space', 'open_transactions', 'lock_waits'],
    ];
    expect(checkGauges(finding)).toEqual(Object.fromEntries(holds.map((check) => [check, 1])));
    expect(gauge(finding, 'svc_store_schema_version_info', { version: '0.10' })).toBe(1);
    expect(gauge(finding, 'svc_store_schema_compatible')).toBe(1);
    expect(gauge(finding, 'svc_store_read_only')).toBe(0);
    const { rows } = await server.query("SELECT current_setting('max_connections')::int AS most");
    expect(gauge(finding, 'svc_store_connections_max')).toBe(rows[0].most - 3);
    expect(gauge(finding, 'svc_store_connections', { state: 'active' })).toBe(1);
    expect(gauge(finding, 'svc_store_wal_oldest_unarchived_timestamp_seconds')).toBeUndefined();
    expect(finding.totals).toMatchObject([{ name: 'svc_store_wal_archive_failures_total', value: 0 }]);
    expect(finding.gauges!.every(({ labels }) => labels.database === 'persistence')).toBe(true);
  });

  test('what it says of itself is what the server’s own programs say', async () => {
    const { details, remember } = await checkStore(store());
    const control = postgresProgram('pg_controldata', ['-D', server.data]);
    const field = (name: string) => new RegExp(`^${name}: +(.*)$`, 'm').exec(control)?.[1];
    expect(details).toMatchObject({
      identity: field('Database system identifier'),
      timeline: Number(field("Latest checkpoint's TimeLineID")),
      replica: false,
    });
    const { rows } = await server.query('SELECT version() AS version, pg_postmaster_start_time() AS started');
    expect(rows[0].version).toContain(String(details!.server).split(' (')[0]);
    const { startedAtMs } = remember as { startedAtMs: number };
    expect(Math.abs(startedAtMs - rows[0].started.getTime())).toBeLessThan(2);
  });

  test('no connection stays behind', async () => {
    await checkStore(store());
    await pollUntil(
      async () =>
        (await server.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'svc-agent'")).rows,
      (rows) => rows.length === 0,
    );
  });

  test('all statements of a poll reach the server at once', async () => {
    const sent: string[] = [];
    const port = await servingBare((client) => {
      const inner = connect(server.port, '127.0.0.1').on('error', () => client.destroy());
      client.on('data', (bytes) => sent.push(bytes.toString('latin1'))).pipe(inner);
      inner.pipe(client);
    });
    await checkStore(store({ address: `127.0.0.1:${port}` }));
    const [login, statements, end] = sent;
    expect(login).toContain('application_name');
    expect(statements).toMatch(/BEGIN READ ONLY.*pg_stat_activity.*COMMIT/s);
    // The message that ends a session (Terminate) has the letter X and its own length.
    expect([end, sent.length]).toEqual(['X\0\0\0\x04', 3]);
  });

  test('a schema that is older than expected: 0.9 is older than 0.10', async () => {
    const finding = await checkStore(store({ databases: { visibility: 'orders_visibility' } }));
    expect(gauge(finding, 'svc_store_schema_compatible')).toBe(0);
    expect(checkGauges(finding).schema).toBe(0);
    expect(finding.reason).toBeUndefined();
  });

  test.each([
    ['another query', { query: "SELECT '7.1' WHERE {database} = 'orders'" }, '7.1', undefined],
    ['nothing is quoted twice', { query: 'SELECT length({database})' }, '6', undefined],
    ['no such column', { query: 'SELECT version FROM schema_version' }, null, '42703'],
    ['two statements', { query: 'COMMIT; DROP TABLE schema_version' }, null, '42601'],
    ['a write', { query: "UPDATE schema_version SET curr_version = '9' RETURNING '9'" }, null, '25006'],
  ])('schema query: %s', async (_, schema, version, why) => {
    const finding = await checkStore(store({ schema: { ...schema, persistence: '0.1' } }));
    expect(finding.reason).toBeUndefined();
    expect(finding.details!.schema).toBe(version);
    if (why !== undefined) expect(finding.details!.schemaUnknown).toContain(why);
    expect(gauge(finding, 'svc_store_schema_compatible')).toBe(version === null ? undefined : 1);
    expect((await checkStore(store())).details!.schema).toBe('0.10');
  });

  test.each([
    ['no row', { query: 'SELECT 1 WHERE false' }, 'orders', 'the schema query gives no row'],
    ['no row for this database', {}, 'postgres', 'schema_version has no row for postgres'],
    ['no table', {}, 'template1', 'template1 has no tables'],
  ])(
    'a schema that is missing is a finding, also where none is expected: %s',
    async (_, schema, name, why) => {
      if (name === 'postgres')
        await server.query('CREATE TABLE schema_version (db_name text, curr_version text)');
      const finding = await checkStore(store({ databases: { persistence: name }, schema }));
      expect(finding.reason).toBeUndefined();
      expect(finding.details!.schemaMissing).toBe(why);
      expect(finding.failedChecks).toContain('schema');
      expect(gauge(finding, 'svc_store_schema_compatible')).toBe(0);
      if (name === 'postgres') await server.query('DROP TABLE schema_version');
    },
  );

  test.each(['', 'true', '/bin/true', ':', '/usr/bin/true %p', 'exit 0', 'cd .'])(
    'a command that archives nothing: "%s"',
    async (command) => {
      server.configure([`archive_command=${command}`]);
      await pollUntil(
        () => checkStore(store()),
        (finding) => checkGauges(finding).archive_mode === 0,
      );
      server.configure(['archive_command=true && test -f %p']);
      await pollUntil(
        () => checkStore(store()),
        (finding) => checkGauges(finding).archive_mode === 1,
      );
    },
  );

  test('commits that do not wait for the disk, by what is set for another role', async () => {
    const durable = async () => checkGauges(await checkStore(store())).durable_settings;
    await server.query('CREATE ROLE svc; ALTER ROLE svc IN DATABASE template1 SET synchronous_commit = off');
    // This is neither of the store's databases.
    expect(await durable()).toBe(1);
    await server.query('ALTER ROLE svc SET synchronous_commit = off');
    const finding = await checkStore(store());
    expect(checkGauges(finding).durable_settings).toBe(0);
    expect(JSON.stringify(finding.details)).toContain('synchronous_commit = off for svc');
    await server.query('ALTER ROLE svc RESET synchronous_commit');
    expect(await durable()).toBe(1);
    await server.query('ALTER DATABASE orders SET synchronous_commit = off');
    expect(await durable()).toBe(0);
    await server.query('ALTER DATABASE orders RESET synchronous_commit');
  });

  test('what is set for the agent’s own role is not taken for the server', async () => {
    const durable = async (changes = {}) => checksOf(await checkStore(store(changes))).durable_settings;
    await server.query('ALTER ROLE postgres SET synchronous_commit = off');
    expect(await durable()).toBe('unknown');
    // With the service's own credentials the role is the service's.
    expect(await durable({ credentials: 'service' })).toBe(false);
    await server.query('ALTER ROLE postgres SET synchronous_commit = on');
    server.configure(['synchronous_commit=off']);
    expect(await durable()).toBe('unknown');
    await server.query('ALTER ROLE postgres RESET synchronous_commit');
    await pollUntil(durable, (holds) => holds === false);
    server.configure(['synchronous_commit=on']);
    await pollUntil(durable, (holds) => holds === true);
  });

  test('the command of a schema tool is asked in place of the table', async () => {
    const print = "console.log('Version of', process.argv[1], 'at', process.argv[2], 'is 0.8')";
    const command = [process.execPath, '-e', print, '{keyspace}', '{endpoint}'];
    const finding = await checkStore(store({ schema: { command, persistence: '0.8' } }));
    expect(finding.details!.schema).toBe('0.8');
    expect(gauge(finding, 'svc_store_schema_compatible')).toBe(1);
  });

  test('a restart is noticed once, also by an agent that was away; the data stay the same', async () => {
    const first = await checkStore(store());
    await server.restart();
    const { deps, logged, clock } = bench();
    const second = await checkStore(store(), { deps, recalled: JSON.parse(JSON.stringify(first.remember)) });
    expect(checkGauges(second)).toMatchObject({ uptime: 0, identity: 1, timeline: 1 });
    clock.advance(30 * minuteMs);
    const third = await checkStore(store(), { deps, recalled: second.remember });
    expect(checkGauges(third).uptime).toBe(0);
    expect(logged).toHaveLength(1);
    clock.advance(31 * minuteMs);
    expect(checkGauges(await checkStore(store(), { deps, recalled: third.remember })).uptime).toBe(1);
    expect(logged).toHaveLength(1);
  });

  test('transactions that are left open are named: idle ones and prepared ones, but no dump', async () => {
    await server.restart(['max_prepared_transactions=2']);
    await server.query("BEGIN; CREATE TABLE left_over (n int); PREPARE TRANSACTION 'it''s \u0007 mine'");
    await server.query('BEGIN', 'orders');
    await server.query("SET application_name = 'pg_dump'; BEGIN", 'orders_visibility');
    const idle = async () => {
      const { details } = await checkStore(store());
      const checks = details!.checks as { check: string; found: string }[];
      return checks.find(({ check }) => check === 'open_transactions')!.found;
    };
    expect(await idle()).toMatch(
      /^prepared transaction it's mine has been idle for \d+ s, session \d+ of postgres has been idle for \d+ s$/,
    );
    await server.query("ROLLBACK PREPARED 'it''s \u0007 mine'");
    await server.query('ROLLBACK', 'orders');
    await server.query('ROLLBACK', 'orders_visibility');
    expect(await idle()).toBe('no transaction is idle');
  });

  /** A further session in the database `orders`. */
  const session = async () => {
    const own = { host: '127.0.0.1', port: server.port, user: 'postgres', database: 'orders' };
    const client = new pg.Client(own);
    await client.connect();
    return client;
  };

  test('whoever makes others wait for a lock is named, but not who only waits in the same queue', async () => {
    const locks = async () => {
      const { details } = await checkStore(store());
      const checks = details!.checks as { check: string; found: string; holds: unknown }[];
      const { holds, found } = checks.find(({ check }) => check === 'lock_waits')!;
      return { holds, found };
    };
    await server.query('CREATE TABLE locked (n int)', 'orders');
    expect(await locks()).toEqual({ holds: true, found: 'no session blocks others' });
    const others = await Promise.all([1, 2, 3, 4].map(session));
    try {
      const [holder, first, second, third] = others as [pg.Client, pg.Client, pg.Client, pg.Client];
      await holder.query('BEGIN; LOCK TABLE locked IN SHARE MODE');
      const waits = async (count: number) => {
        const { rows } = await holder.query('SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted');
        return rows[0].n === count;
      };
      const change = first.query('ALTER TABLE locked ADD m int');
      await until('the change of the table waits', () => waits(1));
      const read = second.query('SELECT * FROM locked');
      await until('who reads waits behind it', () => waits(2));
      const more = third.query('INSERT INTO locked VALUES (1)');
      await until('so does who writes', () => waits(3));
      const { rows } = await holder.query('SELECT pg_backend_pid() AS pid');
      const { holds, found } = await locks();
      expect(found).toMatch(
        new RegExp(
          `^3 sessions wait for a lock of session ${rows[0].pid} of postgres, idle in transaction, for \\d+ s$`,
        ),
      );
      expect(holds).toBe(true);
      await holder.query('ROLLBACK');
      await Promise.all([change, read, more]);
      expect((await locks()).found).toBe('no session blocks others');
    } finally {
      for (const client of others) await client.end();
    }
  });

  test('a wait for a lock began when the server says so, not at the poll that sees it first', async () => {
    await server.restart(['max_prepared_transactions=2']);
    await server.query('CREATE TABLE kept (n int)', 'orders');
    await server.query("BEGIN; LOCK TABLE kept; PREPARE TRANSACTION 'kept'", 'orders');
    const waiter = await session();
    const askedMs = Date.now();
    // The session is busy for a second before it waits.
    const waits = waiter.query('SELECT pg_sleep(1); DROP TABLE kept');
    // The clock of the probe stands still.
    const { clock } = bench();
    const waited = async () => {
      const { details } = await checkStore(store());
      const checks = details!.checks as { check: string; holds: unknown; since?: string }[];
      const failing = checks.find(({ check, holds }) => check === 'lock_waits' && holds === false);
      return failing && { ms: clock.nowMs() - Date.parse(failing.since!), atMs: Date.now() };
    };
    try {
      const first = await until('the session waits', waited);
      expect(first.ms).toBeLessThanOrEqual(first.atMs - askedMs - 1000);
      await until('half a second has passed', () => Date.now() - first.atMs > 500);
      const second = (await waited())!;
      expect(second.ms).toBeGreaterThan(500);
      expect(second.ms).toBeLessThanOrEqual(second.atMs - askedMs - 1000);
    } finally {
      await server.query("ROLLBACK PREPARED 'kept'", 'orders');
      await waits;
      await waiter.end();
    }
  });

  test('free space is that of the file system, as df has it', async () => {
    const { details } = await checkStore(store());
    const checks = details!.checks as { check: string; found: string }[];
    const { found } = checks.find(({ check }) => check === 'free_space')!;
    const [, free, total] = /^data and WAL: ([\d.]+) of ([\d.]+) GiB free$/.exec(found)!;
    const df = execFileSync('df', ['--output=avail,size', '-k', server.data], { encoding: 'utf8' });
    const [available, size] = df.split('\n')[1]!.trim().split(/\s+/).map(Number) as [number, number];
    expect(Math.abs(Number(free) - available / 2 ** 20)).toBeLessThan(1);
    expect(Number(total)).toBeLessThanOrEqual(size / 2 ** 20 + 0.1);
  });

  test('connections near the limit', async () => {
    await server.restart(['max_connections=6', 'superuser_reserved_connections=1', 'max_wal_senders=0']);
    expect(checkGauges(await checkStore(store())).connections).toBe(1);
    for (const database of ['postgres', 'orders', 'orders_visibility', 'template1'])
      await server.query('SELECT 1', database);
    // The server sees an earlier connection for a moment longer than the agent.
    const finding = await pollUntil(
      () => checkStore(store()),
      (finding) => gauge(finding, 'svc_store_connections', { state: 'idle' }) === 4,
    );
    expect(checkGauges(finding).connections).toBe(0);
    expect(gauge(finding, 'svc_store_connections', { state: 'active' })).toBe(1);
    expect(gauge(finding, 'svc_store_connections_max')).toBe(5);
  });

  test('archiving that fails, then a segment that waits', async () => {
    await server.restart(['max_connections=20', 'max_wal_senders=3']);
    server.configure(['archive_command=false', 'archive_timeout=0']);
    await pollUntil(
      () => checkStore(store()),
      (finding) => checkGauges(finding).archive_timeout === 0,
    );
    await server.query('CREATE TABLE written (n int); SELECT pg_switch_wal()');
    const finding = await pollUntil(
      () => checkStore(store()),
      (finding) => checkGauges(finding).archiver === 0 && finding.totals![0]!.value > 0,
    );
    const { rows } = await server.query(
      "SELECT extract(epoch FROM min(modification))::float8 AS oldest FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'",
    );
    expect(gauge(finding, 'svc_store_wal_oldest_unarchived_timestamp_seconds')).toBeCloseTo(
      rows[0].oldest,
      3,
    );
    expect(finding.reason).toBeUndefined();
  });

  test('a segment that has waited for longer than the objective allows', async () => {
    const waiting = join(server.data, 'pg_wal/archive_status');
    for (const name of readdirSync(waiting).filter((file) => file.endsWith('.ready')))
      utimesSync(join(waiting, name), new Date(), new Date(Date.now() - 10 * minuteMs));
    expect(checkGauges(await checkStore(store())).wal_backlog).toBe(0);
  });

  test('an archiver that is repaired is well again, and nothing waits', async () => {
    server.configure(['archive_command=test -f %p']);
    await server.query('SELECT pg_switch_wal()');
    const finding = await pollUntil(
      () => checkStore(store()),
      (finding) => gauge(finding, 'svc_store_wal_oldest_unarchived_timestamp_seconds') === undefined,
    );
    expect(checkGauges(finding)).toMatchObject({ archiver: 1, wal_backlog: 1 });
    expect(finding.totals![0]!.value).toBeGreaterThan(0);
  });

  test('a slot that nobody reads is well until it holds back more than the server keeps anyway', async () => {
    server.configure(['max_wal_size=32MB', 'min_wal_size=32MB']);
    await server.query("SELECT pg_create_physical_replication_slot('forgotten', true)");
    expect(checkGauges(await checkStore(store())).slots).toBe(1);
    for (let segment = 0; segment < 4; segment++)
      await server.query("SELECT pg_logical_emit_message(false, 'x', 'x'); SELECT pg_switch_wal()");
    const finding = await checkStore(store());
    expect(checkGauges(finding).slots).toBe(0);
    expect(JSON.stringify(finding.details)).toMatch(/forgotten is inactive and holds back \d+ MiB/);
    await server.query("SELECT pg_drop_replication_slot('forgotten')");
    expect(checkGauges(await checkStore(store())).slots).toBe(1);
  });

  test('a page that is damaged on the disk', async () => {
    await server.query('CREATE TABLE damaged AS SELECT 1 AS n; CHECKPOINT', 'orders');
    const { rows } = await server.query("SELECT pg_relation_filepath('damaged') AS path", 'orders');
    await server.restart([], () => {
      const file = openSync(join(server.data, rows[0].path), 'r+');
      writeSync(file, Buffer.from('damaged'), 0, 7, 8000);
      closeSync(file);
    });
    await expect(server.query('SELECT * FROM damaged', 'orders')).rejects.toThrow('invalid page');
    const finding = await pollUntil(
      () => checkStore(store()),
      (finding) => checkGauges(finding).checksum_failures === 0,
    );
    expect(finding.reason).toBeUndefined();
  });

  test('of two databases only the one that is told to read only refuses writes, whichever is asked first', async () => {
    await server.query('ALTER DATABASE orders_visibility SET default_transaction_read_only = on');
    const rows = planStores({ stores: [store()] });
    const { deps } = bench();
    const found: unknown[] = [];
    for (const row of [...rows, ...rows.toReversed()]) {
      const probe = await row.open(deps);
      const finding = await probe.check(AbortSignal.timeout(20_000), undefined);
      found.push([row.name, gauge(finding, 'svc_store_read_only')]);
      await probe.close?.();
    }
    await server.query('ALTER DATABASE orders_visibility RESET default_transaction_read_only');
    const [persistence, visibility] = [
      ['store/main/persistence', 0],
      ['store/main/visibility', 1],
    ];
    expect(found).toEqual([persistence, visibility, visibility, persistence]);
  });
});

describe.skipIf(!hasPostgres)('PostgreSQL as it should not be', () => {
  let server: Postgres;
  beforeAll(async () => {
    server = await startPostgres({
      settings: [
        'wal_level=minimal',
        'max_wal_senders=0',
        'default_transaction_read_only=on',
        'full_page_writes=off',
      ],
    });
  });
  afterAll(() => server?.stop());

  test('no archive, no checksums, nothing durable, refusing writes', async () => {
    const finding = await checkStore(storeOn(server.port, { user: 'postgres' }));
    expect(finding.reason).toBeUndefined();
    expect(checkGauges(finding)).toMatchObject({
      ...{ schema: 0, archive_mode: 0, wal_level: 0, data_checksums: 0, durable_settings: 0 },
      ...{ slots: 1, connections: 1, wraparound: 1 },
    });
    expect(checksOf(finding)).toMatchObject({ checksum_failures: 'unknown' });
    expect(checkGauges(finding)).not.toHaveProperty('archiver');
    // One cause results in one finding.
    expect(checkGauges(finding)).not.toHaveProperty('archive_timeout');
    expect(checkGauges(finding)).not.toHaveProperty('checksum_failures');
    expect(gauge(finding, 'svc_store_read_only')).toBe(1);
    expect(finding.details!.schemaMissing).toBe('postgres has no tables');
    // Advice is not counted.
    expect(finding.failedChecks).toEqual(['schema', 'archive_mode', 'wal_level', 'durable_settings']);
    const [first] = finding.details!.checks as { why: string; set: string; restart: string }[];
    expect([first!.why, first!.set, first!.restart].every((text) => text.length > 5)).toBe(true);
  });

  test('a role that is itself told to read only does not make the server read-only', async () => {
    await server.query('SET transaction_read_only = off; CREATE ROLE reader LOGIN');
    await server.query('BEGIN READ WRITE; ALTER ROLE reader SET default_transaction_read_only = on; COMMIT');
    const runCheck = () => checkStore(storeOn(server.port, { user: 'reader' }));
    expect(gauge(await runCheck(), 'svc_store_read_only')).toBe(0);
    await server.restart(['default_transaction_read_only=off']);
    expect(gauge(await runCheck(), 'svc_store_read_only')).toBe(0);
    expect(gauge(await checkStore(storeOn(server.port, { user: 'postgres' })), 'svc_store_read_only')).toBe(
      0,
    );
  });
});
