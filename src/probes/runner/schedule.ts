import { createHash } from 'node:crypto';
import type { Clock, Log } from '../../core/ports.ts';
import type { ProbeSkipReason } from '../../core/reasons.ts';
import type { Finding, ProbeDeps, ProbeRow, ProbeSchedule } from '../probe.ts';
import { createOpened, type Outcome } from './probe-run.ts';
import { createProbeSeries, type ProbeIntakes } from './probe-series.ts';
import {
  createProbeTracker,
  type Memories,
  type OnResult,
  type ProbeReport,
  type ResultHistoryOptions,
  resultOf,
} from './probe-state.ts';

/** A granted slot. Its two parts are released separately; releasing a part twice has no effect. */
export interface RunSlot {
  /** Releases the concurrency slot. */
  release(): void;
  releaseLane(): void;
}

interface SlotRequest {
  /** The lane, in which one run at a time is allowed. */
  lane?: string;
  /**
   * Whether a person requested the run: then it comes before all others and needs no concurrency slot, but still waits for its
   * lane.
   */
  isUrgent?: boolean;
  start(turn: RunSlot): void;
}

/** Limits concurrent runs, and runs per lane to one; first come, first served. */
interface RunSlots {
  /** Calls `start` as soon as the run may begin, possibly at once. Returns a function that withdraws the request. */
  request(request: SlotRequest): () => void;
}

export function createRunSlots({ concurrency }: { concurrency: number }): RunSlots {
  const urgent = new Set<SlotRequest>();
  const waiting = new Set<SlotRequest>();
  const busyLanes = new Set<string>();
  let running = 0;

  const once = (give: () => void) => {
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      give();
      pump();
    };
  };
  const mayRun = ({ lane, isUrgent }: SlotRequest) =>
    (isUrgent || running < concurrency) && (lane === undefined || !busyLanes.has(lane));

  const start = (request: SlotRequest) => {
    const { lane, isUrgent } = request;
    const places = isUrgent ? 0 : 1;
    running += places;
    if (lane !== undefined) busyLanes.add(lane);
    request.start({
      release: once(() => {
        running -= places;
      }),
      releaseLane: once(() => {
        if (lane !== undefined) busyLanes.delete(lane);
      }),
    });
  };
  /** Starts waiting requests. A request that waits for its lane does not block the requests behind it. */
  const pump = () => {
    for (const queue of [urgent, waiting]) {
      for (const request of queue) if (mayRun(request) && queue.delete(request)) start(request);
    }
  };

  return {
    request(request) {
      const queue = request.isUrgent ? urgent : waiting;
      queue.add(request);
      pump();
      return () => void queue.delete(request);
    },
  };
}

/** When a probe runs, as delays from now. */
interface Phase {
  /** The first run, soon after the start. */
  firstMs: number;
  /** The first of the regular runs, which then have the interval between them. */
  thenMs: number;
}

interface PhaseOptions {
  /** The agent's name. */
  instance: string;
  /** The probe's name. */
  name: string;
  intervalMs: number;
  /** The phase that the probe shares with others. */
  phase?: ProbeSchedule['phase'];
}

/** First runs are spread over this time. */
const spreadMs = 10_000;

/** A number from 0 up to 1 that is constant for a probe of an agent, and evenly distributed over probes and agents. */
export function shareOf(instance: string, name: string): number {
  const digest = createHash('sha256')
    .update(JSON.stringify([instance, name]))
    .digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/**
 * When a probe runs. Regular runs are aligned to the wall clock, at `share × interval` past a multiple of the interval, so that a
 * restart does not move them and agents that start together spread them. The wall clock is read only here; later jumps change
 * nothing. Regular runs start at least half an interval after the first run.
 */
export function phaseOf({ instance, name, intervalMs, phase }: PhaseOptions, nowMs: number): Phase {
  const share = shareOf(instance, phase?.name ?? name);
  const firstMs = phase?.delayMs ?? Math.floor(share * Math.min(intervalMs, spreadMs));
  const phaseMs = Math.floor(share * intervalMs) + (phase?.delayMs ?? 0);
  const earliestMs = Math.ceil(firstMs + intervalMs / 2);
  const pastMs = (nowMs + earliestMs - (phaseMs % intervalMs)) % intervalMs;
  return { firstMs, thenMs: pastMs === 0 ? earliestMs : earliestMs + intervalMs - pastMs };
}

/** The due times of one probe. */
interface Ticks {
  /** The time of the next tick, in monotonic ms. */
  readonly dueMs: number;
  cancel(): void;
}

/**
 * Calls `tick` at each due time. Due times are computed from the start, so that late timers do not add up; `missed` is
 * the number of further due times that passed before this call, as after a suspend.
 */
export function startTicks(
  { firstMs, thenMs, intervalMs }: Phase & { intervalMs: number },
  clock: Clock,
  tick: (missed: number) => void,
): Ticks {
  const startMs = clock.monotonicMs();
  let dueMs = startMs + firstMs;
  let cancel = () => {};

  const run = () => {
    const nowMs = clock.monotonicMs();
    dueMs = dueMs < startMs + thenMs ? startMs + thenMs : dueMs + intervalMs;
    const missed = nowMs < dueMs ? 0 : Math.floor((nowMs - dueMs) / intervalMs) + 1;
    dueMs += missed * intervalMs;
    arm();
    tick(missed);
  };
  const arm = () => {
    cancel = clock.after(dueMs - clock.monotonicMs(), run);
  };

  arm();
  return {
    get dueMs() {
      return dueMs;
    },
    cancel: () => cancel(),
  };
}

export interface ScheduledProbe {
  readonly row: ProbeRow;
  report(): ProbeReport;
  /** The finding of the last run; none once it is too old to be shown. */
  latest(): Finding | undefined;
  /**
   * Runs now, or joins the run under way; resolves with its result in the report. If the last result is younger than a
   * second, or the run cannot start within the timeout, the report stays as it is.
   */
  checkNow(): Promise<void>;
  /** Moves its series to other intakes, and continues. */
  move(row: ProbeRow, intakes: ProbeIntakes): void;
  /** Ends the probe and its series, except the durable ones if they `stay`; resolves when everything is released. */
  end(stay?: 'durable'): Promise<void>;
}

export interface ScheduleOptions extends ResultHistoryOptions {
  instance: string;
}

interface WatchDeps extends ProbeDeps {
  turns: RunSlots;
  memories: Memories;
  onResult?: OnResult;
  clock: Clock;
  log: Log;
}

/** A younger result is not refreshed. */
const freshMs = 1000;
/** Intervals without a result after which the gauges are removed. */
const vanishAfter = 3;

/** Starts the schedule; the first run is due within 10 s. */
export function scheduleProbe(
  first: ProbeRow,
  intakes: ProbeIntakes,
  options: ScheduleOptions,
  deps: WatchDeps,
): ScheduledProbe {
  const { clock, turns, memories } = deps;
  const { intervalMs, timeoutMs } = first.schedule;
  const { name, kind, lane } = first;
  const opened = createOpened(first, deps);
  const results = createResults(first, intakes, options, deps);
  const waiters = new Set<() => void>();
  let isEnded = false;
  let withdraw = () => {};
  let isWaiting = false;
  /** The run under way until the probe itself has settled, which may be long after the result. */
  let current: { turn: RunSlot; hasResult: boolean } | undefined;

  const run = async (turn: RunSlot) => {
    const begun = { turn, hasResult: false };
    isWaiting = false;
    current = begun;
    const attempt = opened.run(memories.recall(name));
    const outcome = await attempt.outcome;
    begun.hasResult = true;
    turn.release();
    if (outcome && !isEnded) results.take(outcome);
    for (const resume of waiters) resume();
    await attempt.settled;
    current = undefined;
    turn.releaseLane();
  };
  const ask = (isUrgent: boolean) => {
    withdraw();
    isWaiting = true;
    withdraw = turns.request({ lane, isUrgent, start: (turn) => void run(turn) });
  };

  const { instance } = options;
  const phase = phaseOf({ instance, name, intervalMs, phase: first.schedule.phase }, clock.nowMs());
  const ticks = startTicks({ ...phase, intervalMs }, clock, (missed) => {
    results.skip('backlog', missed);
    if (current) results.skip('overlap');
    else if (isWaiting) results.skip('backlog');
    else ask(false);
  });

  /** Releases the lane also if the probe ignores the signal. */
  const close = async () => {
    await opened.close();
    current?.turn.releaseLane();
  };

  return {
    get row() {
      return results.row;
    },
    report: () => ({
      name,
      kind,
      target: results.row.target,
      ...results.report(),
      intervalMs,
      timeoutMs,
      nextRunMs: Math.round(clock.nowMs() + ticks.dueMs - clock.monotonicMs()),
      isRunning: current !== undefined,
      progress: opened.progress(),
    }),
    latest: results.latest,
    checkNow() {
      if (isEnded || results.isFresh() || current?.hasResult) return Promise.resolve();
      return new Promise((resolve) => {
        const cancel = clock.after(timeoutMs, () => {
          if (!current) resume();
        });
        const resume = () => {
          cancel();
          waiters.delete(resume);
          resolve();
        };
        waiters.add(resume);
        if (!current) ask(true);
      });
    },
    move: results.move,
    end(stay) {
      isEnded = true;
      ticks.cancel();
      withdraw();
      results.end(stay);
      for (const resume of waiters) resume();
      return close();
    },
  };
}

/** What a probe's runs result in: its series, its state with its history, and what it remembers. */
interface Results extends Pick<ScheduledProbe, 'row' | 'latest' | 'move'> {
  /** Takes an outcome in one step: what is remembered and what is counted from it belong together. */
  take(outcome: Outcome): void;
  skip(reason: ProbeSkipReason, runs?: number): void;
  report(): ReturnType<ReturnType<typeof createProbeTracker>['report']> &
    Pick<ProbeReport, 'ageMs' | 'skipped'>;
  /** Whether the last result need not be refreshed. */
  isFresh(): boolean;
  /** Removes the series, except the durable ones if they `stay`. */
  end(stay?: 'durable'): void;
}

function createResults(
  first: ProbeRow,
  intakes: ProbeIntakes,
  options: ScheduleOptions,
  deps: WatchDeps,
): Results {
  const { clock, memories, log } = deps;
  const { name } = first;
  const tracker = createProbeTracker(first, options, log);
  const skipped: Record<ProbeSkipReason, number> = { overlap: 0, backlog: 0 };
  let row = first;
  let series = createProbeSeries(row, intakes);
  let resultAtMs = Number.NEGATIVE_INFINITY;
  let latest: Finding | undefined;
  let cancelVanish = () => {};

  const vanishLater = () => {
    cancelVanish();
    cancelVanish = clock.after(vanishAfter * first.schedule.intervalMs, () => {
      latest = undefined;
      series.vanish();
    });
  };
  const stillShown = first.stillShown?.(memories.recall(name), clock.nowMs()) ?? [];
  if (stillShown.length > 0) {
    series.recall(stillShown);
    vanishLater();
  }

  return {
    get row() {
      return row;
    },
    latest: () => latest,
    isFresh: () => clock.monotonicMs() - resultAtMs < freshMs,
    report: () => ({
      ...tracker.report(),
      ...(resultAtMs > Number.NEGATIVE_INFINITY && { ageMs: Math.round(clock.monotonicMs() - resultAtMs) }),
      skipped: { ...skipped },
    }),
    skip(reason, runs = 1) {
      if (runs === 0) return;
      skipped[reason] += runs;
      series.skipped(reason, runs);
    },
    take(outcome) {
      const result = resultOf(outcome, clock.nowMs());
      if (outcome.memory !== undefined) memories.keep(name, outcome.memory);
      series.show({ ...outcome, atMs: result.atMs, newState: tracker.take(result) });
      resultAtMs = clock.monotonicMs();
      latest = outcome.finding;
      vanishLater();
      for (const { level, msg, fields } of outcome.finding.events ?? []) log.write(level, msg, fields);
      deps.onResult?.(row, result);
    },
    move(next, nextIntakes) {
      series = series.reopen(next, nextIntakes);
      row = next;
    },
    end(stay) {
      cancelVanish();
      if (stay === 'durable') series.withdraw();
      else series.discard();
    },
  };
}
