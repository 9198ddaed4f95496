import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { connectionTo, hasPostgres, type Postgres, postgresProgram, startPostgres } from '../postgres.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { writeAgentFile } from './agent-file.ts';
import { command, type RunningAgent, startAgent } from './process.ts';

/** A role's health endpoint with given answers, which can be down. */
async function role() {
  const port = await freePort();
  const it = { answer: { ok: true, msg: 'OK' }, url: `http://127.0.0.1:${port}/health` };
  const server = createServer((_request, response) => response.end(JSON.stringify(it.answer)));
  atTestEnd(() => server.close());
  const come = () => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const go = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  await come();
  return Object.assign(it, { come, go });
}

function agentFile(directory: string, parts: string): string {
  const file = writeAgentFile(directory, parts);
  return file;
}

async function run(file: string): Promise<RunningAgent> {
  const agent = await startAgent(file);
  atTestEnd(() => agent.end());
  return agent;
}

const page = async (agent: RunningAgent) =>
  (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
const shown = async (agent: RunningAgent, series: string) => {
  const line = (await page(agent)).split('\n').find((text) => text.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
};
const untilIs = (agent: RunningAgent, series: string, value: number | undefined) =>
  until(`${series} is ${value}`, async () => (await shown(agent, series)) === value);

const often = 'interval: 200ms, timeout: 200ms';

describe('health', () => {
  const up = 'svc_role_up{svc_service="frontend"}';
  const restarts = 'svc_role_restarts_total{svc_service="frontend"}';

  test('of a role without pages is what ?service= says, and nothing else', async () => {
    const frontend = await role();
    const file = agentFile(
      newFolder(),
      `services: {frontend: {health: {url: '${frontend.url}', ${often}}}}\n`,
    );
    const agent = await run(file);
    const status = async (query: string) =>
      (await fetch(`http://${agent.address('metrics')}/metrics${query}`)).status;
    await untilIs(agent, up, 1);
    // On a busy machine a check may miss its timeout in between.
    await until('the role’s page answers', async () => (await status('?service=frontend')) === 200);
    frontend.answer = { ok: false, msg: 'persistence is down' };
    await untilIs(agent, up, 0);
    await until('the role’s page says so', async () => (await status('?service=frontend')) === 503);
    expect([await status(''), await status('?service=agent')]).toEqual([200, 200]);
    expect(
      await shown(agent, 'svc_role_health_failures_total{reason="persistence",svc_service="frontend"}'),
    ).toBeGreaterThan(0);
    expect((await fetch(`http://${agent.address('admin')}/ready`)).status).toBe(200);
  });

  test('a restart that health and log both see counts once, across the agent’s own end', async () => {
    const directory = newFolder();
    const log = join(directory, 'frontend.log');
    const entry = (msg: string) =>
      writeFileSync(log, `${JSON.stringify({ level: 'info', msg, logger: 'frontend' })}\n`, { flag: 'a' });
    entry('Poll request answered');
    const frontend = await role();
    const file = agentFile(
      directory,
      `services: {frontend: {health: {url: '${frontend.url}', ${often}}, logs: {paths: [${log}], startAt: beginning}}}\n`,
    );
    const first = await run(file);
    await untilIs(first, up, 1);
    await frontend.go();
    await untilIs(first, up, 0);
    entry('service started');
    await untilIs(first, restarts, 1);
    await first.end('SIGKILL');
    await frontend.come();
    const second = await run(file);
    await untilIs(second, up, 1);
    await untilIs(second, 'svc_log_entries_total{level="info",logger="frontend",svc_service="frontend"}', 2);
    expect(await shown(second, restarts)).toBe(1);
  });
});

test('a reload leaves what did not change as it was, counters and all', async () => {
  const directory = newFolder();
  const frontend = await role();
  frontend.answer = { ok: false, msg: 'no' };
  const file = agentFile(directory, `services: {frontend: {health: {url: '${frontend.url}', ${often}}}}\n`);
  const agent = await run(file);
  const failures = 'svc_role_health_failures_total{reason="not_ok",svc_service="frontend"}';
  await until('some failures', async () => ((await shown(agent, failures)) ?? 0) >= 3);
  frontend.answer = { ok: true, msg: 'OK' };
  await untilIs(agent, 'svc_role_up{svc_service="frontend"}', 1);
  const before = (await shown(agent, failures))!;
  writeFileSync(
    `${file}.new`,
    `${readFileSync(file, 'utf8')}stores: [{name: gone, kind: mysql, address: '127.0.0.1:1', interval: 200ms, timeout: 200ms}]\n`,
  );
  renameSync(`${file}.new`, file);
  await untilIs(agent, 'svc_store_up{kind="mysql",store="gone"}', 0);
  expect(await shown(agent, failures)).toBe(before);
});

test('a failover counts once, across a kill of the agent', async () => {
  const directory = newFolder();
  const answer = join(directory, 'orders.json');
  const describeAs = (ActiveCluster: string, FailoverVersion: number) => {
    const view = { Name: 'orders', IsGlobal: true, ActiveCluster, Clusters: ['dc1', 'dc2'] };
    writeFileSync(`${answer}.new`, JSON.stringify({ ...view, FailoverInfo: { FailoverVersion } }));
    renameSync(`${answer}.new`, answer);
  };
  describeAs('dc1', 11);
  const file = agentFile(
    directory,
    `services: {}
domains: {watch: [orders], describe: {command: [cat, ${answer}], interval: 200ms, timeout: 200ms}}
`,
  );
  const active = (cluster: string) =>
    `svc_domain_active_cluster{active_cluster="${cluster}",domain="orders"}`;
  const failovers = 'svc_domain_failovers_total{domain="orders"}';
  const first = await run(file);
  await untilIs(first, active('dc1'), 1);
  expect(await shown(first, failovers)).toBe(0);
  describeAs('dc2', 12);
  await untilIs(first, failovers, 1);
  expect(await shown(first, active('dc1'))).toBeUndefined();
  await first.end('SIGKILL');
  const second = await run(file);
  await untilIs(second, active('dc2'), 1);
  expect(await shown(second, failovers)).toBe(1);
  describeAs('dc1', 21);
  await untilIs(second, failovers, 2);
});

describe.skipIf(!hasPostgres)('a real PostgreSQL', () => {
  const secret = 'not-to-be-seen-7';
  let server: Postgres;
  let down = false;
  beforeAll(async () => {
    server = await startPostgres({ initdb: ['--data-checksums'] });
    await server.query('CREATE DATABASE svc');
    await server.query('CREATE TABLE schema_version (db_name text PRIMARY KEY, curr_version text)', 'svc');
    await server.query("INSERT INTO schema_version VALUES ('svc', '0.10')", 'svc');
  });
  afterAll(async () => void (down ? undefined : await server.stop()));

  test('is probed with the rights that are printed, by command and by the running agent', async () => {
    const storeEvery = (schedule: string) =>
      agentFile(
        newFolder(),
        `services: {}
stores:
  - {name: main, kind: postgres, address: '127.0.0.1:${server.port}', user: mon, password: {env: E2E_STORE_PASSWORD}, databases: {persistence: svc}, schema: {persistence: "0.9"}, ${schedule}}
`,
      );
    // On a busy machine a whole check, which begins with a login, takes longer than the timeout of the other tests.
    const file = storeEvery('interval: 1m, timeout: 1m');
    const env = { E2E_STORE_PASSWORD: secret };
    const probe = (...args: string[]) => command(['probe', '-c', file, ...args], env);
    const refused = probe('--json');
    expect(refused.status).toBe(1);
    expect(JSON.parse(refused.stdout)).toMatchObject([{ name: 'store/main/persistence', ok: false }]);

    const grants = probe('--print-grants');
    expect(grants.status).toBe(0);
    const psql = [...connectionTo(server), '-v', 'ON_ERROR_STOP=1'];
    postgresProgram('psql', psql, grants.stdout.replace('<password>', secret));
    // The store answers, but recovery is not as it should be: that is a fault, too, unless its owner accepts it.
    const weak = probe('--json');
    expect(weak.status, weak.stdout).toBe(1);
    expect(JSON.parse(weak.stdout), weak.stdout).toMatchObject([
      { ok: true, failedChecks: ['archive_mode', 'durable_settings'] },
    ]);
    const accept = 'accept: {archive_mode: no backups here, durable_settings: a test}';
    const accepting = join(newFolder(), 'agent.yaml');
    writeFileSync(
      accepting,
      readFileSync(file, 'utf8').replace('kind: postgres,', `kind: postgres, ${accept},`),
    );
    expect(command(['probe', '-c', accepting], env).stdout).toContain(
      'archive_mode fails, which is accepted: no backups here',
    );
    const probed = command(['probe', '-c', accepting, '--json'], env);
    expect(probed.status, probed.stdout).toBe(0);
    const [found] = JSON.parse(probed.stdout) as {
      ok: boolean;
      details: { checks: { check: string; holds: unknown }[] };
    }[];
    expect(found).toMatchObject({ ok: true, details: { schema: '0.10' } });
    expect(found!.details.checks.filter(({ holds }) => holds === 'unknown')).toEqual([]);
    expect(found!.details.checks).toContainEqual(expect.objectContaining({ check: 'schema', holds: true }));
    const text = probe();
    expect(text.stdout).toMatch(/^store\/main\/persistence +ok /m);
    expect(text.stdout).toContain('archive_mode fails: archive_mode = off');
    const unknown = probe('store/other');
    expect([unknown.status, unknown.stdout]).toEqual([2, '']);
    expect(unknown.stderr).toContain('unknown probe, got "store/other"; there is store/main/persistence');

    process.env.E2E_STORE_PASSWORD = secret;
    const agent = await run(storeEvery('interval: 5s, timeout: 5s'));
    delete process.env.E2E_STORE_PASSWORD;
    const labels = 'database="persistence",kind="postgres",store="main"';
    await untilIs(agent, `svc_store_up{${labels}}`, 1);
    expect(await shown(agent, `svc_store_schema_compatible{${labels}}`)).toBe(1);
    const admin = `http://${agent.address('admin')}`;
    const debug = await (await fetch(`${admin}/probe?name=store/main/persistence&debug=1`)).text();
    const { state, last, history } = JSON.parse(debug);
    expect({ state, ok: last.ok }).toEqual({ state: 'up', ok: true });
    expect(last.details.checks).not.toEqual([]);
    expect(Object.keys(history[0])).toEqual(['at', 'ok', 'msg', 'durationMs', 'failedChecks']);
    expect((await fetch(`${admin}/probe?name=store/other`)).status).toBe(404);
    await server.stop();
    down = true;
    await untilIs(agent, `svc_store_up{${labels}}`, 0);
    await untilIs(agent, `svc_store_schema_compatible{${labels}}`, undefined);
    const failed = JSON.parse(await (await fetch(`${admin}/probe?name=store/main/persistence`)).text());
    expect(Object.keys(failed.last.phasesMs)).toEqual(['resolve', 'connect']);
    const probes = await (await fetch(`${admin}/probes`)).text();
    const seen = [refused, grants, probed, text, unknown].flatMap(({ stdout, stderr }) => [stdout, stderr]);
    for (const output of [...seen, debug, probes, await page(agent), agent.output()])
      expect(output).not.toContain(secret);
  });
});
