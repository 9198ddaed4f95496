import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/**
 * The V8 flag for a small heap. With V8's defaults the young generation grows to 32 MiB, and garbage may take as much memory as
 * all live objects: pages of a real service then take 40 MiB more, and 100,000 series 150 MiB, for no noticeable difference in
 * CPU time. `--max-semi-space-size` takes effect only on Node's command line; the factor by which the young generation grows is
 * read at each collection. A size given on the command line is not changed.
 */
const smallHeap = '--optimize-for-size';
const smallYoungGeneration = '--semi-space-growth-factor=1';

/**
 * The HTTP client's parser is WebAssembly. V8 also optimizes it, which takes 20 MiB for a moment and 5 MiB permanently. This
 * saves no noticeable time, because the parser only passes bodies on. Node 24 and later do not use the 5 MiB.
 */
const baselineWasm = '--liftoff-only';
const hasCostlyWasm = Number.parseInt(process.versions.v8, 10) < 13;

/** Sets the flags. They affect memory that is allocated later, so this must be called before anything else. */
export function keepHeapSmall(): void {
  const given = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`;
  if (hasCostlyWasm) setFlagsFromString(baselineWasm);
  setFlagsFromString(smallHeap);
  if (!given.includes('semi-space')) setFlagsFromString(smallYoungGeneration);
}

/** The heap that the agent needs without a source: its code, and what every configuration needs. */
const ownHeapBytes = 24 * 1024 * 1024;
/**
 * The heap that a source of a service needs: its checks, its own series, and what the verdict remembers of it. Measured with 300
 * services of each kind, from 57 KiB (statsd) to 100 KiB (logs).
 */
const sourceHeapBytes = 100 * 1024;
/**
 * The share of the remaining heap for series. The rest is for garbage that is not collected yet, and for a page that is being
 * read.
 */
const seriesShare = 0.75;
/** The part of a container's memory that may be heap; the rest is for code, stacks and buffers. */
const heapShare = 0.5;
const leastHeapBytes = 8 * 1024 * 1024;

/** The memory that the process has for its heap, from a flag, the container or the machine; bytes. */
export function givenHeapBytes(): number {
  // Without a limit Node returns 0 or 2^64.
  const container = process.constrainedMemory() || Infinity;
  return Math.min(getHeapStatistics().heap_size_limit, heapShare * Math.min(container, totalmem()));
}

/** The heap that the agent needs before it receives a series; bytes. */
export const neededHeapBytes = (sources: number): number => ownHeapBytes + sources * sourceHeapBytes;

/** The part of the heap that received series may use beside this number of sources; bytes. */
export function seriesHeapBytes(sources: number): number {
  return Math.max(leastHeapBytes, Math.floor(seriesShare * (givenHeapBytes() - neededHeapBytes(sources))));
}

/** The lines of pages are outside the heap. They may use as much memory as this part of the heap. */
const lineShare = 0.3;

/** The memory that the lines of all pages may use; bytes. */
export const lineBytes = (): number => lineShare * givenHeapBytes();
