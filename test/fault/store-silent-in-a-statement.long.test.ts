import { readdirSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createOpened, type OpenedProbe } from '../../src/probes/runner/probe-run.ts';
import type { StoreOptions } from '../../src/probes/stores/store-options.ts';
import { planStores } from '../../src/probes/stores/stores.ts';
import { hasCassandra, startCassandra } from '../cassandra.ts';
import { hasMariadb, schemaStatements, startMariadb, usersStatements } from '../mariadb.ts';
import { listening } from '../ports.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { bench, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

// A store answers the login, and stops in the middle of the answers to the questions.

/** Matches the text of a statement that each poll of a kind sends; its answer is cut off. */
const question = /BEGIN READ ONLY|SHOW GLOBAL|information_schema|system\.local/;

/** A proxy in front of a server. While `isSilent`, an answer stops after its first bytes and the connection stays open. */
async function silentProxy(port: number) {
  const clients = new Set<Socket>();
  const proxy = { port: 0, isSilent: false, cut: 0, clients };
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    let isCut = false;
    clients.add(client);
    client
      .on('error', () => {})
      .on('close', () => {
        clients.delete(client);
        upstream.destroy();
      });
    upstream.on('error', () => {}).on('close', () => client.destroy());
    let isAsked = false;
    client.on('data', (chunk) => {
      isAsked ||= proxy.isSilent && question.test(chunk.toString('latin1'));
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (isCut) return;
      if (!isAsked) return void client.write(chunk);
      isCut = true;
      proxy.cut += 1;
      client.write(chunk.subarray(0, 3));
    });
  });
  proxy.port = (await listening(server)).port;
  after.push(async () => {
    for (const client of clients) client.destroy();
    server.close();
  });
  return proxy;
}

const after: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const undo of after.splice(0).reverse()) await undo();
});

/** The probes of a store as the runner runs them. */
function probesOf(port: number, options: Partial<StoreOptions>): OpenedProbe[] {
  const store = storeOn(port, { timeoutMs: 4_000, ...options });
  const deps = { ...bench().deps, clock: systemClock };
  const opened = planStores({ stores: [store] }).map((row) => createOpened(row, deps));
  after.push(() => Promise.all(opened.map((one) => one.close())));
  return opened;
}

async function runCheck(probe: OpenedProbe) {
  const attempt = probe.run(undefined);
  const outcome = await attempt.outcome;
  // Nothing of the check continues after its result.
  await attempt.settled;
  return outcome!.finding;
}

/** Set SILENT_ROUNDS=50 by hand to see whether anything grows. */
const rounds = Number(process.env.SILENT_ROUNDS ?? 3);
const limitMs = 300_000 + rounds * 20_000;

setFlagsFromString('--expose_gc');
const collect = runInNewContext('gc') as () => void;

/** The resources of the process between two rounds, after a garbage collection. */
async function held(sessions: () => Promise<number>) {
  const count = await sessions();
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  const descriptors = readdirSync('/proc/self/fd').length;
  return { heapBytes: heapUsed + external, residentBytes: rss, descriptors, sessions: count };
}
type Held = Awaited<ReturnType<typeof held>>;

const middle = (samples: readonly Held[], of: keyof Held): number =>
  samples.map((sample) => sample[of]).sort((one, other) => one - other)[samples.length >> 1]!;

/** Checks that nothing grows from the first rounds to the last ones; too few rounds show nothing. */
function expectNoGrowth(samples: readonly Held[]): void {
  if (samples.length < 30) return;
  const [first, last] = [samples.slice(0, 10), samples.slice(-10)];
  const shown = (['heapBytes', 'residentBytes', 'descriptors', 'sessions'] as const).map(
    (of) => `${of} ${middle(first, of)} -> ${middle(last, of)}`,
  );
  process.stderr.write(`${samples.length} rounds: ${shown.join(', ')}\n`);
  expect(middle(last, 'descriptors')).toBeLessThanOrEqual(middle(first, 'descriptors'));
  expect(middle(last, 'sessions')).toBeLessThanOrEqual(middle(first, 'sessions'));
  // The limit is a leak of 20 kB for each check; the samples themselves and the test runner's records are far below it.
  expect(middle(last, 'heapBytes') - middle(first, 'heapBytes')).toBeLessThan(
    2 * 20_000 * (samples.length - 10),
  );
}

/** Keeps the store silent for some checks of each database; `sessions` counts the agent's sessions on the server. */
async function silence(
  proxy: Awaited<ReturnType<typeof silentProxy>>,
  probes: readonly OpenedProbe[],
  sessions: () => Promise<number>,
): Promise<void> {
  for (const probe of probes) expect((await runCheck(probe)).reason).toBeUndefined();
  const handles = process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length;
  const samples: Held[] = [];
  proxy.isSilent = true;
  for (let round = 0; round < rounds; round++) {
    for (const probe of probes) {
      expect((await runCheck(probe)).reason).toBe('too_slow');
      expect(await pollUntil(sessions, (count) => count === 0)).toBe(0);
    }
    samples.push(await held(sessions));
  }
  expectNoGrowth(samples);
  // Each check was cut off in the middle of an answer.
  expect(proxy.cut).toBeGreaterThanOrEqual(rounds * probes.length);
  await pollUntil(
    async () => proxy.clients.size,
    (count) => count === 0,
  );
  expect(process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap')).toHaveLength(handles);
  proxy.isSilent = false;
  for (const probe of probes) expect((await runCheck(probe)).reason).toBeUndefined();
  expect(await pollUntil(sessions, (count) => count === 0)).toBe(0);
}

describe('a store that is silent in the midst of its answers ends each check in time and keeps nothing open', () => {
  const databases = { persistence: 'svc_main', visibility: 'svc_visibility' };

  test.skipIf(!hasMariadb)(
    'MariaDB',
    async () => {
      const server = await startMariadb();
      after.push(() => server.stop());
      for (const name of Object.values(databases)) await server.sql(schemaStatements(name));
      await server.sql(usersStatements);
      await server.sql("GRANT ALL ON svc_visibility.* TO full@'%'");
      const proxy = await silentProxy(server.port);
      const sessions = async () =>
        (await server.sql("SELECT id FROM information_schema.PROCESSLIST WHERE user = 'full'")).length;
      const login = { kind: 'mysql', user: 'full', password: 'swordfish' } as const;
      await silence(proxy, probesOf(proxy.port, { ...login, databases }), sessions);
    },
    limitMs,
  );

  test.skipIf(!hasPostgres)(
    'PostgreSQL',
    async () => {
      const server = await startPostgres();
      after.push(() => server.stop());
      for (const name of Object.values(databases)) await server.query(`CREATE DATABASE ${name}`);
      const proxy = await silentProxy(server.port);
      const sessions = async () =>
        (await server.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'svc-agent'")).rows
          .length;
      await silence(proxy, probesOf(proxy.port, { user: 'postgres', databases }), sessions);
    },
    limitMs,
  );

  test.skipIf(!hasCassandra)(
    'Cassandra',
    async () => {
      const server = await startCassandra();
      after.push(() => server.remove());
      await server.run(
        ...Object.values(databases).map(
          (name) =>
            `CREATE KEYSPACE ${name} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
        ),
      );
      const proxy = await silentProxy(server.port);
      // The sessions on the server are the proxy's connections to it.
      const sessions = async () => proxy.clients.size;
      await silence(proxy, probesOf(proxy.port, { kind: 'widecolumn', databases }), sessions);
    },
    limitMs,
  );
});
