import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/agent/config/load.ts';
import { faultLine } from '../../../src/core/errors.ts';
import { agentFile } from './agent-file.ts';

async function load(content: string, env: Record<string, string> = {}, roles: string[] = []) {
  const file = agentFile(content);
  return { file, ...(await loadConfig({ file, roles, env, cwd: dirname(file) })) };
}

describe('a warning about the samples of hostedmetrics', () => {
  const hosted = 'hostedmetrics: {protocol: otlp, endpoint: "https://a.example"}';
  test.each([
    [`metrics: {${hosted}}`, 'metrics.reportingInterval', '86.4M samples a day of 1,000 series (15s: 5.8M)'],
    [`metrics: {reportingInterval: 5s, ${hosted}}`, 'metrics.reportingInterval', '17.3M samples a day'],
    [
      `services: {a: {health: "http://h/", metrics: {${hosted}}}}`,
      'services.a.metrics.reportingInterval',
      '86.4M samples a day',
    ],
  ])('%s', async (content, path, text) => {
    const { warnings, faults } = await load(content);
    expect(faults).toEqual([]);
    expect(warnings.map(faultLine).filter((line) => line.includes(path) && line.includes(text))).toHaveLength(
      1,
    );
  });

  test('none for 10 s and more, nor for other reporters', async () => {
    for (const block of [
      `{reportingInterval: 10s, ${hosted}}`,
      '{pullmetrics: {listenAddress: "0.0.0.0:1"}}',
    ]) {
      const { warnings, faults } = await load(`metrics: ${block}`);
      expect([faults, warnings]).toEqual([[], []]);
    }
  });
});

test.each([
  ['cadence-history', 'history'],
  ['svc_worker', 'worker'],
  ['history', undefined],
  ['bench', undefined],
  ['historyx', undefined],
])('a role with the name %s', async (name, role) => {
  const { warnings, faults } = await load(`services: {${name}: {health: "http://127.0.0.1:1/health"}}`);
  expect(faults).toEqual([]);
  const own = warnings.filter(({ path }) => path === `services.${name}`);
  expect(own.map(faultLine)).toEqual(
    role ? [expect.stringContaining(`know this role as ${role}; name it ${role}`)] : [],
  );
});

test('a role that another service has the name of is not asked to change its own', async () => {
  const { warnings } = await load(
    'services: {history: {health: "http://127.0.0.1:1/"}, old-history: {health: "http://127.0.0.1:2/"}}',
  );
  expect(warnings.map(({ path }) => path)).toEqual(['metrics']);
});

describe('timers of several roles', () => {
  const two = (frontend: string, history: string, top = '{}') =>
    `metrics: ${top}
services:
  frontend: {statsd: "127.0.0.1:8125"${frontend}}
  history: {statsd: "127.0.0.1:8126"${history}}
`;
  const pull = (port: number, type: string) =>
    `{pullmetrics: {listenAddress: "127.0.0.1:${port}", timerType: ${type}}}`;

  test.each([
    ['', `, metrics: ${pull(1, 'summary')}`, '{}', 'services.history.metrics.pullmetrics.timerType'],
    [`, metrics: ${pull(1, 'histogram')}`, '', pull(2, 'summary'), 'metrics.pullmetrics.timerType'],
    ['', '', pull(2, 'summary'), undefined],
    [`, metrics: ${pull(1, 'summary')}`, `, metrics: ${pull(2, 'summary')}`, '{}', undefined],
  ])('%s and %s', async (frontend, history, top, path) => {
    const { warnings, faults } = await load(two(frontend, history, top));
    expect(faults).toEqual([]);
    const own = warnings.filter(({ what }) => what.includes('become'));
    expect(own.map((warning) => warning.path)).toEqual(path === undefined ? [] : [path]);
  });
});

describe('defaults', () => {
  test('of a file that says next to nothing', async () => {
    const { config, faults, warnings, file } = await load('roles: []\n');
    expect(faults).toEqual([]);
    expect(warnings.map(({ path }) => path)).toEqual(['metrics']);
    expect(config).toEqual({
      roles: [],
      serviceConfig: [],
      scope: 'host',
      instance: hostname(),
      stateDirectory: expect.stringMatching(/^\/var\/lib\/svc-agent$|\/\.svc-agent$/),
      stateFsync: false,
      metrics: { tags: {}, prefix: '', reportingIntervalMs: 1000 },
      services: [],
      stores: [],
      backups: [],
      recovery: { allowExecute: false, commands: {} },
      maintenance: { windows: [] },
      limits: { seriesPerMetric: 2000, series: 50000, forbiddenTags: [], allowValues: [] },
      admin: { listenAddress: '127.0.0.1:9465' },
      log: { level: 'info', encoding: 'json', stdout: false, levelKey: 'level' },
    });
    expect((await load('roles: []', { STATE_DIRECTORY: '/s/one:/s/two' })).config!.stateDirectory).toBe(
      '/s/one',
    );
    expect((await load('stateDirectory: here')).config!.stateDirectory).toBe(join(dirname(file), 'here'));
  });

  test('of reporters', async () => {
    const pull = await load('metrics: {pushmetrics: ~, pullmetrics: {listenAddress: "0.0.0.0:9464"}}');
    expect(pull.config!.metrics.reporter).toEqual({
      kind: 'pullmetrics',
      options: {
        listenAddress: '0.0.0.0:9464',
        timerType: 'histogram',
        defaultHistogramBuckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10],
        openMetrics: false,
      },
    });
    const push = await load('metrics: {reportingInterval: 3s, pushmetrics: {hostPort: "127.0.0.1:8125"}}');
    expect(push.config!.metrics.reporter).toEqual({
      kind: 'pushmetrics',
      options: {
        hostPort: '127.0.0.1:8125',
        prefix: '',
        flushIntervalMs: 3000,
        flushBytes: 1432,
        tagFormat: 'suffix',
      },
    });
  });

  test.each([
    ['https://a.example', 'https://a.example/v1/metrics'],
    ['https://a.example:4318/', 'https://a.example:4318/v1/metrics'],
    ['https://a.example?tenant=a', 'https://a.example/v1/metrics?tenant=a'],
    ['https://a.example/otlp/v1/metrics', 'https://a.example/otlp/v1/metrics'],
    ['https://a.example/x/', 'https://a.example/x/'],
  ])('an OTLP endpoint without a path gets the path of OTLP/HTTP: %s', async (endpoint, expected) => {
    const { config } = await load(`metrics: {hostedmetrics: {protocol: otlp, endpoint: "${endpoint}"}}`);
    expect(config!.metrics.reporter).toMatchObject({ options: { endpoint: expected } });
  });

  test('remote write to a root path, if it is written', async () => {
    const of = (endpoint: string) =>
      load(`metrics: {hostedmetrics: {protocol: remotewrite, endpoint: "${endpoint}"}}\n`);
    const { config } = await of('https://a.example/');
    expect(config!.metrics.reporter).toMatchObject({ options: { endpoint: 'https://a.example/' } });
    expect((await of('https://a.example')).faults).toHaveLength(1);
  });

  test('of sources, and a timeout that has room in the interval', async () => {
    const { config } = await load(
      'services: {frontend: {scrape: "http://127.0.0.1:8000/metrics", health: {url: "tcp://127.0.0.1:7933", interval: 2s}}}',
    );
    expect(config!.services[0]).toMatchObject({
      vocabulary: 'auto',
      scrape: { intervalMs: 15_000, timeoutMs: 10_000 },
      health: { intervalMs: 2000, timeoutMs: 2000, failureThreshold: 3, successThreshold: 1 },
    });
  });

  test('admin: ~ turns it off', async () => {
    expect((await load('admin: ~')).config!.admin).toBeUndefined();
  });

  test('no file at all', async () => {
    const { faults, config } = await loadConfig({ env: {}, cwd: dirname(agentFile('')) });
    expect(config).toBeUndefined();
    expect(faults.map(({ where, allowed }) => [where, allowed])).toEqual([
      ['agent.yaml', 'name one with -c, or write one with svc-agent init'],
    ]);
  });
});

describe('roles', () => {
  const three = 'services: {worker: {}, "1": {}, frontend: {}}\n';
  test.each<[string, string, Record<string, string>, string[], string[]]>([
    ['all services, in the order of the file', three, {}, [], ['worker', '1', 'frontend']],
    ['those of the file', `roles: [frontend, worker]\n${three}`, {}, [], ['worker', 'frontend']],
    [
      'the variable before the file',
      `roles: [frontend]\n${three}`,
      { SVC_AGENT_ROLES: ' worker, 1,' },
      [],
      ['worker', '1'],
    ],
    [
      'the option before the variable',
      three,
      { SVC_AGENT_ROLES: 'worker' },
      ['frontend', '1'],
      ['1', 'frontend'],
    ],
  ])('%s', async (_, content, env, options, expected) => {
    const { config } = await load(content, env, options);
    expect(config!.roles).toEqual(expected);
    expect(config!.services.filter(({ selected }) => selected).map(({ name }) => name)).toEqual(expected);
  });

  test.each<[string, string, Record<string, string>, string[], string]>([
    [
      'in the file',
      `roles: [fronted]\n${three}`,
      {},
      [],
      'roles[0]: unknown role, got "fronted"; did you mean frontend?',
    ],
    [
      'in the variable',
      three,
      { SVC_AGENT_ROLES: 'wroker' },
      [],
      'SVC_AGENT_ROLES: unknown role, got "wroker"; did you mean worker?',
    ],
    ['as an option', three, {}, ['zzz'], '--role: unknown role, got "zzz"; services has worker, 1, frontend'],
    [
      'without any service',
      'roles: [frontend]\n',
      {},
      [],
      'roles[0]: unknown role, got "frontend"; services has none',
    ],
  ])('an unknown role is a fault: %s', async (_, content, env, options, message) => {
    const { faults } = await load(content, env, options);
    expect(faults.map(faultLine)).toEqual([expect.stringContaining(message)]);
  });

  test.each(['', '# nothing but a comment\n', '{}\n', '---\n'])(
    'an empty file is a fault: %j',
    async (content) => {
      const { faults, file } = await load(content);
      expect(faults.map(faultLine)).toEqual([
        `${file}:1:1: empty; write a configuration with svc-agent init`,
      ]);
    },
  );

  test('a listener of a service that is not watched is in nobody’s way', async () => {
    const content =
      'services:\n  a: {metrics: {pullmetrics: {listenAddress: "0.0.0.0:9090"}}}\n  b: {metrics: {pullmetrics: {listenAddress: "0.0.0.0:9090"}}}\n';
    expect((await load(`roles: [a]\n${content}`)).faults).toEqual([]);
    expect((await load(content)).faults).toHaveLength(1);
  });
});

describe('secrets', () => {
  const store = (password: string) =>
    `stores: [{name: a, kind: mysql, address: "10.0.0.1:3306", password: ${password}}]\n`;
  test('literal: a warning that does not show it', async () => {
    const { warnings, config } = await load(store('hunter2'));
    expect(warnings.map(({ path }) => path)).toContain('stores[0].password');
    expect(JSON.stringify(warnings)).not.toContain('hunter2');
    expect(config!.stores[0]!.password).toBe('hunter2');
  });

  test('named: looked for, not read', async () => {
    const there = await load(store('{env: PASSWORD}'), { PASSWORD: 'hunter2' });
    expect(there.findings).toEqual([]);
    expect(JSON.stringify(there)).not.toContain('hunter2');
    expect((await load(store('{env: PASSWORD}'))).findings.map(({ path }) => path)).toEqual([
      'stores[0].password.env',
    ]);
    expect((await load(store('{file: /nowhere}'))).findings.map(({ path }) => path)).toEqual([
      'stores[0].password.file',
    ]);
  });
});

test.each([
  ['SELECT 1', { persistence: 'SELECT 1', visibility: 'SELECT 1' }],
  ['{visibility: SELECT 2}', { visibility: 'SELECT 2' }],
])('the statement of rehearsals for each database: %s', async (newestRow, expected) => {
  const { faults, config } = await load(`recovery: {rehearsal: {newestRow: ${newestRow}}}`);
  expect(faults).toEqual([]);
  expect(config?.recovery?.rehearsal?.newestRow).toEqual(expected);
});

test('a relative directory of rehearsals is that of the directory in which the agent was started', async () => {
  const { faults, config } = await load('recovery: {rehearsal: {directory: scratch}}');
  expect(faults).toEqual([]);
  expect(config?.recovery?.rehearsal?.directory).toBe(join(process.cwd(), 'scratch'));
});
