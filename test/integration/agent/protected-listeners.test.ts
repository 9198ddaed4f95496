import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { createHealth } from '../../../src/agent/admin/health.ts';
import { healthcheck, status } from '../../../src/agent/cli/status.ts';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { bindEndpoints, type Endpoints, type EndpointsDeps } from '../../../src/agent/endpoints.ts';
import { faultLine } from '../../../src/core/errors.ts';
import { createListener, createListeners } from '../../../src/reporters/listen/listener.ts';
import { newFolder } from '../../folder.ts';
import { statusReportOf, statusSourcesOf } from '../../status-report.ts';
import { fakeIo } from '../../unit/cli/fake-io.ts';
import { viewOf } from '../../view.ts';
import { makeCertificates } from '../pull/certificates.ts';
import { get, listenerDeps, manualGather } from '../pull/scraper.ts';
import { basic, getSecurely } from '../pull/secure.ts';

const folder = newFolder(afterAll);
const made = makeCertificates();
const ours = made.authority('ours');
const server = made.signed('server', ours, { sans: 'DNS:agent.example' });
let outlets: Endpoints[] = [];
afterEach(async () => {
  await Promise.all(outlets.map((one) => one.close()));
  outlets = [];
});

/** The hash of `open sesame bob` by libxcrypt. */
const hash = '$2b$05$abcdefghijklmnopqrstuubx4l53BqpyA0ox59C0SQbv.4dyNe666';

function outletsDeps(): EndpointsDeps {
  const deps = listenerDeps();
  const report = () =>
    statusReportOf({
      listeners: (outlets.at(-1)?.addresses ?? []).map(({ certificate: _, ...rest }) => rest),
    });
  const health = createHealth(() => undefined);
  health.enter('ready');
  const listeners = createListeners((options) => createListener(options, deps));
  return {
    ...deps,
    listeners,
    health,
    status: statusSourcesOf(report),
    mark: 'agent-1',
    roleDown: () => false,
    probes: () => [],
    checkNow: async () => undefined,
    announce: async () => {},
  };
}

const file = join(folder, 'agent.yaml');

/** Reads a file and puts it into effect beside the running configuration, as a reload does. */
async function take(text: string, deps: EndpointsDeps): Promise<string> {
  writeFileSync(file, text);
  const { config, faults } = await loadConfig({ file, env: {}, cwd: folder });
  expect(faults.map(faultLine)).toEqual([]);
  const next = await bindEndpoints(config!, deps);
  outlets.push(next);
  await next.open(manualGather(() => viewOf([])).gather);
  return next.addresses[0]!.address;
}

const tls = () => `tls: {cert_file: ${server.cert}, key_file: ${server.key}}`;
const bob = basic('bob', 'open sesame bob');
const client = () => ({ trusts: ours, more: { servername: 'agent.example' } });

test('a reload puts TLS and passwords on an address that stays, and takes them off again', async () => {
  const deps = outletsDeps();
  const pull = (more: string) => `admin: ~\nmetrics:\n  pullmetrics: {listenAddress: '127.0.0.1:0'${more}}\n`;
  const address = await take(pull(''), deps);
  expect((await get(address, '/metrics')).status).toBe(200);

  const auth = `auth: {basic_auth_users: {bob: ${hash}}}`;
  expect(await take(pull(`, ${tls()}, ${auth}`), deps)).toBe(address);
  await expect(get(address, '/metrics')).rejects.toThrow();
  expect((await getSecurely(address, '/metrics', client())).status).toBe(401);
  expect((await getSecurely(address, '/metrics', client(), bob)).status).toBe(200);
  expect((await getSecurely(address, '/ready', client())).status).toBe(200);

  await expect(take(pull(`, tls: {certFile: ${ours.key}, keyFile: ${server.key}}`), deps)).rejects.toThrow(
    'metrics.pullmetrics.tls.certFile: contains no certificate',
  );
  expect((await getSecurely(address, '/metrics', client(), bob)).status).toBe(200);
  await take(pull(''), deps);
  expect((await get(address, '/metrics')).status).toBe(200);
});

test('healthcheck and status ask a protected admin listener, by the configuration or by --url', async () => {
  const admin = (address: string, auth: string) =>
    `admin: {listenAddress: '${address}', ${tls()}, ${auth}}\n`;
  const bearer = 'auth: {bearer: {env: ADMIN_TOKEN}}';
  process.env.ADMIN_TOKEN = 'open sesame';
  const address = await take(admin('127.0.0.1:0', bearer), outletsDeps());
  writeFileSync(file, admin(address, bearer));
  const io = fakeIo(folder, { ADMIN_TOKEN: 'open sesame' });
  expect(await healthcheck(['-c', file], io)).toBe(0);
  expect(await status(['-c', file], io)).toBe(0);
  expect(io.out()).toMatch(new RegExp(`admin https://${address}/$`, 'm'));
  await expect(status(['-c', file], fakeIo(folder, { ADMIN_TOKEN: 'wrong' }))).rejects.toThrow('HTTP 401');

  const url = `https://localhost:${address.split(':')[1]}/health`;
  const outcome = async (...args: string[]) => {
    const said = fakeIo(folder);
    return [await healthcheck(['--url', url, ...args], said), said.out()];
  };
  expect(await outcome('--insecure')).toEqual([0, 'ok: OK\n']);
  expect(await outcome()).toEqual([1, expect.stringMatching(/not ok: .*(issuer|verify|self-signed)/)]);
  // The name is wrong, whoever signed the certificate.
  expect(await outcome('--ca', ours.cert)).toEqual([
    1,
    expect.stringContaining("not in the cert's altnames"),
  ]);

  const other = made.signed('other', ours);
  writeFileSync(file, admin(address, bearer).replace(server.cert, other.cert).replace(server.key, other.key));
  const mistaken = fakeIo(folder);
  expect(await healthcheck(['-c', file], mistaken)).toBe(1);
  expect(mistaken.out()).toContain(`the certificate is not that of ${other.cert}`);
  delete process.env.ADMIN_TOKEN;
});

test('credentials in --url are sent and never shown', async () => {
  const address = await take(
    `admin: {listenAddress: '127.0.0.1:0', auth: {basicAuthUsers: {bob: ${hash}}}}\n`,
    outletsDeps(),
  );
  const io = fakeIo(folder);
  expect(await status(['--url', `http://bob:open%20sesame%20bob@${address}/api/status`], io)).toBe(0);
  const refused = status(['--url', `http://bob:wrong@${address}/api/status`], io);
  await expect(refused).rejects.toThrow('HTTP 401');
  await expect(refused).rejects.not.toThrow('wrong@');
  await expect(status(['--url', 'ftp://localhost'], io)).rejects.toMatchObject({ code: 'usage' });
});

/** The status of a listener's answer. */
async function statusOf(name: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  const { address } = outlets.at(-1)!.addresses.find(({ listener }) => listener === name)!;
  return (await get(address, path, headers)).status;
}

test('admin.health answers whoever has no credentials, and answers nothing else', async () => {
  const auth = `auth: {basic_auth_users: {bob: ${hash}}}`;
  await take(`admin: {listenAddress: '127.0.0.1:0', health: '127.0.0.1:0', ${auth}}\n`, outletsDeps());
  const paths = ['/health', '/ready', '/', '/metrics', '/api/status', '/probes'];
  const statuses = async (name: string, headers = {}) => {
    const found: number[] = [];
    for (const path of paths) found.push(await statusOf(name, path, headers));
    return found;
  };
  expect(await statuses('admin.health')).toEqual([200, 200, 404, 404, 404, 404]);
  expect(await statuses('admin')).toEqual([200, 200, 401, 401, 401, 401]);
  expect(await statuses('admin', bob)).toEqual([200, 200, 200, 200, 200, 200]);
});

test('what a page of another site, or a host name that it controls, asks of the admin listener is answered with 403', async () => {
  const deps = outletsDeps();
  const drops: string[] = [];
  let probed = 0;
  deps.drops = { count: (component, reason) => void drops.push(`${component} ${reason}`) };
  deps.checkNow = async () => {
    probed++;
    return undefined;
  };
  await take(
    `admin: {listenAddress: '127.0.0.1:0', health: '127.0.0.1:0'}
metrics: {pullmetrics: {listenAddress: '127.0.0.1:0'}}
`,
    deps,
  );
  const others: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    { origin: 'https://evil.example' },
    { host: 'evil.example' },
  ];
  const paths = ['/', '/page.js', '/api/status', '/api/events', '/api/history', '/metrics', '/probes'];
  for (const headers of others) {
    for (const path of [...paths, '/probe?name=x', '/runbooks/SvcServiceDown.md'])
      expect(await statusOf('admin', path, headers), `${path} ${JSON.stringify(headers)}`).toBe(403);
    // Health checks use any host name, and learn nothing else. No page of another site makes them.
    for (const path of ['/health', '/ready'])
      expect(await statusOf('admin', path, headers)).toBe('host' in headers ? 200 : 403);
    expect(await statusOf('admin.health', '/health', headers)).toBe(200);
    expect(await statusOf('metrics', '/metrics', headers)).toBe(200);
  }
  expect(probed).toBe(0);
  expect(new Set(drops)).toEqual(new Set(['pull unauthorized']));
  expect(drops).toHaveLength(others.length * (paths.length + 2) + 2 * 2);
  expect(await statusOf('admin', '/api/status', {})).toBe(200);
});
