import { stat, statfs } from 'node:fs/promises';
import { type Address, isLoopback } from '../../core/address.ts';
import { errorText } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { formatDuration } from '../../core/text-formats.ts';
import { untilAborted } from '../connection.ts';
import type { CheckResult, StorageDirectory } from './store-report.ts';

/** The check fails below this share of free space, whatever the trend. */
const leastShare = 0.05;
/** Below this share, the check also fails if the file system will be full within `soonMs`. */
const watchedShare = 0.4;
const soonMs = 4 * 3_600_000;

/** Free space is recorded at this interval, and this number of records is stored: two hours. A trend needs a quarter of that. */
const recordEveryMs = 300_000;
const mostRecords = 24;
const shortestTrendMs = 1_800_000;

interface FileSystemSpace {
  /** The content of the file system: `data and WAL`. */
  holds: string;
  freeBytes: number;
  totalBytes: number;
}

/** The space of one file system, and what identifies it between polls. */
interface MeasuredSpace extends FileSystemSpace {
  key: string;
}

interface FreeSpace {
  /** Checks the space. Undefined for a store that reports no directories. Rejects when the signal aborts. */
  check(
    directories: readonly StorageDirectory[] | undefined,
    address: Address,
    signal: AbortSignal,
  ): Promise<CheckResult | undefined>;
}

/** Free bytes (for users that are not root) and all bytes of a directory's file system, and its device. */
export type MeasureSpace = (
  path: string,
) => Promise<{ device: number; freeBytes: number; totalBytes: number }>;

const measureLocal: MeasureSpace = async (path) => {
  const [{ dev }, { bavail, bfree, blocks, bsize }] = await Promise.all([stat(path), statfs(path)]);
  // This is computed as in df: blocks that are reserved for root are neither free nor used.
  return { device: dev, freeBytes: bavail * bsize, totalBytes: (blocks - bfree + bavail) * bsize };
};

/**
 * The check `free_space` of one store: the free space of its directories, and from the polls of the last two hours the time until
 * each file system is full. Stores report their directories, not the free space: if the store's address is loopback, the agent
 * queries the operating system.
 */
export function createFreeSpace(
  clock: Pick<Clock, 'monotonicMs'>,
  measure: MeasureSpace = measureLocal,
): FreeSpace {
  const trends = new Map<string, Trend>();
  /** Whether a measurement is under way. A file system that hangs occupies one thread of the process, not one for each poll. */
  let isMeasuring = false;

  const measureAll = async (directories: readonly StorageDirectory[]) => {
    const found = new Map<string, MeasuredSpace>();
    const faults: string[] = [];
    const add = (key: string, { holds, freeBytes, totalBytes }: FileSystemSpace) => {
      const known = found.get(key);
      if (known) known.holds += ` and ${holds}`;
      else found.set(key, { key, holds, freeBytes, totalBytes });
    };
    for (const { holds, path } of directories) {
      try {
        const { device, ...bytes } = await measure(path);
        if (bytes.totalBytes > 0) add(String(device), { holds, ...bytes });
        else faults.push(`${holds}: the file system reports no size`);
      } catch (thrown) {
        faults.push(`${holds}: ${errorText(thrown)}`);
      }
    }
    return { spaces: [...found.values()], faults };
  };

  return {
    async check(directories, address, signal) {
      if (directories === undefined) return undefined;
      const unknown = (found: string): CheckResult => ({ check: 'free_space', holds: 'unknown', found });
      if (directories.length === 0) return unknown('the directories are hidden');
      if (!isLoopback(address.host)) return unknown('the agent is not on the store’s host');
      if (isMeasuring) return unknown('the file system does not answer');
      isMeasuring = true;
      const measuring = measureAll(directories).finally(() => {
        isMeasuring = false;
      });
      const { spaces, faults } = await untilAborted(measuring, signal);
      if (spaces.length === 0) return unknown(faults.join('; '));
      const assessed = spaces.map((space) => {
        const trend = (trends.get(space.key) ?? []).slice(1 - mostRecords);
        trends.set(space.key, trend);
        return assessSpace(space, trend, clock.monotonicMs());
      });
      for (const key of trends.keys()) if (!spaces.some((space) => space.key === key)) trends.delete(key);
      const isGood = assessed.every(({ holds }) => holds);
      const found = [...assessed.map((one) => one.found), ...faults].join('; ');
      return { check: 'free_space', holds: isGood && faults.length > 0 ? 'unknown' : isGood, found };
    },
  };
}

/** Records of free space, oldest first. */
type Trend = { atMs: number; freeBytes: number }[];

function assessSpace({ holds, freeBytes, totalBytes }: FileSystemSpace, trend: Trend, atMs: number) {
  const fullInMs = timeUntilFull([...trend, { atMs, freeBytes }]);
  if (atMs - (trend.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= recordEveryMs)
    trend.push({ atMs, freeBytes });
  const share = freeBytes / totalBytes;
  const isFullSoon = share < watchedShare && fullInMs !== undefined && fullInMs < soonMs;
  const found = [
    `${holds}: ${inGibibytes(freeBytes)} of ${inGibibytes(totalBytes)} GiB free`,
    ...(fullInMs === undefined ? [] : [`full in about ${formatDuration(roundedMs(fullInMs))}`]),
  ].join(', ');
  return { holds: share >= leastShare && !isFullSoon, found };
}

const inGibibytes = (bytes: number) => (bytes / 1024 ** 3).toFixed(1);
/** A duration rounded to minutes, or to hours if it is longer than a day. */
const roundedMs = (ms: number) =>
  ms < 172_800_000 ? Math.ceil(ms / 60_000) * 60_000 : Math.round(ms / 3_600_000) * 3_600_000;
/** The longest forecast: nobody acts on a disk that will be full later than this. */
const longestForecastMs = 30 * 86_400_000;

/**
 * The time until the file system is full, from a least-squares line through all points; undefined if free space does not shrink,
 * or too few points are known.
 */
function timeUntilFull(points: Trend): number | undefined {
  const last = points.at(-1)!;
  if (last.atMs - points[0]!.atMs < shortestTrendMs) return undefined;
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanMs = mean(points.map(({ atMs }) => atMs));
  const meanBytes = mean(points.map(({ freeBytes }) => freeBytes));
  const covariance = mean(points.map(({ atMs, freeBytes }) => (atMs - meanMs) * (freeBytes - meanBytes)));
  const variance = mean(points.map(({ atMs }) => (atMs - meanMs) ** 2));
  const bytesPerMs = covariance / variance;
  if (!(bytesPerMs < 0)) return undefined;
  const fullInMs = last.freeBytes / -bytesPerMs;
  return fullInMs <= longestForecastMs ? fullInMs : undefined;
}
