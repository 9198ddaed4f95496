import { setMaxListeners } from 'node:events';
import type { Finding, ProbeDeps, ProbeRow } from '../probe.ts';
import { createOpened } from './probe-run.ts';
import { type OnResult, type ProbeResult, resultOf } from './probe-state.ts';
import { createTurns, type Turn } from './schedule.ts';

export interface OnceOptions {
  /** Concurrent checks. Default 8. */
  concurrency?: number;
  /** Aborts the checks under way; no other starts. */
  signal?: AbortSignal;
}

export interface OnceDeps extends ProbeDeps {
  /** Called with each result. */
  onResult?: OnResult;
}

export interface Probed {
  row: ProbeRow;
  result: ProbeResult;
  /** With the gauges that the result leaves out. */
  finding: Finding;
}

/**
 * Runs each probe once, without schedule, series or memory; one at a time per lane. Resolves when everything is closed,
 * with the results in the order of the rows; rows that the signal cut off have none. Never rejects.
 */
export async function probeOnce(
  rows: readonly ProbeRow[],
  deps: OnceDeps,
  { concurrency = 8, signal }: OnceOptions = {},
): Promise<Probed[]> {
  if (signal?.aborted) return [];
  // Every row listens to it.
  if (signal) setMaxListeners(0, signal);
  const turns = createTurns({ concurrency });
  const runs = rows.map((row) => {
    return new Promise<Probed | undefined>((resolve) => {
      let withdraw = () => {};
      const cutOff = () => {
        withdraw();
        resolve(undefined);
      };
      signal?.addEventListener('abort', cutOff);
      withdraw = turns.ask({
        lane: row.lane,
        start(turn) {
          signal?.removeEventListener('abort', cutOff);
          resolve(runProbe(row, turn, deps, signal));
        },
      });
    });
  });
  return (await Promise.all(runs)).filter((probed) => probed !== undefined);
}

async function runProbe(
  row: ProbeRow,
  turn: Turn,
  deps: OnceDeps,
  signal: AbortSignal | undefined,
): Promise<Probed | undefined> {
  const opened = createOpened(row, deps);
  const attempt = opened.run(undefined);
  signal?.addEventListener('abort', attempt.end);
  const outcome = await attempt.outcome;
  signal?.removeEventListener('abort', attempt.end);
  turn.leave();
  const result = outcome && resultOf(outcome, deps.clock.nowMs());
  if (result) deps.onResult?.(row, result);
  await opened.close();
  turn.leaveLane();
  return result && { row, result, finding: outcome.finding };
}
