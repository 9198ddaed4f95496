import { expect, test } from 'vitest';
import type { Clock } from '../../src/core/ports.ts';
import type { OnResult } from '../../src/probes/runner/probe-state.ts';
import { createRunner } from '../../src/probes/runner/runner.ts';
import { manualClock } from '../clock.ts';
import { testRegistry } from '../registry.ts';
import { dueBed, probeDeps, rest, type Script, scripted } from '../unit/probes/runner/bed.ts';

/** A clock whose timers fire when `wake` is called, however late that is. */
function sleepyClock() {
  const hand = manualClock();
  let waiting: { dueMs: number; call: () => void }[] = [];
  const clock: Clock = {
    ...hand,
    after(delayMs, call) {
      const timer = { dueMs: hand.monotonicMs() + delayMs, call };
      waiting.push(timer);
      return () => {
        waiting = waiting.filter((one) => one !== timer);
      };
    },
  };
  const wake = async (afterMs: number) => {
    hand.advance(afterMs);
    for (;;) {
      const due = waiting.find(({ dueMs }) => dueMs <= hand.monotonicMs());
      if (!due) break;
      waiting = waiting.filter((one) => one !== due);
      due.call();
    }
    await rest();
  };
  return { clock, hand, wake };
}

/** A runner with one probe, which runs first within 10 s. */
function sleepyBed(script: Script = {}) {
  const { clock, hand, wake } = sleepyClock();
  const { registry } = testRegistry();
  const intake = registry.intake({
    service: '',
    component: 'probes',
    relayed: false,
    rank: 0,
    store: registry.immediate,
    globalTags: {},
    received: false,
    tagService: false,
  });
  const heard: [ok: boolean, reason: string | undefined, durationMs: number][] = [];
  const onResult: OnResult = (_, { ok, reason, durationMs }) => void heard.push([ok, reason, durationMs]);
  const runner = createRunner({ instance: 'host-1' }, { ...probeDeps(), clock, onResult });
  const probe = scripted('health/a', script);
  runner.configure([probe.row], { immediate: () => intake, kept: () => intake, durable: () => intake });
  return { hand, wake, runner, probe, heard };
}

test('what was due in the meantime is run once, the rest counts as backlog, and the beat stays', async () => {
  const { hand, wake, runner, probe } = sleepyBed({ answers: async () => ({ msg: 'ok' }) });
  await wake(10_000);
  const beat = runner.reports()[0]!.nextRunMs;
  expect(probe.checks).toHaveLength(1);

  await wake(beat - hand.nowMs() + 5 * 60_000 + 7);
  expect(probe.checks).toHaveLength(2);
  expect(runner.reports()[0]).toMatchObject({
    skipped: { overlap: 0, backlog: 5 },
    nextRunMs: beat + 6 * 60_000,
  });
  await wake(59_993);
  expect(probe.checks).toHaveLength(3);
  await runner.stop();
});

test('an answer that came in the meantime is not too slow', async () => {
  const probe = scripted('health/a');
  const bed = await dueBed(probe);
  // The result is there, but the event loop has not read it yet when the timeout fires.
  setImmediate(() => void probe.lastCheck.finds());
  await bed.pass(6000);
  expect(probe.checks).toHaveLength(1);
  expect(bed.heard).toEqual([['health/a', true]]);
});

const hourMs = 3_600_000;

test('the answer of a healthy target after an hour counts, without that hour in its latency', async () => {
  const { wake, probe, heard } = sleepyBed();
  await wake(10_000);
  await wake(20);
  await wake(hourMs);
  expect([probe.checks.length, probe.lastCheck.signal.aborted, heard]).toEqual([1, false, []]);
  await wake(30);
  await probe.lastCheck.finds({ phasesMs: { first_byte: hourMs } });
  // The timer that noticed the hour was due half a second after the start: 20 + 30 ms are ours, 480 ms the timer waited.
  expect(heard).toEqual([[true, undefined, 530]]);
});

test('a target that still does not answer after an hour gets its whole timeout, twice, and then fails once', async () => {
  const { wake, probe, heard } = sleepyBed();
  await wake(10_000);
  await wake(hourMs);
  for (const _ of Array(10)) await wake(500);
  expect(probe.checks.map(({ signal }) => signal.aborted)).toEqual([true]);
  expect(heard).toEqual([]);
  await probe.lastCheck.finds({ reason: 'first_byte_timeout' });
  expect(probe.checks).toHaveLength(2);
  for (const _ of Array(9)) await wake(500);
  expect(probe.lastCheck.signal.aborted).toBe(false);
  await wake(500);
  expect(probe.lastCheck.signal.aborted).toBe(true);
  await probe.lastCheck.finds({ reason: 'first_byte_timeout' });
  expect(heard).toMatchObject([[false, expect.any(String), 5000]]);
});

test.each([
  ['the process was stopped', (bed: ReturnType<typeof sleepyBed>) => bed.wake(hourMs)],
  [
    'the machine was suspended: only the wall clock went on',
    async ({ hand }: ReturnType<typeof sleepyBed>) => hand.jumpTo(hand.nowMs() + hourMs),
  ],
])('a connection that the peer gave up meanwhile is no failure of it: %s', async (_, pause) => {
  const bed = sleepyBed();
  await bed.wake(10_000);
  await pause(bed);
  await bed.probe.lastCheck.finds({ reason: 'reset', msg: 'the connection was reset' });
  expect([bed.probe.checks.length, bed.heard]).toEqual([2, []]);
  await bed.probe.lastCheck.finds();
  expect(bed.heard).toEqual([[true, undefined, 0]]);
});

test('a failure without a pause counts at once, even if timers were a little late', async () => {
  const { wake, probe, heard } = sleepyBed();
  await wake(10_000);
  await wake(599);
  await probe.lastCheck.finds({ reason: 'reset' });
  expect([probe.checks.length, heard]).toEqual([1, [[false, 'reset', 599]]]);
});

test('a probe that does not settle after a pause has no result, and does not run a second time beside itself', async () => {
  const { wake, probe, heard } = sleepyBed();
  await wake(10_000);
  await wake(hourMs);
  for (const _ of Array(20)) await wake(500);
  expect([probe.checks.length, heard]).toEqual([1, []]);
});

test('a process that stands still in every check finds out that its target is down', async () => {
  const { wake, probe, heard } = sleepyBed();
  await wake(10_000);
  for (const checks of [1, 2, 3]) {
    expect([probe.checks.length, heard]).toEqual([checks, []]);
    await wake(hourMs);
    for (const _ of Array(10)) await wake(500);
    await probe.lastCheck.finds({ reason: 'first_byte_timeout' });
  }
  // The timer that noticed the hour was due half a second after the start.
  expect(heard).toMatchObject([[false, expect.any(String), 5500]]);
});
