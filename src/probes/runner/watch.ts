import type { Clock, Log } from '../../core/ports.ts';
import type { ProbeSkipReason } from '../../core/reasons.ts';
import type { ProbeDeps, ProbeRow } from '../probe.ts';
import type { Outcome } from './attempt.ts';
import type { ProbeIntakes } from './intakes.ts';
import type { Memories } from './memories.ts';
import { createOpened } from './opened.ts';
import { phaseOf } from './phase.ts';
import { type HearResult, type ProbeReport, resultOf } from './report.ts';
import { createProbeSeries } from './series.ts';
import { createStanding, type HistoryOptions } from './standing.ts';
import { startTicks } from './ticks.ts';
import type { Turn, Turns } from './turns.ts';

/** One probe that is run time and again. */
export interface Watch {
  readonly row: ProbeRow;
  report(): ProbeReport;
  /**
   * Looks now, or joins the look under way; resolves with its result in the report. Where the last result is
   * younger than a second, or its turn does not come within the timeout, the report stays as it is.
   */
  look(): Promise<void>;
  /** Goes on as it is, with its series in other intakes. */
  move(row: ProbeRow, intakes: ProbeIntakes): void;
  /** Ends it, and its series but for the durable ones if those `stay`; resolves when all is given back. */
  end(stay?: 'durable'): Promise<void>;
}

export interface WatchOptions extends HistoryOptions {
  instance: string;
}

export interface WatchDeps extends ProbeDeps {
  turns: Turns;
  memories: Memories;
  hear?: HearResult;
  clock: Clock;
  log: Log;
}

/** A younger result is not asked for again. */
const freshMs = 1000;
/** Intervals without a result after which nothing is shown as current any more. */
const vanishAfter = 3;

/** Begins at once: the first look is due within 10 s. */
export function startWatch(
  first: ProbeRow,
  intakes: ProbeIntakes,
  options: WatchOptions,
  deps: WatchDeps,
): Watch {
  const { clock, turns, memories } = deps;
  const { intervalMs, timeoutMs } = first.schedule;
  const { name, kind, lane } = first;
  const opened = createOpened(first, deps);
  const standing = createStanding(first, options, deps.log);
  const skipped: Record<ProbeSkipReason, number> = { overlap: 0, backlog: 0 };
  const lookers = new Set<() => void>();
  let row = first;
  let series = createProbeSeries(row, intakes);
  let isEnded = false;
  let resultAtMs = Number.NEGATIVE_INFINITY;
  let cancelVanish = () => {};
  let withdraw = () => {};
  let isWaiting = false;
  /** The look under way, until the probe itself has settled, which may be long after the result. */
  let current: { turn: Turn; hasResult: boolean } | undefined;

  const skip = (reason: ProbeSkipReason, runs = 1) => {
    if (runs === 0) return;
    skipped[reason] += runs;
    series.skipped(reason, runs);
  };

  /** In one step: what is remembered and what is counted from it belong together. */
  const take = (outcome: Outcome) => {
    const result = resultOf(outcome, clock.nowMs());
    if (outcome.memory !== undefined) memories.keep(name, outcome.memory);
    series.show({ ...outcome, atMs: result.atMs, turned: standing.take(result) });
    resultAtMs = clock.monotonicMs();
    cancelVanish();
    cancelVanish = clock.after(vanishAfter * intervalMs, () => series.vanish());
    for (const { level, msg, fields } of outcome.finding.events ?? []) deps.log.write(level, msg, fields);
    deps.hear?.(row, result);
  };

  const run = async (turn: Turn) => {
    const begun = { turn, hasResult: false };
    isWaiting = false;
    current = begun;
    const attempt = opened.look(memories.recall(name));
    const outcome = await attempt.outcome;
    begun.hasResult = true;
    turn.leave();
    if (outcome && !isEnded) take(outcome);
    for (const looked of lookers) looked();
    await attempt.gone;
    current = undefined;
    turn.leaveLane();
  };
  const ask = (isUrgent: boolean) => {
    withdraw();
    isWaiting = true;
    withdraw = turns.ask({ lane, isUrgent, start: (turn) => void run(turn) });
  };

  const phase = phaseOf({ instance: options.instance, name, intervalMs }, clock.nowMs());
  const ticks = startTicks({ ...phase, intervalMs }, clock, (missed) => {
    skip('backlog', missed);
    if (current) skip('overlap');
    else if (isWaiting) skip('backlog');
    else ask(false);
  });

  /** A reload can free a lane that a probe holds which does not listen. */
  const close = async () => {
    await opened.close();
    current?.turn.leaveLane();
  };

  return {
    get row() {
      return row;
    },
    report: () => ({
      name,
      kind,
      target: row.target,
      ...standing.report(),
      intervalMs,
      timeoutMs,
      nextRunMs: Math.round(clock.nowMs() + ticks.dueMs - clock.monotonicMs()),
      isRunning: current !== undefined,
      skipped: { ...skipped },
    }),
    look() {
      const isFresh = clock.monotonicMs() - resultAtMs < freshMs;
      if (isEnded || isFresh || current?.hasResult) return Promise.resolve();
      return new Promise((resolve) => {
        const cancel = clock.after(timeoutMs, () => {
          if (!current) looked();
        });
        const looked = () => {
          cancel();
          lookers.delete(looked);
          resolve();
        };
        lookers.add(looked);
        if (!current) ask(true);
      });
    },
    move(next, nextIntakes) {
      series = series.reopen(next, nextIntakes);
      row = next;
    },
    end(stay) {
      isEnded = true;
      ticks.cancel();
      cancelVanish();
      withdraw();
      if (stay === 'durable') series.withdraw();
      else series.giveUp();
      for (const looked of lookers) looked();
      return close();
    },
  };
}
