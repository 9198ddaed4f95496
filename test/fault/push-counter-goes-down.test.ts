import { expect, test } from 'vitest';
import { aggregator, startPush } from '../push.ts';
import { decodeLine } from '../push-lines.ts';
import { testRegistry } from '../registry.ts';
import { until } from '../until.ts';

test('a scraped role that restarts between flushes: no negative delta, no repeated total', async () => {
  const target = await aggregator();
  const { registry, clock, page } = testRegistry();
  const { intake, store } = page();
  const requests = intake.counter('svc_frontend_client_requests', {});
  const latency = intake.histogram('svc_frontend_client_latency', {}, { bounds: [1] });
  const show = (total: number) => {
    clock.advance(15_000);
    requests.set(total);
    latency.set([total, total, total / 2, total]);
    store.swap();
  };
  const rig = await startPush(
    { hostPort: `127.0.0.1:${target.port}`, tagFormat: 'dogstatsd' },
    { gather: async ({ takes }) => registry.view(takes), hasExternalTotals: ({ relayed }) => relayed },
  );
  // 1,000 were counted before the first look; 200 are added; then the role restarts, and once more unseen, with a higher total
  // than before.
  for (const total of [1000, 1200, 30, 70]) {
    show(total);
    await rig.flush();
  }
  show(5);
  show(90);
  await rig.flush();
  const role = () =>
    target
      .lines()
      .map((line) => decodeLine(line, 'dogstatsd'))
      .filter(({ name }) => name.startsWith('svc_frontend'));
  const values = (name: string) =>
    role()
      .filter((line) => line.name === name)
      .map(({ value }) => value);
  await until('four deltas are there', () => values('svc_frontend_client_requests').length === 4);
  expect(values('svc_frontend_client_requests')).toEqual([200, 30, 40, 90]);
  // The histogram restarted unseen and has a higher total, so only the difference is known.
  expect(values('svc_frontend_client_latency_count')).toEqual([200, 30, 40, 20]);
  expect(values('svc_frontend_client_latency_sum')).toEqual([100, 15, 20, 10]);
});
