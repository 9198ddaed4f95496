import type { Intake, RawTags, Summary } from '../../core/model.ts';
import type { Clock } from '../../core/ports.ts';
import type { RegistryDrop } from '../../core/reasons.ts';
import { Handle } from '../../core/registry/handles.ts';
import type { LazyStore } from '../../core/registry/value-stores.ts';
import { addTo, clearPart, createSketch, quantilesOf, type Sketch } from '../../core/sketch.ts';
import type { SliceQueue } from '../../core/slices.ts';

/** A summary whose quantiles the agent computes, shared by all lines of one raw series. */
export interface OwnSummary {
  readonly handle: Summary;
  /** Adds an observation; `weight` is the number of observations that it represents. */
  observe(value: number, weight?: number): void;
  release(): void;
}

/**
 * Summaries with quantiles of the last 10 minutes, in a window that moves in 5 steps as in Prometheus' clients. Their sum and
 * count are totals. A quantile is NaN without observations.
 */
export interface Summaries {
  open(name: string, tags: RawTags): OwnSummary;
  /** Starts moving the window. Returns the stop. */
  start(): () => void;
}

interface SummariesDeps {
  intake: Intake;
  /** The store that holds the summaries. */
  store: LazyStore;
  clock: Clock;
  slices: SliceQueue;
}

/** The defaults of the service's own reporter. */
const quantiles: readonly number[] = [0.5, 0.75, 0.95, 0.99, 0.999];
const shape = { quantiles: quantiles.map(String) };
const steps = 5;
const stepMs = 120_000;

/** The current step, which all windows share. */
interface Now {
  step: number;
}

interface SharedSummary extends OwnSummary {
  readonly sketch: Sketch;
  sum: number;
  count: number;
  /** The step to which the sketch was last moved. */
  step: number;
  owners: number;
  isChanged: boolean;
}

interface KeptDeps {
  now: Now;
  onChange(kept: SharedSummary): void;
  onGone(kept: SharedSummary): void;
}

const hasPlace = (handle: Summary) => !(handle instanceof Handle) || handle.at >= 0;

/** Counts an observation that cannot be added, as the registry does for histograms. */
function drop(handle: Summary, reason: RegistryDrop): void {
  if (handle instanceof Handle) handle.callbacks.drop(reason);
}

function catchUp(kept: SharedSummary, { step }: Now): void {
  const passed = Math.min(step - kept.step, steps);
  for (let n = 1; n <= passed; n++) clearPart(kept.sketch, (kept.step + n) % steps);
  kept.step = step;
}

function createKept(handle: Summary, { now, onChange, onGone }: KeptDeps): SharedSummary {
  const kept: SharedSummary = {
    handle,
    sketch: createSketch(steps),
    sum: 0,
    count: 0,
    step: now.step,
    owners: 0,
    isChanged: false,
    observe(value, weight = 1) {
      const share = value * weight;
      if (!hasPlace(handle)) drop(handle, 'refused_series');
      else if (!Number.isFinite(share)) drop(handle, 'not_finite');
      else {
        if (kept.step !== now.step) catchUp(kept, now);
        addTo(kept.sketch, now.step % steps, value, weight);
        kept.sum += share;
        kept.count += weight;
      }
      if (!kept.isChanged) onChange(kept);
    },
    release() {
      kept.owners -= 1;
      if (kept.owners === 0) onGone(kept);
      handle.release();
    },
  };
  return kept;
}

/** Calls `onStep` for each step that begins. Returns the stop. */
function startSteps(clock: Clock, onStep: (step: number) => void): () => void {
  const startMs = clock.monotonicMs();
  let cancel = (): void => {};
  const waitFor = (step: number) => {
    cancel = clock.after(startMs + step * stepMs - clock.monotonicMs(), () => {
      // Timers may fire slightly early, and late after the machine was suspended.
      const reached = Math.max(step, Math.floor((clock.monotonicMs() - startMs) / stepMs));
      onStep(reached);
      waitFor(reached + 1);
    });
  };
  waitFor(1);
  return () => cancel();
}

export function createSummaries({ intake, store, clock, slices }: SummariesDeps): Summaries {
  const now: Now = { step: 0 };
  const all = new Map<Summary, SharedSummary>();
  const changed = new Set<SharedSummary>();
  const parts = new Float64Array(quantiles.length + 2);

  const onChange = (kept: SharedSummary): void => {
    kept.isChanged = true;
    changed.add(kept);
  };
  const onGone = (kept: SharedSummary): void => {
    all.delete(kept.handle);
    changed.delete(kept);
  };
  /** Writes the numbers of a summary. A summary without cells is written once it has cells. */
  const write = (kept: SharedSummary): void => {
    if (!hasPlace(kept.handle)) return;
    changed.delete(kept);
    kept.isChanged = false;
    catchUp(kept, now);
    quantilesOf(kept.sketch, quantiles, parts);
    parts[quantiles.length] = kept.sum;
    parts[quantiles.length + 1] = kept.count;
    kept.handle.set(parts);
  };
  /** Updates the summaries without new observations, too: their oldest step ends. */
  const sweep = (): void => {
    const left = all.values();
    slices.whenIdle(() => {
      for (let n = 0; n < 64; n++) {
        const { value: kept, done } = left.next();
        if (done) return true;
        write(kept);
      }
      return false;
    });
  };

  store.beforeRead(() => changed.forEach(write));
  return {
    open(name, tags) {
      const handle = intake.summary(name, tags, shape);
      const kept = all.get(handle) ?? createKept(handle, { now, onChange, onGone });
      all.set(handle, kept);
      kept.owners += 1;
      onChange(kept);
      return kept;
    },
    start: () =>
      startSteps(clock, (step) => {
        now.step = step;
        sweep();
      }),
  };
}
