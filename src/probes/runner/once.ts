import { setMaxListeners } from 'node:events';
import type { ProbeDeps, ProbeRow } from '../probe.ts';
import { createTurns, type Turn } from './concurrency.ts';
import { createOpened } from './probe-run.ts';
import { type HearResult, type ProbeResult, resultOf } from './probe-state.ts';

export interface OnceOptions {
  /** How many look at once. Default 8. */
  concurrency?: number;
  /** Ends it: looks under way are aborted, others do not begin. */
  signal?: AbortSignal;
}

export interface OnceDeps extends ProbeDeps {
  /** Told each result as it comes. */
  hear?: HearResult;
}

export interface Looked {
  row: ProbeRow;
  result: ProbeResult;
}

/**
 * Looks once at each row, without schedule, series or memory; one of each lane at a time. Resolves with the
 * results in the rows' order, when all is closed; rows that the signal cut off have none. Never rejects.
 */
export async function lookOnce(
  rows: readonly ProbeRow[],
  deps: OnceDeps,
  { concurrency = 8, signal }: OnceOptions = {},
): Promise<Looked[]> {
  if (signal?.aborted) return [];
  // Every row listens to it.
  if (signal) setMaxListeners(0, signal);
  const turns = createTurns({ concurrency });
  const looks = rows.map((row) => {
    return new Promise<Looked | undefined>((resolve) => {
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
          resolve(lookAt(row, turn, deps, signal));
        },
      });
    });
  });
  return (await Promise.all(looks)).filter((looked) => looked !== undefined);
}

async function lookAt(
  row: ProbeRow,
  turn: Turn,
  deps: OnceDeps,
  signal: AbortSignal | undefined,
): Promise<Looked | undefined> {
  const opened = createOpened(row, deps);
  const attempt = opened.look(undefined);
  signal?.addEventListener('abort', attempt.end);
  const outcome = await attempt.outcome;
  signal?.removeEventListener('abort', attempt.end);
  turn.leave();
  const result = outcome && resultOf(outcome, deps.clock.nowMs());
  if (result) deps.hear?.(row, result);
  await opened.close();
  turn.leaveLane();
  return result && { row, result };
}
