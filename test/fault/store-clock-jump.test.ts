import { expect, test } from 'vitest';
import { bench, checkGauges, kindOf, probeOf, storeOn } from '../store-probe.ts';

const hourMs = 3_600_000;

test('the clock jumps a day ahead, then back: no change is made up, none shows for ever', async () => {
  const { deps, clock, logged } = bench();
  let startedAtMs = 1000;
  const kind = kindOf(async () => ({ startedAtMs, startTimeIsExact: true }));
  const probe = probeOf(storeOn(1), kind, deps);
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
