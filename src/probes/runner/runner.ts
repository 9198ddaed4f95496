import { setMaxListeners } from 'node:events';
import { AgentError } from '../../core/errors.ts';
import type { Durable } from '../../core/ports.ts';
import type { Finding, ProbeDeps, ProbeRow } from '../probe.ts';
import { createOpened } from './probe-run.ts';
import { type DurableIntake, isDurable, type ProbeIntakes, restoreDurable } from './probe-series.ts';
import {
  createMemories,
  type OnResult,
  type ProbeReport,
  type ProbeResult,
  resultOf,
} from './probe-state.ts';
import {
  createRunSlots,
  type RunSlot,
  type ScheduledProbe,
  type ScheduleOptions,
  scheduleProbe,
} from './schedule.ts';

export interface RunnerOptions extends ScheduleOptions {
  /** The maximum number of concurrent runs. Default 8. */
  concurrency?: number;
}

interface RunnerDeps extends ProbeDeps {
  onResult?: OnResult;
}

/**
 * Runs probes: each at its own interval, never two runs of one probe at a time, one per lane, and a limited number at once. The
 * runner handles schedule, timeout, series and memory; a probe only checks.
 */
export interface Runner {
  /**
   * Switches to these rows and intakes in one step. A probe with the same key continues, with its series in the new intakes. A
   * probe with another key starts again with what it remembered.
   */
  configure(rows: readonly ProbeRow[], intakes: ProbeIntakes): void;
  /** The reports in the order of the rows. */
  reports(): ProbeReport[];
  /** Runs a probe now, or joins its running check; undefined if no probe with this name is configured. */
  checkNow(name: string): Promise<ProbeReport | undefined>;
  /** What probes remember. It is restored before the first `configure`, and frozen in the same step as the counters. */
  readonly durable: Durable;
  /** Aborts every run, waits up to 2 s for running checks, and closes all probes. Durable totals stay in the state. */
  stop(): Promise<void>;
}

function checkNames(rows: readonly ProbeRow[]): void {
  const seen = new Set<string>();
  for (const { name } of rows) {
    if (seen.has(name))
      throw new AgentError('internal', { where: 'probes', what: 'duplicate name', got: name });
    seen.add(name);
  }
}

export function createRunner(options: RunnerOptions, deps: RunnerDeps): Runner {
  const turns = createRunSlots({ concurrency: options.concurrency ?? 8 });
  const memories = createMemories();
  const declared = new WeakSet<DurableIntake>();
  const ending = new Set<Promise<void>>();
  let watches = new Map<string, ScheduledProbe>();

  const latest = (name: string) => watches.get(name)?.latest();
  const end = (watch: ScheduledProbe, stay?: 'durable') => {
    const ended = watch.end(stay);
    ending.add(ended);
    void ended.then(() => ending.delete(ended));
  };
  /** Restores durable counters of new intakes; returns functions that release those that no row uses. */
  const declare = (rows: readonly ProbeRow[], intakes: ProbeIntakes) => {
    const counting = rows.filter(({ shows }) => shows.counters?.some(isDurable));
    const wanted = new Set(counting.map(({ service }) => intakes.durable(service)));
    return [...wanted].flatMap((intake) => {
      if (declared.has(intake)) return [];
      declared.add(intake);
      return [restoreDurable(intake)];
    });
  };

  return {
    configure(rows, intakes) {
      checkNames(rows);
      const releases = declare(rows, intakes);
      const before = watches;
      watches = new Map();
      memories.use(new Set(rows.map(({ name }) => name)));
      for (const row of rows) {
        const known = before.get(row.name);
        if (known?.row.key === row.key) {
          known.move(row, intakes);
          before.delete(row.name);
          watches.set(row.name, known);
        } else {
          watches.set(row.name, scheduleProbe(row, intakes, options, { ...deps, latest, turns, memories }));
        }
      }
      // The old probes end after the new ones have opened their series, so that a series that both have continues.
      for (const watch of before.values()) end(watch);
      for (const release of releases) release();
    },
    reports: () => [...watches.values()].map((watch) => watch.report()),
    async checkNow(name) {
      const watch = watches.get(name);
      await watch?.checkNow();
      return watch?.report();
    },
    durable: memories,
    async stop() {
      for (const watch of watches.values()) end(watch, 'durable');
      watches = new Map();
      await Promise.all(ending);
    },
  };
}

export interface OnceOptions {
  /** The maximum number of concurrent checks. Default 8. */
  concurrency?: number;
  /** Aborts the running checks; no others start. */
  signal?: AbortSignal;
}

interface OnceDeps extends ProbeDeps {
  onResult?: OnResult;
}

export interface Probed {
  row: ProbeRow;
  result: ProbeResult;
  /** The finding, with the gauges that the result leaves out. */
  finding: Finding;
}

/**
 * Runs each probe once, without schedule, series or memory; one at a time per lane. Backups are compared with their store, if its
 * rows are among these: they wait for it. Resolves when everything is closed, with the results in the order of the rows; rows that
 * the signal cut off have no result. Never rejects.
 */
export async function probeOnce(
  rows: readonly ProbeRow[],
  deps: OnceDeps,
  { concurrency = 8, signal }: OnceOptions = {},
): Promise<Probed[]> {
  if (signal?.aborted) return [];
  // Every row listens to the signal.
  if (signal) setMaxListeners(0, signal);
  const turns = createRunSlots({ concurrency });
  const run = (row: ProbeRow, own: OnceDeps) =>
    new Promise<Probed | undefined>((resolve) => {
      if (signal?.aborted) return resolve(undefined);
      let withdraw = () => {};
      const cutOff = () => {
        withdraw();
        resolve(undefined);
      };
      signal?.addEventListener('abort', cutOff);
      withdraw = turns.request({
        lane: row.lane,
        start(turn) {
          signal?.removeEventListener('abort', cutOff);
          resolve(runProbe(row, turn, own, signal));
        },
      });
    });
  const stores = new Map(
    rows.filter(({ kind }) => kind === 'store').map((row) => [row.name, run(row, deps)] as const),
  );
  const polled = new Map<string, Finding>();
  const ofBackups = stores.size === 0 ? deps : { ...deps, latest: (name: string) => polled.get(name) };
  const asked = Promise.all(stores.values()).then((all) => {
    for (const probed of all) if (probed) polled.set(probed.row.name, probed.finding);
  });
  const runs = rows.map(async (row) => {
    if (row.kind !== 'backup' && row.kind !== 'recovery') return stores.get(row.name) ?? run(row, deps);
    await asked;
    return run(row, ofBackups);
  });
  return (await Promise.all(runs)).filter((probed) => probed !== undefined);
}

async function runProbe(
  row: ProbeRow,
  turn: RunSlot,
  deps: OnceDeps,
  signal: AbortSignal | undefined,
): Promise<Probed | undefined> {
  const opened = createOpened(row, deps);
  const attempt = opened.run(undefined);
  signal?.addEventListener('abort', attempt.end);
  const outcome = await attempt.outcome;
  signal?.removeEventListener('abort', attempt.end);
  turn.release();
  const result = outcome && resultOf(outcome, deps.clock.nowMs());
  if (result) deps.onResult?.(row, result);
  await opened.close();
  turn.releaseLane();
  return result && { row, result, finding: outcome.finding };
}
