import { createLineSinks, type LineSinks } from '../src/sources/logs/metrics/line-sinks.ts';
import type { ProcessEvents } from '../src/sources/logs/metrics/service-metrics.ts';
import type { LogsOptions } from '../src/sources/logs/options.ts';
import type { LineSink } from '../src/sources/logs/sink.ts';
import { type ManualClock, manualClock } from './clock.ts';
import { createFakeDrops, createFakeIntake, type FakeIntake } from './fake-intake.ts';
import { logDefaults } from './log-defaults.ts';

interface Counting {
  sinks: LineSinks;
  clock: ManualClock;
  drops: ReadonlyMap<string, number>;
  intake(service?: string): FakeIntake;
  /** The series of a service that are not 0, by `name{tags}`. */
  counts(service?: string): Record<string, number>;
  open(claimants?: readonly string[], state?: Uint8Array): LineSink;
}

/** Sinks over fake intakes, by default for one service `history`. */
export function createCounting(
  services: Record<string, Partial<LogsOptions>> = { history: {} },
  selected = Object.keys(services),
  processEvents?: ProcessEvents,
): Counting {
  const intakes = new Map<string, FakeIntake>();
  const drops = createFakeDrops();
  const clock = manualClock();
  const intake = (service = 'history') => {
    const known = intakes.get(service) ?? createFakeIntake();
    intakes.set(service, known);
    return known;
  };
  const filled = Object.entries(services).map(([name, some]) => [name, { ...logDefaults, ...some }]);
  const sinks = createLineSinks(
    { services: Object.fromEntries(filled), selected: new Set(selected) },
    { intakes: intake, drops, clock, processEvents },
  );
  return {
    sinks,
    clock,
    drops: drops.counts,
    intake,
    counts: (service) => Object.fromEntries([...intake(service).values].filter(([, value]) => value !== 0)),
    open: (claimants = Object.keys(services), state) => sinks.open({ path: 'a.log', claimants, state }),
  };
}

/**
 * Passes bytes to a sink as the tailer does: each chunk after the bytes that the sink needs again. Returns the rest, which would
 * be passed to `finish`.
 */
export function feed(sink: LineSink, ...chunks: (Buffer | string)[]): Buffer {
  let held = Buffer.alloc(0);
  for (const chunk of chunks) {
    const bytes = Buffer.concat([held, Buffer.from(chunk)]);
    held = bytes.subarray(sink.write(bytes, 0, bytes.length));
  }
  return held;
}

/** Feeds all of a file that is finished. */
export function feedWhole(sink: LineSink, ...chunks: (Buffer | string)[]): void {
  const rest = feed(sink, ...chunks);
  sink.finish(rest, 0, rest.length);
}

/** The number of lines of each kind, as far as the counts show it. */
export function tallyOf(counting: Counting, service?: string): Record<string, number> {
  const tally: Record<string, number> = {};
  for (const [series, value] of Object.entries(counting.counts(service))) {
    const kind = /^svc_log_entries_total/.test(series)
      ? 'entry'
      : /^svc_log_lines_dropped_total\{reason="(\w+)"/.exec(series)?.[1];
    if (kind) tally[kind] = (tally[kind] ?? 0) + value;
  }
  return tally;
}
