import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type DemoPorts, usualPorts } from '../../../src/agent/cli/demo/config.ts';
import { createStage, type Stage } from '../../../src/agent/cli/demo/stage.ts';
import { newFolder } from '../../folder.ts';
import { listening } from '../../ports.ts';
import { until } from '../../until.ts';

/** An agent that listens where its configuration says and is ready at the second request. */
const standIn = `
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
const [command, option, file] = process.argv.slice(2);
if (command !== 'run' || option !== '-c') throw new Error('not what was agreed: ' + process.argv);
const [, port] = /pullmetrics:\\s+listenAddress: .*:(\\d+)/.exec(readFileSync(file, 'utf8'));
let asked = 0;
createServer((request, response) => {
  response.statusCode = request.url === '/ready' && ++asked > 1 ? 200 : 503;
  response.end();
}).listen(Number(port), '127.0.0.1');
`;

let directory: string;
let stage: Stage | undefined;
let heard: string[] = [];
const anyPorts = Object.fromEntries(Object.keys(usualPorts).map((key) => [key, 0])) as unknown as DemoPorts;
const open = (program: string, ports: Partial<DemoPorts> = {}) => {
  const main = join(directory, 'main.mjs');
  writeFileSync(main, program);
  heard = [];
  stage = createStage(stageOptions(main, ports));
  return stage;
};
const stageOptions = (main: string, ports: Partial<DemoPorts>) => ({
  main,
  wantedPorts: { ...anyPorts, ...ports },
  path: undefined,
  untilWell: false,
  print: (line: string) => heard.push(line),
});

beforeAll(async () => {
  directory = newFolder(afterAll);
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  await build({
    entryPoints: [fileURLToPath(new URL('../../../examples/service/main.ts', import.meta.url))],
    outfile: join(directory, 'example-service.js'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    external: ['@electric-sql/*'],
  });
});
afterEach(() => stage?.clear());

const alive = (pid: number | undefined) => {
  try {
    return process.kill(pid as number, 0);
  } catch {
    return false;
  }
};

describe('the demo’s stage', () => {
  it('sets up both programs, waits until the agent is ready, and clears everything away', async () => {
    const { set, clear } = open(standIn);
    const addresses = await set();
    expect((await fetch(addresses.metrics.replace('/metrics', '/ready'))).status).toBe(200);
    expect(alive(addresses.pids.agent) && alive(addresses.pids.service)).toBe(true);
    await clear();
    expect(alive(addresses.pids.agent) || alive(addresses.pids.service)).toBe(false);
    expect(existsSync(addresses.directory)).toBe(false);
  });

  it('gives the agent a configuration that leads to the service’s logs', async () => {
    const { directory: place, metrics, admin } = await open(standIn).set();
    const config = parse(readFileSync(join(place, 'agent.yaml'), 'utf8'));
    expect(config.roles).toEqual(['frontend', 'history', 'matching', 'worker']);
    expect(config.metrics.pullmetrics.listenAddress).toBe(new URL(metrics).host);
    expect(config.admin.listenAddress).toBe(new URL(admin).host);
    for (const role of config.roles) {
      const [pattern] = config.services[role].logs.paths;
      expect(pattern).toBe(join(place, `${role}.log*`));
      expect(existsSync(pattern.slice(0, -1))).toBe(true);
    }
    const server = parse(readFileSync(join(place, 'prometheus.yml'), 'utf8'));
    expect(server.scrape_configs[0].static_configs[0].targets).toEqual([new URL(metrics).host]);
  });

  it('gives the agent everything else to check, with the client beside it as the command', async () => {
    const { config: file, directory: place } = await open(standIn).set();
    const config = parse(readFileSync(file, 'utf8'));
    for (const role of config.roles) {
      const { url } = config.services[role].health;
      expect(await (await fetch(url)).json()).toMatchObject({ ok: expect.any(Boolean) });
    }
    expect(config.domains).toMatchObject({ watch: ['orders', 'payments'] });
    const [node, client, ...words] = config.domains.describe.command;
    expect([node, client]).toEqual([process.execPath, join(directory, 'example-cli.js')]);
    expect(words.join(' ')).toBe('domain describe --address {address} --domain {domain} --print_json');
    const { dc1, dc2 } = config.clusterGroupMetadata.clusterGroup;
    expect(dc1.rpcAddress).not.toBe(dc2.rpcAddress);
    const uri = config.domainDefaults.archival.history.URI;
    expect(fileURLToPath(uri)).toBe(`${realpathSync(place)}/archive/history/`);
    expect(existsSync(fileURLToPath(uri))).toBe(true);
  });

  it('goes on without a store where PGlite is not installed', async () => {
    const { config, kinds } = await open(standIn).set();
    await until('it is said', () => heard.includes('without a store: @electric-sql/pglite is not installed'));
    expect(parse(readFileSync(config, 'utf8')).stores).toEqual([]);
    expect(kinds).not.toContain('store-down');
    expect(kinds).toContain('failover');
  });

  it('hands on what a person types, and what the service says to it', async () => {
    const { set, send } = open(standIn);
    await set();
    send('backlog order-mail');
    await until('it is said', () => heard.includes('incident: backlog order-mail'));
    send('end');
    await until('it is said', () => heard.includes('incident over: backlog order-mail'));
    send('flood');
    const refused = () => heard.find((line) => line.includes('flood'));
    expect(await until('it is said', refused)).toMatch(/^no such incident: flood/);
  });

  it('says which program ended by itself, and its last lines', async () => {
    const { set, broken } = open("console.error('first');console.error('no such port');process.exit(3)");
    await expect(Promise.race([set(), broken])).resolves.toBe(
      'svc-agent demo: the agent ended by itself (exit status 3); its last lines:\n  first\n  no such port\n',
    );
  });

  it('notices the end of the service, too', async () => {
    const { set, broken } = open(standIn);
    const { pids } = await set();
    process.kill(pids.service as number, 'SIGKILL');
    expect(await broken).toContain('the example service ended by itself (signal SIGKILL)');
  });

  it('kills an agent that does not end', async () => {
    const { set, clear } = open(`process.on('SIGTERM', () => {});${standIn}`);
    const { pids } = await set();
    await clear();
    expect(alive(pids.agent)).toBe(false);
  });

  it('can be cleared before it is set', async () => {
    const { set, clear } = open(standIn);
    const setting = set().catch((thrown: Error) => thrown.name);
    await clear();
    expect(await Promise.race([setting, stage?.broken])).toBe('AbortError');
  });
});

it('takes other ports if the wanted ones are in use', async () => {
  const { port, close } = await listening(createServer());
  const { metrics, admin } = await open(standIn, { metrics: port, admin: port }).set();
  expect(new URL(metrics).port).not.toBe(String(port));
  expect(new URL(admin).port).not.toBe(String(port));
  expect(heard).toEqual(
    expect.arrayContaining([
      `port ${port} is taken; another port is used for the agent’s metrics`,
      `port ${port} is taken; another port is used for the status page`,
    ]),
  );
  await close();
});

it('gives two demos that start at the same moment ports of their own', async () => {
  const reserved = await Promise.all([listening(createServer()), listening(createServer())]);
  for (const { close } of reserved) await close();
  const ports = { metrics: reserved[0].port, control: reserved[1].port };
  const first = open(standIn, ports);
  const second = createStage(stageOptions(join(directory, 'main.mjs'), ports));
  try {
    const both = await Promise.all([first.set(), second.set()]);
    for (const part of ['metrics', 'incident'] as const)
      expect(new Set(both.map((addresses) => new URL(addresses[part]).port)).size, part).toBe(2);
    expect(both.map(({ pids }) => alive(pids.agent) && alive(pids.service))).toEqual([true, true]);
    expect(heard).toContain('another demo is starting; this one starts after it');
  } finally {
    await second.clear();
  }
});
