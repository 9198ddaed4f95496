import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/**
 * With V8's defaults the young generation grows to 32 MiB, and garbage may take as much as all that lives: pages of a
 * real service then take 40 MiB more, and 100,000 series 150 MiB, for no noticeable difference in CPU time.
 * `--max-semi-space-size` counts only on Node's command line; the factor by which the young generation grows is read at
 * each collection. A size given on the command line is kept.
 */
const smallHeap = '--optimize-for-size';
const smallYoungGeneration = '--semi-space-growth-factor=1';

/**
 * The HTTP client's parser is WebAssembly. V8 also optimizes it, which takes 20 MiB for a moment and keeps 5 of
 * it. It saves no noticeable time, because the parser only passes bodies on. Node 24 and later do not keep them.
 */
const baselineWasm = '--liftoff-only';
const hasCostlyWasm = Number.parseInt(process.versions.v8, 10) < 13;

/** Takes effect for what is allocated from then on: call it before anything else. */
export function keepHeapSmall(): void {
  const given = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`;
  if (hasCostlyWasm) setFlagsFromString(baselineWasm);
  setFlagsFromString(smallHeap);
  if (!given.includes('semi-space')) setFlagsFromString(smallYoungGeneration);
}

/** What the agent takes without a series: its code, and what every configuration needs. */
const ownHeapBytes = 24 * 1024 * 1024;
/** The rest is for garbage that is not collected yet, and for a page that is being taken. */
const seriesShare = 0.75;
/** The part of a container's memory that may be heap: code, stacks and buffers take the other. */
const heapShare = 0.5;
const leastHeapBytes = 8 * 1024 * 1024;

/** The memory that the process was given for its heap, by a flag, a container or the machine; bytes. */
export function givenHeapBytes(): number {
  // Without a limit Node returns 0 or 2^64.
  const container = process.constrainedMemory() || Infinity;
  return Math.min(getHeapStatistics().heap_size_limit, heapShare * Math.min(container, totalmem()));
}

/** The part of it that series may take; bytes. */
export function seriesHeapBytes(given = givenHeapBytes()): number {
  return Math.max(leastHeapBytes, Math.floor(seriesShare * (given - ownHeapBytes)));
}

/** Lines of pages are outside the heap. They may take as much as this part of it. */
const lineShare = 0.3;

/** What the lines of all pages may take; bytes. */
export const lineBytes = (): number => lineShare * givenHeapBytes();
