import { expect, test } from 'vitest';
import type { Clock } from '../../src/core/ports.ts';
import { createRunner } from '../../src/probes/runner/runner.ts';
import { manualClock } from '../clock.ts';
import { testRegistry } from '../registry.ts';
import { dueBed, probeDeps, rest, scripted } from '../unit/probes/runner/bed.ts';

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

test('what was due in the meantime is run once, the rest counts as backlog, and the beat stays', async () => {
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
  const runner = createRunner({ instance: 'host-1' }, { ...probeDeps(), clock });
  const probe = scripted('health/a', { intervalMs: 60_000, answers: async () => ({ msg: 'ok' }) });
  runner.configure([probe.row], { immediate: () => intake, kept: () => intake, durable: () => intake });
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
