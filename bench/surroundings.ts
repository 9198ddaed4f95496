/** Creates the surroundings of an agent with every feature on, for the benches. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parse } from 'yaml';
import { demoConfig, type ServiceAddresses } from '../src/agent/cli/demo/config.ts';
import { hasPostgres, startPostgres } from '../test/postgres.ts';
import { launch, serve } from './process.ts';

export interface Surroundings {
  /** Path of the agent's configuration. */
  config: string;
  /** URLs of the roles' pages. */
  pages: readonly string[];
  /** The address of the store or its substitute. */
  store: string;
  /** host:port of PostgreSQL, if it is installed. */
  postgres: string | undefined;
  /** URLs of the roles' health endpoints. */
  health: readonly string[];
  close(): Promise<void>;
}

/** A role's page, with so few series per family that no limit applies. */
function page(role: string, seriesCount: number): Buffer {
  const lines: string[] = [];
  for (let n = 0; n < seriesCount; n++) {
    const family = `svc_persistence_requests_${n % 10}`;
    if (n < 10) lines.push(`# TYPE ${family} counter`);
    lines.push(
      `${family}{svc_service="${role}",operation="Operation${n % 40}",domain="domain-${n}"} ${n * 7}`,
    );
  }
  return Buffer.from(`${lines.join('\n')}\n`);
}

async function servePages(roles: readonly string[], seriesCount: number): Promise<(role: string) => string> {
  const pages = new Map(roles.map((role) => [`/${role}`, page(role, Math.ceil(seriesCount / roles.length))]));
  const port = await serve(({ url }, response) => {
    const body = pages.get(url ?? '');
    response.writeHead(body ? 200 : 404, { 'content-type': 'text/plain; version=0.0.4' }).end(body);
  });
  return (role) => `http://127.0.0.1:${port}/${role}`;
}

/** The example service without its own activity: nothing is logged, nothing goes wrong. */
async function startService(dist: string, directory: string, hasStore: boolean): Promise<ServiceAddresses> {
  const ports = ['health', 'metrics', 'control', 'rpc', 'store'].flatMap((what) => [`--${what}-port`, '0']);
  const quiet = ['--rate', '1', '--incident-every', '0s', ...(hasStore ? [] : ['--no-store'])];
  const program = join(dist, 'example-service.js');
  const child = launch(process.execPath, [program, '--directory', directory, ...ports, ...quiet], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the example service ended with ${code}`)));
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (line.startsWith('{"ready":true')) resolve(JSON.parse(line));
    });
  });
}

/**
 * Starts four roles with logs, health and scrape, statsd on one of them, a SQL store (PostgreSQL if it is installed, otherwise
 * the store of the example service), a peer cluster, a domain command and a file archive. `logOf` names each role's log.
 */
export async function surround(
  place: string,
  { root, logOf, seriesCount }: { root: string; logOf(role: string): string; seriesCount: number },
): Promise<Surroundings> {
  const dist = join(root, 'dist');
  const directory = join(place, 'service');
  mkdirSync(directory);
  const postgres = hasPostgres ? await startPostgres() : undefined;
  const addresses = await startService(dist, directory, !hasPostgres);
  const roles = Object.keys(addresses.roles);
  const pageOf = await servePages(roles, seriesCount);
  const describe = [process.execPath, join(dist, 'example-cli.js'), 'domain', 'describe'];
  const asked = ['--address', '{address}', '--domain', '{domain}', '--print_json'];
  const demo = parse(demoConfig(addresses, [...describe, ...asked], { metrics: 0, admin: 0 }));
  for (const role of roles) {
    const { health } = addresses.roles[role]!;
    demo.services[role] = {
      logs: { paths: [logOf(role)], startAt: 'beginning' },
      health: { url: health },
      scrape: { url: pageOf(role) },
    };
  }
  demo.services[roles[0]!].statsd = '127.0.0.1:0';
  demo.stateDirectory = join(place, 'state-all');
  demo.domains.describe.interval = '60s';
  if (postgres) {
    const address = `127.0.0.1:${postgres.port}`;
    const databases = { persistence: 'postgres', visibility: 'postgres' };
    demo.stores = [{ name: 'main', kind: 'postgres', address, user: 'postgres', databases }];
  }
  const config = join(place, 'all.yaml');
  // JSON is YAML.
  writeFileSync(config, JSON.stringify(demo));
  return {
    config,
    pages: roles.map(pageOf),
    postgres: postgres && `127.0.0.1:${postgres.port}`,
    health: roles.map((role) => addresses.roles[role]!.health),
    store: postgres ? 'PostgreSQL' : 'the example’s store',
    close: async () => postgres?.stop(),
  };
}
