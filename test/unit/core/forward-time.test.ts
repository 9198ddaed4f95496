import { expect, test } from 'vitest';
import { monotonicWallTime } from '../../../src/core/clock.ts';
import { manualClock } from '../../clock.ts';

/** Each row has the events in order, `jump` to a wall time or `pass` ms, each with the expected time after it. */
test.each<[string, string]>([
  ['is the wall clock', 'pass 5: 1005, pass 0: 1005'],
  ['follows a jump forward', 'jump 9000: 9000, pass 1: 9001'],
  ['goes on over a jump back', 'jump 100: 1000, pass 7: 1007, pass 7: 1014'],
  ['is the wall clock again once that has caught up', 'jump 990: 1000, jump 1500: 1500, pass 1: 1501'],
  ['tells whole milliseconds', 'pass 0.75: 1000, jump 0: 1000, pass 0.5: 1001'],
])('%s', (_, steps) => {
  const clock = manualClock(1000);
  const now = monotonicWallTime(clock);
  for (const step of steps.split(', ')) {
    const [what, ms, expected] = step.split(/:? /);
    if (what === 'jump') clock.jumpTo(Number(ms));
    else clock.advance(Number(ms));
    expect(now(), step).toBe(Number(expected));
  }
});
