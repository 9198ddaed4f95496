import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';

/**
 * The size of V8's young generation. With V8's defaults it grows to 32 MiB and takes some 30 MiB more of private
 * memory on the same work; held at its initial 1 MiB, pages of 100,000 series cost several times the CPU, as what lives
 * for one page is copied again and again. So it is small until the agent has many series.
 * `--max-semi-space-size` counts only on Node's command line; the factor by which it grows is read at each collection.
 */
const smallest = '--semi-space-growth-factor=1';
const usual = '--semi-space-growth-factor=2';

/** Series from which on the young generation may grow. */
const manySeries = 20_000;

/** A size given on Node's command line is kept. */
const isGiven = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`.includes('semi-space');
let isSmall = false;

/**
 * The HTTP client's parser is WebAssembly. V8 also optimizes it, which takes 20 MiB for a moment and keeps 5 of
 * it. It saves no noticeable time, because the parser only passes bodies on. Node 24 and later do not keep them.
 */
const baselineWasm = '--liftoff-only';
const hasCostlyWasm = Number.parseInt(process.versions.v8, 10) < 13;

/** Takes effect for what is allocated from then on: call it before anything else. */
export function keepHeapSmall(): void {
  if (hasCostlyWasm) setFlagsFromString(baselineWasm);
  if (!isGiven) setFlagsFromString(smallest);
  isSmall = !isGiven;
}

/** Lets the young generation grow once there are many series; it stays so. */
export function fitHeapTo(series: number): void {
  if (!isSmall || series < manySeries) return;
  isSmall = false;
  setFlagsFromString(usual);
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
