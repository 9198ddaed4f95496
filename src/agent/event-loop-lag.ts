import { createHistogram, performance } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';
import { agentMetric } from '../core/agent-metrics.ts';
import type { Clock } from '../core/ports.ts';

/** The figures of an event loop. */
interface EventLoop {
  /** Time that has elapsed, monotonic, ms. */
  elapsedMs(): number;
  /** The part of the elapsed time that the loop spent waiting for events. */
  idleMs(): number;
  /** Calls back once in the turn that the next event begins. Does not wake the loop. */
  inNextTurn(call: () => void): void;
}

const ownLoop: EventLoop = {
  elapsedMs: () => performance.now(),
  idleMs: () => performance.nodeTiming.idleTime,
  // An immediate without a reference runs at the end of the next turn, but does not cause one.
  inNextTurn: (call) => void setImmediate(call).unref(),
};

const microsecondsPerSecond = 1e6;

/**
 * The delays of an event loop: how long each turn made the next work wait, and how late timers were. A sampler would wake an idle
 * process ten times a second, and would miss a turn between two samples.
 */
export function createEventLoopDelays(loop: EventLoop = ownLoop) {
  // The delays in microseconds: two digits of precision up to an hour take 25 kB.
  const delays = createHistogram({ lowest: 1, highest: 3600 * microsecondsPerSecond, figures: 2 });
  const note = (delayMs: number) => delays.record(Math.max(1, Math.round(delayMs * 1e3)));

  return {
    /** Records every turn from now on. The returned function ends the recording. */
    start(): () => void {
      let isEnded = false;
      let elapsedMs = loop.elapsedMs();
      let idleMs = loop.idleMs();
      const endTurn = () => {
        if (isEnded) return;
        const [nowMs, waitedMs] = [loop.elapsedMs(), loop.idleMs()];
        note(nowMs - elapsedMs - (waitedMs - idleMs));
        elapsedMs = nowMs;
        idleMs = waitedMs;
        loop.inNextTurn(endTurn);
      };
      loop.inNextTurn(endTurn);
      return () => {
        isEnded = true;
      };
    },
    /**
     * The same clock. The lateness of its timers shows when the process did not run at all while it waited: it was stopped, or
     * starved of CPU.
     */
    watch: (clock: Clock): Clock => ({
      ...clock,
      after(delayMs, call) {
        const dueMs = clock.monotonicMs() + Math.max(0, delayMs);
        return clock.after(delayMs, () => {
          note(clock.monotonicMs() - dueMs);
          call();
        });
      },
    }),
    /** The delays that were recorded since the last call, in seconds; 0 if there were none. */
    take() {
      const seconds = (value: number) => (delays.count > 0 ? value / microsecondsPerSecond : 0);
      const taken = {
        min: seconds(delays.min),
        max: seconds(delays.max),
        mean: seconds(delays.mean),
        stddev: seconds(delays.stddev),
        p50: seconds(delays.percentile(50)),
        p90: seconds(delays.percentile(90)),
        p99: seconds(delays.percentile(99)),
      };
      delays.reset();
      return taken;
    },
  };
}

export type EventLoopDelays = ReturnType<typeof createEventLoopDelays>;

/** The gauges of prom-client for the delays. They get these numbers instead of prom-client's own. */
const gauges = {
  min: ['svc_agent_nodejs_eventloop_lag_min_seconds', 'The minimum recorded event loop delay.'],
  max: ['svc_agent_nodejs_eventloop_lag_max_seconds', 'The maximum recorded event loop delay.'],
  mean: ['svc_agent_nodejs_eventloop_lag_mean_seconds', 'The mean of the recorded event loop delays.'],
  stddev: [
    'svc_agent_nodejs_eventloop_lag_stddev_seconds',
    'The standard deviation of the recorded event loop delays.',
  ],
  p50: [
    'svc_agent_nodejs_eventloop_lag_p50_seconds',
    'The 50th percentile of the recorded event loop delays.',
  ],
  p90: [
    'svc_agent_nodejs_eventloop_lag_p90_seconds',
    'The 90th percentile of the recorded event loop delays.',
  ],
  p99: [
    'svc_agent_nodejs_eventloop_lag_p99_seconds',
    'The 99th percentile of the recorded event loop delays.',
  ],
} as const;

/** Opens the gauges of the delays since the last collection. */
export function openDelayGauges(registry: Registry, delays: Pick<EventLoopDelays, 'take'>): void {
  const registers = [registry];
  new Gauge({
    name: 'svc_agent_event_loop_lag_seconds',
    help: agentMetric('svc_agent_event_loop_lag_seconds').help,
    registers,
    // This gauge comes before the gauges that it sets, so that all of them have the numbers of the same collection.
    collect() {
      const taken = delays.take();
      this.set(taken.max);
      for (const [number, gauge] of opened) gauge.set(taken[number]);
    },
  });
  const opened = (Object.keys(gauges) as (keyof typeof gauges)[]).map((number) => {
    const [name, help] = gauges[number];
    registry.removeSingleMetric(name);
    return [number, new Gauge({ name, help, registers })] as const;
  });
}
