import { expect, it, onTestFinished } from 'vitest';
import { createEventLoopDelays } from '../../../src/agent/event-loop-lag.ts';
import { createSelfMetrics } from '../../../src/agent/self-metrics.ts';
import { manualClock } from '../../clock.ts';

/** An event loop whose turns a test controls. */
function playedLoop() {
  let elapsedMs = 0;
  let idleMs = 0;
  let call = () => {};
  const delays = createEventLoopDelays({
    elapsedMs: () => elapsedMs,
    idleMs: () => idleMs,
    inNextTurn: (next) => {
      call = next;
    },
  });
  return {
    delays,
    turn({ waitsMs, worksMs }: { waitsMs: number; worksMs: number }) {
      idleMs += waitsMs;
      elapsedMs += waitsMs + worksMs;
      call();
    },
  };
}

async function gauges({ registry }: ReturnType<typeof createSelfMetrics>): Promise<Map<string, number>> {
  const metrics = await registry.getMetricsAsJSON();
  return new Map(metrics.map(({ name, values }) => [name, values[0]?.value ?? Number.NaN]));
}

const lag = 'svc_agent_event_loop_lag_seconds';
const of = (number: string) => `svc_agent_nodejs_eventloop_lag_${number}_seconds`;
/** A delay with two digits of precision. */
const about = (seconds: number) => expect.closeTo(seconds, 2);

it('shows what turns worked, without what they waited, in the collection that follows', async () => {
  const { delays, turn } = playedLoop();
  onTestFinished(delays.start());
  const self = createSelfMetrics(delays);
  turn({ waitsMs: 60_000, worksMs: 0 });
  for (let n = 0; n < 97; n++) turn({ waitsMs: 10, worksMs: 20 });
  turn({ waitsMs: 0, worksMs: 350 });
  turn({ waitsMs: 900, worksMs: 50 });
  const shown = await gauges(self);
  expect(shown.get(lag)).toEqual(about(0.35));
  expect(shown.get(of('max'))).toBe(shown.get(lag));
  expect(shown.get(of('min'))).toEqual(about(0));
  expect(shown.get(of('p50'))).toEqual(about(0.02));
  expect(shown.get(of('p99'))).toEqual(about(0.05));
  expect(shown.get(of('mean'))).toEqual(about((97 * 20 + 350 + 50) / 100 / 1e3));
  expect([...(await gauges(self)).entries()].filter(([name]) => name === lag || name === of('max'))).toEqual([
    [lag, 0],
    [of('max'), 0],
  ]);
});

it('shows no delay of an idle process, and nothing after its end', () => {
  const { delays, turn } = playedLoop();
  const stop = delays.start();
  turn({ waitsMs: 15_000, worksMs: 0 });
  expect(delays.take().max).toEqual(about(0));
  stop();
  turn({ waitsMs: 0, worksMs: 5_000 });
  expect(delays.take()).toEqual({ min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 });
});

it('shows by its timers that the process stood still while it waited', () => {
  const { delays } = playedLoop();
  const clock = manualClock();
  let atMs: number | undefined;
  // The timer falls due, and fires 4 s later, as after SIGSTOP.
  const late = { ...clock, after: (delayMs: number, call: () => void) => clock.after(delayMs + 4_000, call) };
  delays.watch(late).after(1_000, () => {
    atMs = clock.monotonicMs();
  });
  clock.advance(5_000);
  expect(atMs).toBe(5_000);
  expect(delays.take().max).toEqual(expect.closeTo(4, 1));
});

it('sees a long turn of this process', async () => {
  const delays = createEventLoopDelays();
  onTestFinished(delays.start());
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  const startMs = performance.now();
  while (performance.now() < startMs + 120);
  await turn();
  await turn();
  expect(delays.take().max).toBeGreaterThan(0.119);
});
