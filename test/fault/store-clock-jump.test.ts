import { expect, test } from 'vitest';
import { logState } from '../../src/probes/stores/postgres-checks.ts';
import type { ArchivedLog } from '../../src/probes/stores/store-report.ts';
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

// PostgreSQL lists the running transactions some seconds after anything of importance: if nothing else is in a segment, and the server
// has been idle for longer, all of its log is archived. How long it has been idle, no wall clock tells: neither this host's nor the server's, which jump or differ.
test.each<[string, { jumpMs?: number; aheadMs?: number; idleMs: number }, boolean]>([
  ['a server that has been idle for long enough', { idleMs: 61_000 }, true],
  ['the clock of this host jumps ahead', { jumpMs: hourMs, idleMs: 30_000 }, false],
  ['it jumps back', { jumpMs: -hourMs, idleMs: 61_000 }, true],
  ['the clock of the server is behind', { aheadMs: -hourMs, idleMs: 61_000 }, true],
  ['it is ahead', { aheadMs: hourMs, idleMs: 61_000 }, true],
])('%s', async (_, { jumpMs = 0, aheadMs = 0, idleMs }, isWhole) => {
  const { deps, clock } = bench();
  const startedAtMs = clock.nowMs() + aheadMs - hourMs;
  const facts = {
    ...{ lsn: '0/5000060', timeline: 1, startedAtMs },
    archiver: { failures: 0, failing: false, failedWal: null, archivedWal: '000000010000000000000004' },
    backlog: { waiting: 0, ageS: 0 },
    settings: { wal_segment_size: '16777216', bgwriter_delay: '200' },
  };
  const kind = kindOf(async () => ({
    identity: 'a',
    log: logState({ ...facts, nowMs: startedAtMs + hourMs + clock.monotonicMs() } as never),
  }));
  const probe = probeOf(storeOn(1), kind, deps);
  const poll = (recalled?: unknown) => probe.check(new AbortController().signal, recalled);
  const { remember, details } = await poll();
  expect(details!.log).toMatchObject({ position: '0/5000060' });
  expect(details!.log).not.toHaveProperty('wholeUntilMs');
  clock.advance(idleMs);
  clock.jumpTo(clock.nowMs() + jumpMs);
  const { log } = (await poll(JSON.parse(JSON.stringify(remember)))).details as { log: ArchivedLog };
  expect(log.wholeUntilMs).toBe(isWhole ? clock.nowMs() : undefined);
});

test('another process continues what the one before has seen, without the time between them', async () => {
  const seen = async (remembered: unknown, waitMs: number) => {
    const { deps, clock } = bench();
    const log = {
      position: '0/5000060',
      isArchivedWhole: false,
      empties: { afterMs: 60_000 },
    };
    const probe = probeOf(
      storeOn(1),
      kindOf(async () => ({ identity: 'a', log })),
      deps,
    );
    const first = await probe.check(new AbortController().signal, remembered);
    clock.advance(waitMs);
    return probe.check(new AbortController().signal, first.remember);
  };
  const before = await seen(undefined, 40_000);
  expect(before.details!.log).not.toHaveProperty('wholeUntilMs');
  expect((await seen(before.remember, 20_000)).details!.log).not.toHaveProperty('wholeUntilMs');
  expect((await seen(before.remember, 20_001)).details!.log).toMatchObject({
    wholeUntilMs: expect.any(Number),
  });
});
