import { expect, test } from 'vitest';
import { bench, gauge, kindOf, probeOf, storeOn } from '../store-probe.ts';

const kind = kindOf(async () => ({}));
const runCheck = (script: string, b = bench()) => {
  const schema = { persistence: '0.8', command: [process.execPath, '-e', script] };
  const probe = probeOf(storeOn(1, { schema, timeoutMs: 20_000 }), kind, b.deps);
  return probe.check(new AbortController().signal, undefined);
};

test.each([
  [
    'fails',
    'console.log("0.8"); console.error("no such keyspace"); process.exit(3)',
    'exit status 3: no such keyspace',
  ],
  ['prints no version', 'console.log("none")', 'printed no version'],
  ['prints without end', 'process.stdout.write("0.8\\n".repeat(1e6))', 'more than 65536 bytes'],
])('a schema tool that %s: the version is unknown, the store is up', async (_, script, why) => {
  const finding = await runCheck(script);
  expect(finding.reason).toBeUndefined();
  expect(finding.details).toMatchObject({ schema: null, schemaUnknown: expect.stringContaining(why) });
  expect(gauge(finding, 'svc_store_schema_compatible')).toBeUndefined();
});

test('one that hangs is ended in half the time there is', async () => {
  const b = bench();
  const pending = runCheck('setInterval(() => {}, 1000)', b);
  // The check has reached the command once its timer waits.
  while (b.clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
  b.clock.advance(10_000);
  const finding = await pending;
  expect(finding.reason).toBeUndefined();
  expect(finding.details!.schemaUnknown).toContain('did not end in time');
});
