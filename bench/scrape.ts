/**
 * Scrapes, sanitizes and re-exposes a page of 100,000 lines round by round, without HTTP, against a plain split-and-regex parser
 * on the same pages in the same run. `npm run bench -- scrape [LINES]`
 */

import { systemClock } from '../src/core/clock.ts';
import { createRefusedLines } from '../src/core/registry/refused-series.ts';
import { createRegistry } from '../src/core/registry/registry.ts';
import { createPageStore } from '../src/core/registry/value-stores.ts';
import { createSlice } from '../src/core/slices.ts';
import { createVocabularyDetector } from '../src/core/vocabulary-detector.ts';
import { createRenderer } from '../src/reporters/pull/exposition.ts';
import { createLineTable } from '../src/sources/scrape/exposition/line-table.ts';
import { createPageReader } from '../src/sources/scrape/exposition/page-reader.ts';
import { createPageSeries } from '../src/sources/scrape/series/page-series.ts';
import { numberAt } from './arguments.ts';
import { generatePage } from './exposition.ts';
import { cpuMs, median } from './figures.ts';

const lines = numberAt(0, 'LINES', 100_000);
const rounds = 15;
const warmUp = 4;
const chunkBytes = 64 * 1024;

const rounded = (number: number): number => Number(number.toFixed(1));

/** Parses like a short program would: lines, one pattern per line, a map by the text of the series. */
function plainParse(page: Buffer, into: Map<string, number>): void {
  for (const line of page.toString('utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?) ([^ ]+)$/.exec(line);
    if (match) into.set(match[1]!, Number(match[2]));
  }
}

const slice = createSlice();
const limits = { seriesPerMetric: 1_000_000, series: 1_000_000, forbiddenTags: [], allowValues: [] };
const registry = createRegistry({ limits, serviceKeys: ['history'] }, { clock: systemClock });
const store = createPageStore();
const detector = createVocabularyDetector([]);
const intake = registry.intake({
  service: 'history',
  component: 'scrape',
  relayed: true,
  rank: 0,
  store,
  globalTags: { cluster: 'dc1' },
  received: true,
  tagService: true,
  translate: detector.translate,
});
const table = createLineTable();
const refusedLines = createRefusedLines(1000);
const reader = createPageReader(table, refusedLines, {
  bodyBytes: 1 << 30,
  samples: 10_000_000,
  labelBytes: 8192,
});
const pageSeries = createPageSeries(table, { intake, refusedLines, detector, slice });
const renderer = createRenderer();

async function expose(): Promise<number> {
  const view = registry.view();
  let bytes = 0;
  for await (const piece of renderer.render(view, 'text')) bytes += piece.length;
  view.release();
  return bytes;
}

const spent: Record<'read' | 'fill' | 'expose' | 'round', number[]> = {
  read: [],
  fill: [],
  expose: [],
  round: [],
};
const plain: number[] = [];
const series = new Map<string, number>();
let first = 0;
let pageBytes = 0;
let exposedBytes = 0;
let peakRss = 0;

for (let round = 0; round < rounds; round++) {
  const page = generatePage(lines, round).bytes;
  pageBytes = page.length;
  const start = process.cpuUsage();
  reader.begin('text');
  for (let at = 0; at < page.length; at += chunkBytes) reader.write(page.subarray(at, at + chunkBytes));
  const read = reader.end(true);
  const readMs = cpuMs(start);
  await pageSeries.arrange(read);
  pageSeries.fill(read);
  reader.take(read);
  store.swap();
  const filledMs = cpuMs(start);
  exposedBytes = await expose();
  const roundMs = cpuMs(start);
  peakRss = Math.max(peakRss, process.memoryUsage.rss());
  if (round === 0) first = roundMs;
  if (round < warmUp) continue;
  spent.read.push(readMs);
  spent.fill.push(filledMs - readMs);
  spent.expose.push(roundMs - filledMs);
  spent.round.push(roundMs);
}
for (let round = 0; round < rounds; round++) {
  const page = generatePage(lines, round).bytes;
  const start = process.cpuUsage();
  plainParse(page, series);
  if (round >= warmUp) plain.push(cpuMs(start));
}

const figures = {
  lines,
  pageMB: rounded(pageBytes / 1e6),
  exposedMB: rounded(exposedBytes / 1e6),
  firstRoundCpuMs: rounded(first),
  knownRoundCpuMs: rounded(median(spent.round)),
  ofWhich: {
    read: rounded(median(spent.read)),
    fill: rounded(median(spent.fill)),
    expose: rounded(median(spent.expose)),
  },
  plainParserCpuMs: rounded(median(plain)),
  readAgainstPlainParser: rounded(median(plain) / median(spent.read)),
  peakRssMiB: Math.round(peakRss / 2 ** 20),
};
process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
