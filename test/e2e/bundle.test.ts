import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { command, startAgent } from './process.ts';

// `svc-agent bundle` contains everything that a support case needs, and no secret.

const place = newFolder(afterAll);

const secrets = {
  literal: 'literal-Pa55word',
  variable: 'variable-Pa55word',
  file: 'file-Pa55word',
  url: 'url-Pa55word',
  header: 'header-T0ken',
};

test('the bundle has configuration, check, doctor and status, and no secret', async () => {
  const file = join(place, 'agent.yaml');
  const secretFile = join(place, 'secret');
  writeFileSync(secretFile, `${secrets.file}\n`);
  const store = (name: string, password: unknown) => ({
    ...{ name, kind: 'postgres', address: '127.0.0.1:1', user: 'agent', password },
    databases: { persistence: 'svc' },
  });
  writeFileSync(
    file,
    JSON.stringify({
      services: { frontend: { scrape: 'http://127.0.0.1:1/metrics' } },
      metrics: {
        hostedmetrics: {
          protocol: 'otlp',
          endpoint: 'http://127.0.0.1:1/v1/metrics',
          headers: { 'x-key': secrets.header },
        },
      },
      admin: { listenAddress: '127.0.0.1:0' },
      stores: [
        store('one', secrets.literal),
        store('two', { env: 'STORE_PASSWORD' }),
        store('three', { file: secretFile }),
      ],
      stateDirectory: join(place, 'state'),
    }),
  );
  process.env.STORE_PASSWORD = secrets.variable;
  const agent = await startAgent(file).finally(() => delete process.env.STORE_PASSWORD);
  const out = join(place, 'bundle.json');
  const url = `http://${agent.address('admin')}`;
  const { status, stderr } = command(['bundle', '-c', file, '--out', out, '--url', url], {
    STORE_PASSWORD: secrets.variable,
  });
  await agent.end();
  expect([status, stderr]).toEqual([0, '']);
  expect(statSync(out).mode & 0o777).toBe(0o600);
  const text = readFileSync(out, 'utf8');
  for (const secret of Object.values(secrets)) expect(text).not.toContain(secret);
  const parts = JSON.parse(text);
  expect(parts.configuration[0].content.stores[0]).toMatchObject({
    name: 'one',
    address: '127.0.0.1:1',
    password: '<secret>',
  });
  expect(parts.status.verdict.level).toEqual(expect.any(String));
  expect(parts.doctor.length).toBeGreaterThan(3);
  expect(parts.check.faults).toEqual([]);
  expect(parts.machine.node).toBe(process.version);
});

test.each([
  ['a misspelt key', `hearbeat: ${secrets.literal}`],
  [
    'a list where a secret belongs',
    `stores: [{name: a, kind: postgres, address: '127.0.0.1:1', password: [${secrets.literal}]}]`,
  ],
  [
    'a word where a map belongs',
    `metrics: {pullmetrics: {listenAddress: '127.0.0.1:0', auth: ${secrets.literal}}}`,
  ],
])('%s does not show in the bundle', (_, line) => {
  const file = join(place, 'misspelt.yaml');
  writeFileSync(file, `services: {frontend: {}}\n${line}\n`);
  const { status, stdout, stderr } = command(['bundle', '-c', file, '--url', '127.0.0.1:1']);
  expect([status, stdout.includes(secrets.literal)]).toEqual([2, false]);
  expect(stderr).toMatch(/^svc-agent: configuration: \d faults?, listed in the document; /);
  expect(JSON.parse(stdout).configuration[0].content.services).toEqual({ frontend: {} });
});

test('a fault in the configuration does not leave the running agent out', async () => {
  const file = join(place, 'faulty.yaml');
  const configuration = (port: string, more: string) =>
    `services: {frontend: {}}\nadmin: {listenAddress: '127.0.0.1:${port}', auth: {bearer: ${secrets.literal}}}\n${more}`;
  writeFileSync(file, configuration('0', `stateDirectory: ${join(place, 'faulty')}\n`));
  const agent = await startAgent(file);
  const [, port] = agent.address('admin').split(':');
  writeFileSync(file, configuration(port!, 'hearbeat: 1\n'));
  const { status, stdout } = command(['bundle', '-c', file, '--out', '-']);
  await agent.end();
  expect(status).toBe(2);
  const parts = JSON.parse(stdout);
  expect(parts.check.faults[0].what).toContain('unknown key');
  expect(parts.status.verdict?.level).toEqual(expect.any(String));
  expect(stdout).not.toContain(secrets.literal);
});

test('without a running agent, and with a configuration that is wrong, the bundle says so', () => {
  const file = join(place, 'wrong.yaml');
  writeFileSync(file, `services: {frontend: {scrape: "http://reader:${secrets.url}@127.0.0.1:1/"}}\n`);
  const { status, stdout } = command(['bundle', '-c', file, '--url', '127.0.0.1:1']);
  expect(status).toBe(2);
  const parts = JSON.parse(stdout);
  expect(parts.check.faults[0].what).toMatch(/without credentials/);
  expect(stdout).not.toContain(secrets.url);
  expect(parts.status.unavailable).toContain('ECONNREFUSED');
  expect(parts.doctor.unavailable).toContain('1 fault');
});

test('arguments, inline keys and parts of URLs show in no part of the bundle, and it stays JSON', () => {
  const at = (name: string) => join(place, name);
  const arguments_ = [
    '--password=Arg1word',
    'Arg2word',
    '-pArg3word',
    'PGPASSWORD=Arg4word',
    'host=h password=Arg5word',
  ];
  writeFileSync(
    at('service.yaml'),
    JSON.stringify({
      persistence: {
        defaultStore: 'main',
        visibilityStore: 'main',
        datastores: {
          main: {
            sql: {
              ...{
                pluginName: 'postgres',
                databaseName: 'svc',
                connectAddr: '127.0.0.1:1',
                connectProtocol: 'tcp',
              },
              ...{ user: 'svc', password: 'true', connectAttributes: { options: 'Attribute1word' } },
              tls: { enabled: true, keyData: 'Key1data' },
            },
          },
        },
      },
      publicClient: { jwt: 'Key2data' },
    }),
  );
  writeFileSync(
    at('hostile.yaml'),
    `serviceConfig: [service.yaml]
services:
  frontend:
    scrape: '\${PAGE_URL}'
    health: http://127.0.0.1:1/health?key=Query1word
    logs: {paths: ['\${LOGS}/x.log']}
stores: [{name: main, kind: postgres, address: '127.0.0.1:1', password: name, schema: {query: "SELECT v FROM dblink('host=h password=Query3word', 'q')"}}]
admin: {links: {grafana: https://hooks.example/T00/Path1word2/x}}
backups:
  - name: full
    type: full
    store: main
    source: {command: {command: [tool, --repo, ${arguments_.map((text) => `'${text}'`).join(', ')}, '{store}'], format: pgbackrest}}
`,
  );
  const { stdout } = command(['bundle', '-c', at('hostile.yaml'), '--url', '127.0.0.1:1'], {
    PAGE_URL: 'http://127.0.0.1:1/metrics?sig=Query2word',
    LOGS: place,
  });
  expect(stdout.match(/\w*(?:Arg|Key|Attribute|Query|Path)\d\w*/g)).toBeNull();
  const { content } = JSON.parse(stdout).configuration[0];
  const variable = (name: string) => `\${${name}}`;
  expect(content.services.frontend).toMatchObject({
    scrape: variable('PAGE_URL'),
    logs: { paths: [`${variable('LOGS')}/x.log`] },
  });
  expect(content.stores[0]).toMatchObject({ name: 'main', password: '<secret>' });
  expect(content.backups[0].source.command.command.slice(0, 2)).toEqual(['tool', '--repo']);
});
