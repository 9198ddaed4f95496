import { expect, test } from 'vitest';
import type { StoreKindRow } from '../../src/probes/stores/store.ts';
import { createStoreProbe } from '../../src/probes/stores/store-probe.ts';
import { bench, checkGauges, storeOn } from '../store-probe.ts';

const hourMs = 3_600_000;

test('the clock jumps a day ahead, then back: no change is made up, none shows for ever', async () => {
  const { deps, clock, logged } = bench();
  let startedAtMs = 1000;
  const row: StoreKindRow = {
    look: async () => ({
      serverVersion: 'any 1',
      roundTripMs: 1,
      startedAtMs,
      startKept: true,
      verdicts: [],
    }),
    faultOf: () => ({ reason: 'failed', msg: 'any' }),
  };
  const probe = createStoreProbe(storeOn(1), 'persistence', row, deps);
  let recalled: unknown;
  const uptime = async () => {
    const finding = await probe.check(new AbortController().signal, recalled);
    recalled = JSON.parse(JSON.stringify(finding.remember));
    return checkGauges(finding).uptime;
  };
  expect(await uptime()).toBe(1);
  clock.jumpTo(clock.nowMs() + 24 * hourMs);
  expect(await uptime()).toBe(1);
  startedAtMs = 2000;
  expect(await uptime()).toBe(0);
  clock.jumpTo(clock.nowMs() - 48 * hourMs);
  expect(await uptime()).toBe(0);
  clock.advance(hourMs);
  expect(await uptime()).toBe(1);
  expect(logged).toHaveLength(1);
});
