import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'cassandra-driver';
import { type Running, start } from './e2e/process.ts';
import { freePort } from './ports.ts';
import { folder } from './run-folder.ts';
import { until } from './until.ts';

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/cassandra/${name}`, import.meta.url));
const jars = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'svc-agent', 'cassandra');

/** Java 17, the newest version on which Apache Cassandra 5 runs: Debian's, or else the one on the path. */
function findJava(): string | undefined {
  const vms = '/usr/lib/jvm';
  const debian = existsSync(vms) ? readdirSync(vms).filter((name) => /^java-17-openjdk-/.test(name)) : [];
  return [...debian.map((name) => join(vms, name, 'bin', 'java')), 'java'].find((java) =>
    spawnSync(java, ['-version'], { encoding: 'utf8' }).stderr?.includes('version "17.'),
  );
}

/** Whether exactly the jars that the project's pom names are there; `.ci/cassandra` fetches them. */
function jarsAreThere(): boolean {
  const pom = join(jars, 'pom.xml');
  return existsSync(pom) && readFileSync(pom).equals(readFileSync(fixture('pom.xml')));
}

const java = jarsAreThere() ? findJava() : undefined;
export const hasCassandra = java !== undefined;

/** The first user of a server that requires passwords. */
export const superuser = { username: 'cassandra', password: 'cassandra' };

export interface Cassandra extends Running {
  /** The loopback address, and the port for clients. */
  readonly host: string;
  readonly port: number;
  /** The port on which the nodes of the cluster communicate. */
  readonly storagePort: number;
  /** The directory of the keyspaces. */
  readonly data: string;
  /** The program and arguments that run nodetool against this node. */
  nodetool(...args: string[]): string[];
  /** Runs statements in their order, as the superuser if there are users. */
  run(...statements: string[]): Promise<void>;
  /** The rows of a statement, by column. */
  rows(statement: string): Promise<readonly Record<string, unknown>[]>;
  /** Ends the server and removes its folder. */
  remove(): Promise<void>;
}

interface CassandraOptions {
  /** Whether the server requires users, passwords and grants. */
  authenticates?: boolean;
  /** Further lines of cassandra.yaml. */
  settings?: string;
  /** A node whose cluster this one joins, at another address and with the same ports. */
  joins?: { of: Pick<Cassandra, 'host' | 'port' | 'storagePort'>; host: string };
}

const authentication = `
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
permissions_validity: 0ms
roles_validity: 0ms
credentials_validity: 0ms
`;

const attempts = 3;

/** Starts a real Apache Cassandra 5 with one node on loopback; resolves when it accepts statements. */
export async function startCassandra(options: CassandraOptions = {}): Promise<Cassandra> {
  for (let attempt = 1; ; attempt++) {
    const server = await launch(options);
    try {
      const ready = until('Cassandra takes statements', () => server.run().then(() => true), {
        everyMs: 200,
      });
      await Promise.race([ready, server.failed]);
      return server;
    } catch (error) {
      await server.remove();
      // Another program may bind a free port before the server does.
      if (attempt === attempts || !/address already in use|BindException/i.test(server.output())) throw error;
    }
  }
}

async function launch(options: CassandraOptions): Promise<Cassandra & { failed: Promise<never> }> {
  const { path: directory } = folder();
  const { of: seed, host = '127.0.0.1' } = options.joins ?? {};
  const port = seed?.port ?? (await freePort());
  const storagePort = seed?.storagePort ?? (await freePort());
  const jmxPort = await freePort();
  const places = { directory, host, port, storagePort, seed: seed?.host ?? host };
  const args = [`-Dcassandra.jmx.local.port=${jmxPort}`, ...argumentsOf(places, options)];
  const running = start(java!, args, {}, directory);
  const failed = running.ended.then((status): never => {
    throw new Error(`Cassandra ended with ${status}: ${running.output()}`);
  });
  failed.catch(() => {});
  const connected = async <T>(use: (client: Client) => Promise<T>): Promise<T> => {
    const client = new Client({
      contactPoints: [`${host}:${port}`],
      localDataCenter: 'datacenter1',
      ...(options.authenticates && { credentials: superuser }),
    });
    try {
      await client.connect();
      return await use(client);
    } finally {
      await client.shutdown();
    }
  };
  return {
    ...running,
    ...{ host, port, storagePort },
    data: join(directory, 'data'),
    nodetool: (...args) => [
      ...[java!, `@${fixture('jvm.options')}`, `-Djava.io.tmpdir=${directory}`],
      ...[`-Dlogback.configurationFile=${fixture('logback.xml')}`, `-Duser.home=${directory}`],
      ...['-cp', join(jars, '*'), 'org.apache.cassandra.tools.NodeTool'],
      ...['-h', '127.0.0.1', '-p', String(jmxPort), ...args],
    ],
    failed,
    run: (...statements) =>
      connected(async (client) => {
        for (const statement of statements) await client.execute(statement);
      }),
    rows: (statement) =>
      connected(async (client) => {
        const { rows } = await client.execute(statement);
        return rows.map((row) => Object.fromEntries(row.keys().map((key) => [key, row.get(key)])));
      }),
    async remove() {
      await running.end('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Writes the server's configuration into its folder. */
function argumentsOf(
  places: { directory: string; host: string; port: number; storagePort: number; seed: string },
  options: CassandraOptions,
): string[] {
  const { directory } = places;
  const template = readFileSync(fixture('cassandra.yaml'), 'utf8');
  const yaml = template.replace(
    /\{(directory|host|port|storagePort|seed)\}/g,
    (_, name: keyof typeof places) => String(places[name]),
  );
  const config = join(directory, 'cassandra.yaml');
  writeFileSync(config, yaml + (options.authenticates ? authentication : '') + (options.settings ?? ''));
  return [
    `@${fixture('jvm.options')}`,
    // This limits how long a node waits for an answer of the others.
    ...(options.joins ? ['-Dcassandra.ring_delay_ms=20000'] : []),
    `-Dcassandra.config=file:${config}`,
    `-Dcassandra.storagedir=${directory}`,
    `-Dlogback.configurationFile=${fixture('logback.xml')}`,
    `-Djava.io.tmpdir=${directory}`,
    '-cp',
    join(jars, '*'),
    'org.apache.cassandra.service.CassandraDaemon',
  ];
}
