import type { Clock } from '../../core/ports.ts';
import { type StatusReport, severeEntries } from '../report.ts';

/** One sample of every series. */
export interface Tick {
  /** The number of the sample since the start. A reader that misses a sample fetches all. */
  tick: number;
  atMs: number;
  values: Readonly<Record<string, number>>;
}

/** The values for the plots of the status page. They are lost with the process. */
export interface History {
  /** Starts sampling; does nothing if it has started before. */
  start(): void;
  stop(): void;
  /** The newest sample; undefined before the first. */
  newest(): Tick | undefined;
  /**
   * Every series, oldest value first, NaN for missing values: a little-endian 32-bit length, that many bytes of JSON
   * (`HistoryHeader`), and 32-bit floats, series by series.
   */
  packed(): Buffer;
}

export interface HistoryHeader {
  tick: number;
  /** Time of the newest value, ms since the epoch. */
  atMs: number;
  stepMs: number;
  /** The number of values of each series. */
  points: number;
  series: readonly string[];
}

interface SeriesHistoryOptions {
  stepMs?: number;
  /** The number of values that are stored per series. */
  points?: number;
  /** The number of series that are stored; further series are ignored. */
  mostSeries?: number;
}

interface HistoryDeps {
  report(): StatusReport;
  /** Called before each sample, so that counts move even if nothing else commits. */
  commit(): Promise<unknown>;
  clock: Clock;
}

/** Four hours at 5 s: 11.25 KiB per series, 1.4 MiB for all 128. */
const defaults: Required<SeriesHistoryOptions> = { stepMs: 5_000, points: 2880, mostSeries: 128 };

/** Receives the values of one sample; `rate` is for values that only rise. */
interface HistorySampler {
  gauge(name: string, value: number | undefined): void;
  rate(name: string, total: number): void;
}

const rateLevels = ['debug', 'info', 'warn', 'error', 'fatal', 'other'];

/** Samples everything that is plotted. Of too many series, the first in this order are stored. */
function sample(report: StatusReport, { gauge, rate }: HistorySampler): void {
  const { probes, scrapes, entries, replication, reporters, process: own } = report;
  gauge('agent/rss', own.rssBytes);
  rate('agent/cpu', own.cpuSeconds);
  gauge('agent/series', report.series.total);
  rate(
    'agent/drops',
    report.drops.reduce((sum, { count }) => sum + count, 0),
  );
  const levels: Record<string, number> = {};
  for (const { levels: own } of entries.services)
    for (const [level, count] of Object.entries(own)) levels[level] = (levels[level] ?? 0) + count;
  for (const level of rateLevels) if (levels[level] !== undefined) rate(`log/${level}`, levels[level]);
  gauge(
    'log/lag',
    report.logs.reduce((sum, { lagBytes }) => sum + lagBytes, 0),
  );
  for (const { name, kind, last } of probes) {
    if (!last || (kind !== 'health' && kind !== 'store' && kind !== 'cluster')) continue;
    gauge(`${name}/up`, last.ok ? 1 : 0);
    if (last.ok) gauge(`${name}/seconds`, last.durationMs / 1e3);
  }
  for (const { service, up, lastFailure } of scrapes)
    if (up || lastFailure) gauge(`scrape/${service}/up`, up ? 1 : 0);
  for (const { source, target, lagSeconds } of replication)
    gauge(`replication/${source} to ${target}`, lagSeconds);
  for (const { block, queueBytes } of reporters) gauge(`queue/${block}`, queueBytes);
  for (const { service, levels } of entries.services) rate(`errors/${service}`, severeEntries(levels));
}

/** The values of all series, in one ring of 32-bit floats for each. */
interface Rings {
  /** The number of the newest step; -1 before the first. */
  readonly tick: number;
  /** Moves forward by this many steps. Steps that were missed, for example while the machine was suspended, have no values. */
  advance(steps: number): void;
  /** Sets the value of the newest step. False for a series beyond `mostSeries`. */
  set(name: string, value: number): boolean;
  /** See `History.packed`. */
  packed(times: Pick<HistoryHeader, 'atMs' | 'stepMs'>): Buffer;
}

/**
 * Creates the rings. A ring is allocated when its series appears and freed when it has no value left: memory is bounded by
 * `points` × `mostSeries` × 4 bytes.
 */
function createRings({ points, mostSeries }: Required<Omit<SeriesHistoryOptions, 'stepMs'>>): Rings {
  /** `lastAt` is the tick of the newest value that is a number. */
  const rings = new Map<string, { values: Float32Array; lastAt: number }>();
  let tick = -1;

  const ringOf = (name: string) => {
    const known = rings.get(name);
    if (known || rings.size >= mostSeries) return known;
    const ring = { values: new Float32Array(points).fill(Number.NaN), lastAt: tick };
    rings.set(name, ring);
    return ring;
  };

  return {
    get tick() {
      return tick;
    },
    advance(steps) {
      for (let i = 0; i < Math.min(steps, points); i++) {
        tick++;
        for (const { values } of rings.values()) values[tick % points] = Number.NaN;
      }
      for (const [name, { lastAt }] of rings) if (tick - lastAt >= points) rings.delete(name);
    },
    set(name, value) {
      const ring = ringOf(name);
      if (!ring) return false;
      ring.values[tick % points] = value;
      ring.lastAt = tick;
      return true;
    },
    packed(times) {
      const length = Math.min(tick + 1, points);
      const header: HistoryHeader = { tick, ...times, points: length, series: [...rings.keys()] };
      const text = Buffer.from(JSON.stringify(header));
      const size = Buffer.alloc(4);
      size.writeUInt32LE(text.length);
      const parts = [...rings.values()].flatMap(({ values }) => {
        const end = (tick + 1) % points;
        const bytes = (from: number, to: number) =>
          Buffer.from(values.buffer, values.byteOffset + 4 * from, 4 * (to - from));
        return length < points ? [bytes(0, length)] : [bytes(end, points), bytes(0, end)];
      });
      return Buffer.concat([size, text, ...parts]);
    },
  };
}

/** Samples the status every `stepMs`. */
export function createHistory(
  options: SeriesHistoryOptions,
  { report, commit, clock }: HistoryDeps,
): History {
  const { stepMs, ...size } = { ...defaults, ...options };
  const rings = createRings(size);
  let totals = new Map<string, number>();
  let atMs = 0;
  let sampledMs: number | undefined;
  let newest: Tick | undefined;
  let cancel = () => {};
  let isRunning = false;

  const take = () => {
    const nowMs = clock.monotonicMs();
    const elapsedMs = sampledMs === undefined ? stepMs : nowMs - sampledMs;
    sampledMs = nowMs;
    rings.advance(Math.max(1, Math.round(elapsedMs / stepMs)));
    const now = report();
    atMs = Date.parse(now.now);
    const values: Record<string, number> = {};
    const next = new Map<string, number>();
    const gauge = (name: string, value: number | undefined) => {
      if (value !== undefined && rings.set(name, value)) values[name] = value;
    };
    const rate = (name: string, total: number) => {
      next.set(name, total);
      const last = totals.get(name);
      // A total that fell was reset.
      if (last !== undefined && total >= last) gauge(name, (total - last) / (elapsedMs / 1e3));
    };
    sample(now, { gauge, rate });
    totals = next;
    newest = { tick: rings.tick, atMs, values };
  };

  const run = async () => {
    // A failing commit must not end the history.
    await commit().catch(() => {});
    if (!isRunning) return;
    take();
    cancel = clock.after(stepMs, () => void run());
  };

  return {
    start() {
      if (isRunning) return;
      isRunning = true;
      // The first sample is not taken at once, so that it does not slow the start of the agent.
      cancel = clock.after(Math.min(stepMs, 1_000), () => void run());
    },
    stop() {
      isRunning = false;
      cancel();
    },
    newest: () => newest,
    packed: () => rings.packed({ atMs, stepMs }),
  };
}
