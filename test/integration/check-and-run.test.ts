import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { startAgent } from '../../src/agent/agent.ts';
import { check } from '../../src/agent/cli/check.ts';
import { loadConfig } from '../../src/agent/config/load.ts';
import type { ReadyConfig } from '../../src/agent/config/types.ts';
import { systemClock } from '../../src/core/clock.ts';
import { AgentError } from '../../src/core/errors.ts';
import { newFolder } from '../folder.ts';
import { fakeIo } from '../unit/cli/fake-io.ts';

const folder = newFolder(afterAll);
const file = join(folder, 'agent.yaml');

/** Whether a start refuses the configuration; a failure for another reason, such as a port in use, does not count. */
async function isRefusedByRun(): Promise<boolean> {
  const load = () => loadConfig({ file, env: {}, cwd: folder });
  const loaded = await load();
  if (!loaded.config || loaded.faults.length > 0) return true;
  try {
    const agent = await startAgent(loaded as ReadyConfig, { clock: systemClock, load });
    await agent.stop();
    return false;
  } catch (thrown) {
    const ofTheMachine = ['address_in_use', 'listen_failed', 'state_locked'];
    return !(thrown instanceof AgentError && ofTheMachine.includes(thrown.code));
  }
}

async function verdicts(config: object): Promise<{ check: boolean; run: boolean }> {
  const own = { stateDirectory: join(folder, 'state'), admin: { listenAddress: '127.0.0.1:0' } };
  writeFileSync(file, JSON.stringify({ ...own, log: { outputFile: join(folder, 'agent.log') }, ...config }));
  return { check: (await check(['-c', file], fakeIo(folder))) === 2, run: await isRefusedByRun() };
}

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const pattern = fc
  .array(
    fc.constantFrom('/', 'a', '-', '*', '?', '[', ']', '{', '}', ',', '!', '(', ')', '\\', '**', '.log', ' '),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  .map((parts) => `${folder}/logs/${parts.join('')}`);
const sender = fc.constantFrom(
  '10.0.0.0/8',
  '::1',
  'fd00::/8',
  '999.1.1.1',
  '10.0.0.0/33',
  '1.2.3',
  'fe80::/129',
);
const rule = fc.record({
  name: fc.constantFrom('svc_a_total', 'svc_b', 'svc_log_entries_total', 'le', 'a-b'),
  type: fc.constantFrom('counter', 'gauge', 'histogram'),
  value: maybe(fc.constantFrom('v', '')),
  labels: maybe(
    fc.dictionary(fc.constantFrom('a', 'le', '__x', 'run_id'), fc.constantFrom('f', ''), { maxKeys: 2 }),
  ),
  buckets: maybe(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 3 })),
});
const service = fc.record({
  logs: maybe(
    fc.record({
      paths: fc.array(pattern, { minLength: 1, maxLength: 2 }),
      exclude: maybe(fc.array(pattern, { maxLength: 1 })),
      rules: maybe(fc.array(rule, { maxLength: 2 })),
    }),
  ),
  health: maybe(
    fc.constantFrom('http://127.0.0.1:1/health', 'grpc://127.0.0.1:1', 'tcp://[::1]:1', 'http://:1'),
  ),
  scrape: maybe(fc.constantFrom('http://127.0.0.1:1/metrics', 'http://127.0.0.1:99999/')),
  statsd: maybe(
    fc.record({ listen: fc.constant('127.0.0.1:0'), senders: maybe(fc.array(sender, { maxLength: 2 })) }),
  ),
  vocabulary: maybe(fc.constantFrom('auto', 'svc', 'cadence', 'nosuch')),
});
const metrics = fc.oneof(
  fc.constant({ pullmetrics: { listenAddress: '127.0.0.1:0' } }),
  fc.record({ hostPort: fc.constantFrom('127.0.0.1:9', '[::1]:9') }).map((pushmetrics) => ({ pushmetrics })),
  fc
    .record({
      protocol: fc.constantFrom('otlp', 'remotewrite'),
      endpoint: fc.constantFrom('http://127.0.0.1:9/v1/metrics', 'http://127.0.0.1:9'),
    })
    .map((hostedmetrics) => ({ reportingInterval: '1h', hostedmetrics })),
);

test('check refuses a configuration if, and only if, run does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        services: fc.record({ frontend: maybe(service), history: maybe(service) }),
        metrics: maybe(metrics),
      }),
      async (config) => {
        const { check: byCheck, run: byRun } = await verdicts(config);
        expect(byCheck).toBe(byRun);
      },
    ),
    { numRuns: 150 },
  );
});

test.each<[string, object, boolean]>([
  [
    'an unknown vocabulary',
    { services: { a: { scrape: 'http://127.0.0.1:1/', vocabulary: 'nosuch' } } },
    true,
  ],
  [
    'a sender that is no address',
    { services: { a: { statsd: { listen: '127.0.0.1:0', senders: ['999.1.1.1'] } } } },
    true,
  ],
  ['a log that is a directory', { log: { outputFile: tmpdir() }, services: { a: {} } }, true],
  [
    'a state directory that cannot be written to',
    { stateDirectory: join(file, 'state'), services: { a: {} } },
    false,
  ],
])('%s: one verdict', async (_, config, isRefused) => {
  expect(await verdicts(config)).toEqual({ check: isRefused, run: isRefused });
});

test('what building finds has its place in the file', async () => {
  writeFileSync(file, 'services:\n  a:\n    scrape: http://127.0.0.1:1/\n    vocabulary: nosuch\n');
  const io = fakeIo(folder);
  expect(await check(['-c', file], io)).toBe(2);
  expect(io.err()).toContain(`${file}:4:17: services.a.vocabulary: unknown vocabulary, got "nosuch"`);
});
