/**
 * Measures rendering 100,000 series: prom-client against the pull reporter, in one process, and the longest time for which either
 * blocks the event loop. Then it measures the cost of gzip by level. `npm run bench -- render`.
 */
import { createGzip } from 'node:zlib';
import { Counter, Registry } from 'prom-client';
import type { SeriesView, View } from '../src/core/model.ts';
import { createRenderer } from '../src/reporters/pull/exposition.ts';

const seriesCount = 100_000;
const rounds = 9;

const tags = (i: number) => ({
  domain: `domain-${i % 50}`,
  operation: `StartWorkflowExecution${i % 20}`,
  svc_service: 'frontend',
  tasklist: `tasklist-${i}`,
});

/** One number in three stays an integer; the others get long fractions, like sums of seconds. */
const increase = (at: number) => 1 + (at % 3) * 0.37;

function ourView(): { view: View; grow(): void } {
  const values = Float64Array.from({ length: seriesCount }, (_, i) => i * 7);
  const series = Array.from({ length: seriesCount }, (_, at): SeriesView => {
    const shown = { labels: Object.entries(tags(at)), service: 'frontend', relayed: true };
    return { ...shown, at, bounds: [], hasSum: true, hasCount: true, startMs: 0 };
  });
  const families = [
    { name: 'svc_frontend_requests_total', kind: 'counter', help: 'Requests', series },
  ] as const;
  return {
    view: { families, numbers: () => values, release() {} },
    grow() {
      for (let at = 0; at < seriesCount; at++) values[at]! += increase(at);
    },
  };
}

function promClient(): { registry: Registry; grow(): void } {
  const registry = new Registry();
  const labelNames = Object.keys(tags(0));
  const counter = new Counter({
    name: 'svc_frontend_requests_total',
    help: 'Requests',
    labelNames,
    registers: [registry],
  });
  const all = Array.from({ length: seriesCount }, (_, i) => tags(i));
  all.forEach((one, i) => void counter.inc(one, i * 7));
  return { registry, grow: () => all.forEach((one, at) => void counter.inc(one, increase(at))) };
}

/** The wall time of `work`, and its result. */
async function timed(work: () => Promise<number>) {
  const startMs = performance.now();
  const bytes = await work();
  return { tookMs: performance.now() - startMs, bytes };
}

/** The longest time between two turns of the event loop while `work` runs. */
async function longestSliceMs(work: () => Promise<number>): Promise<number> {
  let longestMs = 0;
  let lastMs = performance.now();
  let running = true;
  const turn = () => {
    longestMs = Math.max(longestMs, performance.now() - lastMs);
    lastMs = performance.now();
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  running = false;
  await new Promise((resolve) => setImmediate(resolve));
  return longestMs;
}

/** Prints the first time (nothing cached), then medians of the others; returns the median time. */
async function series(name: string, grow: () => void, work: () => Promise<number>): Promise<number> {
  const slicesMs: number[] = [];
  const results = [];
  for (let round = 0; round < rounds; round++) {
    grow();
    globalThis.gc?.();
    results.push(await timed(work));
    grow();
    slicesMs.push(await longestSliceMs(work));
  }
  const [first, ...known] = results;
  known.sort((a, b) => a.tookMs - b.tookMs);
  slicesMs.sort((a, b) => a - b);
  const { tookMs, bytes } = known[known.length >> 1]!;
  const parts = [
    `first ${first!.tookMs.toFixed(0)} ms`,
    `median ${tookMs.toFixed(1)} ms`,
    `longest slice: median ${slicesMs[rounds >> 1]!.toFixed(1)} ms, worst ${slicesMs.at(-1)!.toFixed(1)} ms`,
    `${(bytes / 1e6).toFixed(1)} MB`,
  ];
  process.stdout.write(`${name.padEnd(22)} ${parts.join(', ')}\n`);
  return tookMs;
}

const { view, grow } = ourView();
const renderer = createRenderer();

const ours = await series('pull, text', grow, async () => {
  let bytes = 0;
  for await (const piece of renderer.render(view, 'text')) bytes += piece.length;
  return bytes;
});
await series('pull, OpenMetrics', grow, async () => {
  let bytes = 0;
  for await (const piece of renderer.render(view, 'openmetrics')) bytes += piece.length;
  return bytes;
});
for (const level of [1, 3, 6]) {
  await series(`pull, gzip level ${level}`, grow, async () => {
    let bytes = 0;
    const gzip = createGzip({ level, chunkSize: 65_536 }).on(
      'data',
      (piece: Buffer) => (bytes += piece.length),
    );
    for await (const piece of renderer.render(view, 'text')) gzip.write(piece);
    await new Promise((resolve) => gzip.on('end', resolve).end());
    return bytes;
  });
}
// prom-client is created only now, so that its heap does not slow down the garbage collector in the other measurements.
const old = promClient();
const theirs = await series('prom-client', old.grow, async () => (await old.registry.metrics()).length);
process.stdout.write(`prom-client / pull: ${(theirs / ours).toFixed(1)}\n`);
