import { readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askFrontend } from '../../examples/cli/ask.ts';
import { openArchive } from '../../examples/service/archive.ts';
import type { DescribedDomain } from '../../examples/service/clusters/domains.ts';
import { paths } from '../../examples/service/clusters/frontend.ts';
import type { Incident } from '../../examples/service/incidents.ts';
import type { ServiceOptions } from '../../examples/service/options.ts';
import { createRandom } from '../../examples/service/random.ts';
import { createService, type Service, type ServiceAddresses } from '../../examples/service/service.ts';
import { parseAddress } from '../../src/core/address.ts';
import { roles } from '../../src/core/catalog.ts';
import { systemClock } from '../../src/core/clock.ts';
import { checkGrpc } from '../../src/probes/health/grpc-check.ts';
import { type ManualClock, manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { onlyLong, onlyShort, testOnce } from '../size.ts';
import { until } from '../until.ts';

let directory: string;
let clock: ManualClock;
let service: Service;
let addresses: ServiceAddresses;
let announced: object[];
let complaints: string[];

async function start(options: Partial<ServiceOptions> = {}) {
  announced = [];
  complaints = [];
  service = createService(
    {
      directory,
      healthPort: 0,
      metricsPort: 0,
      controlPort: 0,
      rpcPort: 0,
      storePort: undefined,
      ratePerSecond: 10,
      names: 'svc',
      seed: 1,
      rotateBytes: 1_000_000,
      incidentEveryMs: 0,
      ...options,
    },
    {
      clock,
      announce: (incident, phase) => announced.push({ ...incident, phase }),
      complain: (why) => complaints.push(why),
    },
  );
  addresses = await service.start();
}

beforeEach(() => {
  directory = newFolder();
  clock = manualClock();
});

afterEach(() => service.stop());

/**
 * Reads a page on a separate connection: the service is this process, and may close an idle one while the next request is sent.
 */
const page = async (url: string) => (await fetch(url, { headers: { connection: 'close' } })).text();
const refused = (url: string) =>
  fetch(url).then(
    () => false,
    (thrown) => thrown.cause.code === 'ECONNREFUSED',
  );
const entries = (file: string) =>
  readFileSync(join(directory, file), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

onlyShort(describe)('the example service', () => {
  it('answers health checks and scrapes of every role, and nothing else', async () => {
    await start();
    clock.advance(10_000);
    for (const role of roles) {
      const { health, metrics } = addresses.roles[role];
      expect(await (await fetch(health)).json()).toEqual({ ok: true, msg: 'OK' });
      const scraped = await fetch(metrics);
      expect(scraped.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(await scraped.text()).toContain(`svc_restarts{svc_service="${role}"} 1\n`);
      expect((await fetch(health.replace('/health', '/'))).status).toBe(404);
      expect((await fetch(metrics, { method: 'POST' })).status).toBe(404);
    }
  });

  it('writes a log per role, ten entries a second', async () => {
    await start();
    clock.advance(10_000);
    expect(readdirSync(directory).sort()).toEqual([
      'archive',
      'frontend.log',
      'history.log',
      'matching.log',
      'worker.log',
    ]);
    for (const role of roles) {
      const written = entries(`${role}.log`);
      expect(written.length).toBeGreaterThanOrEqual(100);
      expect(written.every((entry) => entry.service === `svc-${role}`)).toBe(true);
    }
  });

  it('rotates its logs by renaming, loses no line and keeps two', async () => {
    await start({ rotateBytes: 20_000 });
    clock.advance(21_000);
    expect(
      readdirSync(directory)
        .filter((name) => name.startsWith('history'))
        .sort(),
    ).toEqual(['history.log', 'history.log.1', 'history.log.2']);
    const times = ['history.log.2', 'history.log.1', 'history.log'].flatMap(entries).map(({ ts }) => ts);
    expect(times).toEqual([...times].sort());
    clock.advance(60_000);
    expect(readdirSync(directory).filter((name) => name.includes('.log'))).toHaveLength(12);
    const kept = ['history.log.2', 'history.log.1', 'history.log'].flatMap(entries).map(({ ts }) => ts);
    expect(new Set(kept).size).toBeGreaterThan(100);
    const gaps = kept.slice(1).map((ts, i) => Date.parse(ts) - Date.parse(kept[i]));
    expect(Math.max(...gaps)).toBe(100);
  });

  it('goes on with the files it finds', async () => {
    await start();
    clock.advance(1000);
    await service.stop();
    const before = entries('worker.log').length;
    await start();
    clock.advance(1000);
    expect(entries('worker.log').length).toBeGreaterThan(before);
  });
});

onlyShort(describe)('a restart', () => {
  it('refuses connections for some seconds, then begins with new counters at the same ports', async () => {
    await start();
    clock.advance(60_000);
    const { health, metrics } = addresses.roles.matching;
    const requests = (text: string) =>
      [...text.matchAll(/^svc_persistence_requests\{.*\} (\d+)$/gm)].reduce(
        (sum, [, n]) => sum + Number(n),
        0,
      );
    const before = requests(await page(metrics));
    service.obey({ strike: { kind: 'restart', target: 'matching' } });
    await until('connections are refused', () => refused(health));
    await until('connections are refused', () => refused(metrics));
    expect(await refused(addresses.roles.history.health)).toBe(false);
    clock.advance(3900);
    expect(await refused(health)).toBe(true);
    clock.advance(100);
    await until('it listens again', async () => !(await refused(metrics)));
    clock.advance(1000);
    const warmingUp = await fetch(health);
    expect([warmingUp.status, await warmingUp.json()]).toEqual([503, { ok: false, msg: 'warming up' }]);
    const after = await page(metrics);
    expect(after).toContain('svc_restarts{svc_service="matching"} 1\n');
    expect(requests(after)).toBeGreaterThan(0);
    expect(requests(after)).toBeLessThan(before / 10);
    const messages = entries('matching.log').map(({ msg }) => msg);
    expect(messages.filter((msg) => msg === 'service started')).toHaveLength(2);
    expect(messages).toContain('Service status is: ShuttingDown');
  });

  it('of a fatal kind leaves a fatal entry', async () => {
    await start();
    service.obey({ strike: { kind: 'fatal', target: 'worker' } });
    await until('connections are refused', () => refused(addresses.roles.worker.health));
    expect(entries('worker.log').at(-1)).toMatchObject({ level: 'fatal', service: 'svc-worker' });
  });

  it('is not in the way of the end', async () => {
    await start();
    service.obey({ strike: { kind: 'restart', target: 'history' } });
    clock.advance(4000);
    await service.stop();
    expect(await refused(addresses.roles.history.health)).toBe(true);
  });
});

describe('incidents', () => {
  testOnce('come by POST', async () => {
    await start();
    const post = async (query: string) => {
      const answer = await fetch(`${addresses.incident}${query}`, { method: 'POST' });
      return [answer.status, await answer.text()];
    };
    expect(await post('?kind=persistence-errors&target=frontend')).toEqual([
      200,
      'persistence-errors frontend\n',
    ]);
    expect(announced).toEqual([{ kind: 'persistence-errors', target: 'frontend', phase: 'began' }]);
    expect((await post('?kind=flood'))[0]).toBe(400);
    expect((await fetch(addresses.incident)).status).toBe(404);
    expect(await page(addresses.incident.replace('/incident', '/'))).toContain('/incident?kind=backlog');
  });

  onlyLong(it)('last until they are ended', async () => {
    await start();
    service.obey({ strike: { kind: 'backlog', target: 'order-mail' } });
    const backlog = async () =>
      Number(
        /tasklist="order-mail"\} (\d+)/.exec(
          (await page(addresses.roles.matching.metrics)).split('# TYPE svc_matching_tasklist_backlog')[1] ??
            '',
        )?.[1],
      );
    clock.advance(40_000);
    const grown = await backlog();
    expect(grown).toBeGreaterThan(100);
    clock.advance(120_000);
    expect(await backlog()).toBeGreaterThan(2 * grown);
    const answer = await fetch(addresses.end, { method: 'POST' });
    expect(await answer.text()).toBe('ended: backlog order-mail\n');
    expect(announced.at(-1)).toEqual({ kind: 'backlog', target: 'order-mail', phase: 'ended' });
    clock.advance(480_000);
    expect(await backlog()).toBeLessThan(grown / 2);
  });

  onlyLong(it)('come by themselves now and then, if wanted', async () => {
    await start({ incidentEveryMs: 60_000 });
    clock.advance(600_000);
    expect(announced.length).toBeGreaterThanOrEqual(12);
    expect(announced.length).toBeLessThanOrEqual(40);
  });
});

onlyShort(describe)('the clusters', () => {
  it('answer the standard health check and no other call of gRPC', async () => {
    await start();
    for (const address of Object.values(addresses.clusters)) {
      const dial = { address: parseAddress(address)! };
      const deps = { clock: systemClock, readSecret: async () => '' };
      const signal = AbortSignal.timeout(30_000);
      const asked = { dial, role: 'frontend', timeoutMs: 30_000 };
      expect(await checkGrpc(asked, deps, signal, undefined)).toMatchObject({ msg: 'SERVING' });
      const own = { ...asked, service: 'svc.api.v1.MetaAPI' };
      expect((await checkGrpc(own, deps, signal, undefined)).reason).toBe('unimplemented');
    }
  });

  it('describe the domains, and agree on where they are active', async () => {
    await start();
    service.obey({ strike: { kind: 'failover', target: 'payments' } });
    for (const address of Object.values(addresses.clusters)) {
      const active = async (name: string) =>
        (await askFrontend<DescribedDomain>(address, paths.describe, { name })).replicationConfiguration
          .activeClusterName;
      expect([await active('orders'), await active('payments')]).toEqual(['dc1', 'dc2']);
      await expect(askFrontend(address, paths.describe, { name: 'mail' })).rejects.toThrow(
        'Domain mail does not exist.',
      );
    }
  });

  it('are gone with the service', async () => {
    await start();
    await service.stop();
    await expect(
      askFrontend(addresses.clusters.dc1, paths.describe, { name: 'orders' }),
    ).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
  });
});

onlyShort(describe)('the archives', () => {
  const files = () => Object.values(addresses.archives).map((uri) => readdirSync(fileURLToPath(uri)).sort());

  it('get a file each while the worker works', async () => {
    await start();
    clock.advance(60_000);
    const [history, visibility] = files();
    expect(history).toEqual(visibility);
    expect(history!.length).toBeGreaterThanOrEqual(6);
    const [first] = history!;
    expect(JSON.parse(readFileSync(join(directory, 'archive', 'history', first!), 'utf8'))).toMatchObject({
      domain: expect.stringMatching(/^(orders|payments)$/),
    });
  });

  it('keep the newest hundred', async () => {
    await start();
    const places = { history: join(directory, 'one'), visibility: join(directory, 'other') };
    const archive = openArchive(places, createRandom(1));
    for (let n = 1; n <= 120; n += 1) archive.advance(clock.nowMs() + n * 10_000);
    for (const place of Object.values(places)) {
      const names = readdirSync(place).sort();
      expect([names.length, names[0]]).toEqual([100, `${clock.nowMs() + 21 * 10_000}.json`]);
    }
  });

  it('get none while it is down', async () => {
    await start();
    clock.advance(9000);
    const before = files();
    service.obey({ strike: { kind: 'restart', target: 'worker' } });
    // The next incident would be due at the tenth second.
    clock.advance(3900);
    expect(files()).toEqual(before);
  });
});

onlyShort(describe)('the store', () => {
  const port = () => Number(addresses.store!.address.split(':')[1]);
  const query = async (text: string, database: string) => {
    const client = new pg.Client({ host: '127.0.0.1', port: port(), user: 'somebody', database, ssl: false });
    await client.connect();
    const { rows } = await client.query(text);
    await client.end();
    return rows;
  };
  const versionOf = async (database: string) => {
    const text = `SELECT curr_version FROM schema_version WHERE db_name = '${database}'`;
    return (await query(text, database))[0]?.curr_version;
  };
  const isRefused = () =>
    new Promise<boolean>((resolve) => {
      const socket = createConnection(port(), '127.0.0.1', () => resolve(false));
      socket.once('error', () => resolve(true)).once('connect', () => socket.destroy());
    });
  const healthOf = async (role: 'frontend' | 'worker') =>
    (await (await fetch(addresses.roles[role].health)).json()) as { ok: boolean; msg: string };
  /** Advances the service's time in small steps while the store, which has its own time, catches up. */
  const untilLater = (fact: () => Promise<boolean>) =>
    until('the service is so', async () => {
      clock.advance(250);
      return fact();
    });

  /** Begins the incident repeatedly, so that it is not over before the store has caught up. */
  const untilStruck = (incident: Incident, fact: () => Promise<boolean>) =>
    untilLater(async () => {
      service.obey({ strike: incident });
      return fact();
    });

  it('is PostgreSQL to its clients, and goes down, behind and up again as it is told', async () => {
    await start({ storePort: 0 });
    clock.advance(10_000);
    expect(await healthOf('frontend')).toEqual({ ok: false, msg: 'warming up' });
    await untilLater(async () => (await healthOf('frontend')).ok);
    expect([await versionOf('svc'), await versionOf('svc_visibility')]).toEqual(['0.8', '0.9']);

    await untilStruck({ kind: 'schema-behind', target: 'persistence' }, async () => {
      return (await versionOf('svc')) === '0.7';
    });
    expect(await versionOf('svc_visibility')).toBe('0.9');
    service.obey({ end: 'schema-behind' });
    await untilLater(async () => (await versionOf('svc')) === '0.8');

    await untilStruck({ kind: 'store-down', target: 'main' }, isRefused);
    expect(await healthOf('worker')).toEqual({
      ok: false,
      msg: 'persistence: the store refuses connections',
    });
    service.obey({ end: undefined });
    await untilLater(async () => (await healthOf('worker')).ok);
    expect(await versionOf('svc')).toBe('0.8');
    await service.stop();
    expect(await isRefused()).toBe(true);
    expect(complaints).toEqual([]);
  });

  it('that is not wanted is not there, nor what could happen to it', async () => {
    await start();
    expect(addresses.store).toBeUndefined();
    expect(addresses.kinds).not.toContain('store-down');
    const answer = await fetch(`${addresses.incident}?kind=store-down`, { method: 'POST' });
    expect(answer.status).toBe(400);
  });
});

testOnce('a port that is taken ends the start and leaves nothing open', async () => {
  await start();
  const first = service;
  const taken = Number(new URL(addresses.roles.frontend.metrics).port);
  await expect(start({ metricsPort: taken })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  expect(clock.waiting).toBe(1);
  await first.stop();
});
