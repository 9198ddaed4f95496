import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { entriesIn, listenersIn } from '../entries.ts';
import { keys, openObjectStore } from '../object-store.ts';
import { folder } from '../run-folder.ts';
import { serving } from '../serving.ts';
import { onlyLong, onlyShort, testOnce } from '../size.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { mainFile, start } from './process.ts';

// The built program: what a probe loads is in separate chunks.

function place(): string {
  const { path, remove } = folder();
  atTestEnd(remove);
  return path;
}

const serve = async (answer: Parameters<typeof serving>[0]) => `127.0.0.1:${await serving(answer)}`;

/** Starts the agent with a pull listener on a separate port; `page` reads that listener's page. */
async function run(directory: string, parts: string, env: Record<string, string> = {}) {
  const file = join(directory, 'agent.yaml');
  const head = `stateDirectory: ${join(directory, 'state')}\nmetrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\n`;
  writeFileSync(file, `${head}admin: {listenAddress: 127.0.0.1:0}\n${parts}`);
  const agent = start(process.execPath, [mainFile, 'run', '-c', file], env);
  atTestEnd(() => agent.end());
  const entries = () => entriesIn(agent.output());
  const address = await until('the listener', () => listenersIn(agent.output()).get('metrics'));
  const page = async () => (await fetch(`http://${address}/metrics`)).text();
  return { file, entries, page };
}

/** The value of the series with this name and these labels, in addition to global ones. */
const value = (page: string, series: string): number | undefined => {
  const [, name, labels = ''] = /^(\w+)\{?(.*?)\}?$/.exec(series)!;
  const line = page
    .split('\n')
    .find((text) => text.startsWith(`${name}{`) && labels.split(',').every((label) => text.includes(label)));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ') + 1));
};

/** Runs a command of the built agent asynchronously, because servers run in this process. */
async function ended(args: readonly string[], env: Record<string, string>) {
  const running = start(process.execPath, [mainFile, ...args], env);
  return { status: await running.ended, output: running.output() };
}

onlyShort(describe)('domains', () => {
  test('what two clusters say reaches /metrics: disagreement, a failing client, failovers there and back', async () => {
    const directory = place();
    const shows = (cluster: string, active: string, version: number) =>
      writeFileSync(
        join(directory, cluster),
        `\ufeff${JSON.stringify({ name: 'orders', isGlobal: true, activeCluster: active, clusters: ['dc1', 'dc2'], failoverVersion: version }, undefined, 1).replaceAll('\n', '\r\n')}`,
      );
    shows('dc1', 'dc1', 10);
    shows('dc2', 'dc1', 10);
    const peer = await serve((_, response) => response.end());
    const group = `clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: dc1
  currentClusterName: dc1
  clusterGroup: {dc1: {initialFailoverVersion: 0}, dc2: {initialFailoverVersion: 1, rpcAddress: '${peer}'}}
domains: {watch: [orders], describe: {command: [cat, '${directory}/{cluster}'], interval: 200ms, timeout: 200ms}}
`;
    const { page, entries } = await run(directory, group);
    const failures = (reason: string) => `svc_probe_failures_total{probe="domain/orders",reason="${reason}"}`;
    await until(
      'the domain is active',
      async () =>
        value(await page(), 'svc_domain_active_cluster{domain="orders",active_cluster="dc1"}') === 1 ||
        undefined,
    );
    expect(value(await page(), failures('clusters_disagree'))).toBe(0);

    shows('dc2', 'dc2', 11);
    await until('the disagreement', async () => value(await page(), failures('clusters_disagree'))! > 0);

    shows('dc1', 'dc1', 20);
    shows('dc2', 'dc1', 20);
    const failovers = 'svc_domain_failovers_total{domain="orders"}';
    await until('there and back', async () => value(await page(), failovers) === 2);
    expect(entries().filter(({ msg }) => msg === 'a domain failed over')).toEqual([
      expect.objectContaining({
        level: 'info',
        domain: 'orders',
        to: 'dc1',
        failovers: 2,
        failoverVersion: 20,
      }),
    ]);

    shows('dc1', 'dc1', 11);
    await until('the mismatch', async () => value(await page(), failures('version_mismatch'))! > 0);
    writeFileSync(join(directory, 'dc1'), '');
    await until('the output', async () => value(await page(), failures('invalid_answer'))! > 0);
  });
});

describe('archives', () => {
  const archival = (directory: string, more: string) => `archival:
  history: {status: enabled, provider: {filestore: {}}}
  visibility: {status: enabled, ${more}}
domainDefaults:
  archival:
    history: {status: enabled, URI: 'file://${directory}/archive/'}
    visibility: {status: enabled, URI: 's3://archive/visibility/'}
`;

  onlyLong(test)(
    'with a web identity, written, read and deleted; a directory that does not exist yet is no fault',
    async () => {
      const directory = place();
      const webKeys = { accessKeyId: 'WEBID', secretAccessKey: 'web/secret', sessionToken: 'web-token' };
      const store = await openObjectStore({ keys: webKeys, clock: systemClock });
      atTestEnd(() => store.close());
      store.objects.set('visibility/a', '2026-01-03T00:00:00.000Z');
      const expiration = new Date(Date.now() + 3_600_000).toISOString();
      const sts = await serve((_, response) => {
        const { accessKeyId, secretAccessKey, sessionToken } = webKeys;
        response.writeHead(200, { 'content-type': 'text/xml' });
        response.end(
          `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>${secretAccessKey}</SecretAccessKey><SessionToken>${sessionToken}</SessionToken><Expiration>${expiration}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
        );
      });
      writeFileSync(join(directory, 'token'), 'the.web.identity');
      const env = {
        HOME: directory,
        AWS_WEB_IDENTITY_TOKEN_FILE: join(directory, 'token'),
        AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/archive',
        AWS_ENDPOINT_URL_STS: `http://${sts}`,
        AWS_EC2_METADATA_DISABLED: 'true',
      };
      const provider = `writeCheck: true, provider: {objectstore: {region: eu-west-1, endpoint: '${store.url}'}}`;
      const { file, page } = await run(directory, archival(directory, provider), env);
      await until('both archives', async () => {
        const text = await page();
        const up = ['history",scheme="file"', 'visibility",scheme="s3"'].map((archive) =>
          value(text, `svc_archival_up{archive="${archive}}`),
        );
        return up[0] === 1 && up[1] === 1;
      });
      expect(store.changed.slice(0, 3).map((line) => line.split(' ')[0])).toEqual(['PUT', 'GET', 'DELETE']);
      expect(store.contents.size).toBe(0);

      mkdirSync(join(directory, 'archive'));
      const once = await ended(['probe', 'archive', '-c', file, '--json'], env);
      expect(once.status, once.output).toBe(0);
      expect((JSON.parse(once.output) as { msg: string }[]).map(({ msg }) => msg)).toEqual([
        expect.stringMatching(/^writable, /),
        'writable; newest object from 2026-01-03T00:00:00.000Z',
      ]);
      expect(readdirSync(join(directory, 'archive'))).toEqual([]);
    },
  );

  testOnce('keys of the environment are enough', async () => {
    const directory = place();
    const store = await openObjectStore({ clock: systemClock });
    atTestEnd(() => store.close());
    const file = join(directory, 'agent.yaml');
    const provider = `provider: {objectstore: {region: eu-west-1, endpoint: '${store.url}'}}`;
    writeFileSync(
      file,
      `metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\n${archival(directory, provider)}`,
    );
    const env = {
      AWS_ACCESS_KEY_ID: keys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
      HOME: directory,
    };
    expect(await ended(['probe', 'archive/visibility', '-c', file], env)).toEqual({
      status: 0,
      output: expect.stringContaining('no object yet'),
    });
  });
});

testOnce('the agent loads neither the schema library nor the AWS SDK until something needs them', () => {
  const chunks = join(mainFile, '..', 'chunks');
  const files = readdirSync(chunks);
  const text = (file: string) => readFileSync(join(chunks, file), 'utf8');
  /** A text that each package contains in any case. */
  const packages = { zod: 'ZodError', sdk: 'AssumeRoleWithWebIdentity', aws4fetch: 'X-Amz-Signature' };
  const packagesIn = (all: Iterable<string>) =>
    Object.entries(packages).flatMap(([name, mark]) =>
      [...all].some((file) => text(file).includes(mark)) ? [name] : [],
    );
  const loadedFrom = (start: string) => {
    const seen = new Set<string>();
    const queue = [start];
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      const imports = text(file).matchAll(/\b(?:import|export)\b[^'"();]*["']\.\/([^"']+)["']/g);
      queue.push(...[...imports].map(([, name]) => name!));
    }
    return seen;
  };
  expect(packagesIn(files)).toEqual(Object.keys(packages));
  const agent = loadedFrom(files.find((name) => /^agent-/.test(name))!);
  expect(agent.size).toBeGreaterThan(3);
  expect(packagesIn(agent)).toEqual([]);
  const probes = files.filter((name) =>
    /^(directory|bucket|domain-check|cluster-checks|replication-check|http|grpc)-/.test(name),
  );
  expect(probes.length).toBeGreaterThan(5);
  for (const probe of probes) expect(packagesIn(loadedFrom(probe)), probe).toEqual([]);
});
