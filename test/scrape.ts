import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { beforeEach } from 'vitest';
import type { Gauge, Kind, RawTags, Shape } from '../src/core/model.ts';
import type { Clock, Drops, Log } from '../src/core/ports.ts';
import type { IntakeOptions } from '../src/core/registry/intake.ts';
import { createRefusedLines } from '../src/core/registry/refused-series.ts';
import type { Registry } from '../src/core/registry/registry.ts';
import { createPageStore } from '../src/core/registry/value-stores.ts';
import { createSlice, type Slice } from '../src/core/slices.ts';
import { createVocabularyDetector, type VocabularyDetector } from '../src/core/vocabulary-detector.ts';
import { type ScrapeLimits, type ScrapeOptions, scrapeDefaults } from '../src/sources/scrape/block.ts';
import type { LineUse } from '../src/sources/scrape/exposition/line-memory.ts';
import { createLineTable } from '../src/sources/scrape/exposition/line-table.ts';
import { createPageReader, type Exposition } from '../src/sources/scrape/exposition/page-reader.ts';
import {
  createPageSeries,
  type PageIntake,
  type PageVisibility,
} from '../src/sources/scrape/series/page-series.ts';
import { createScrape, type Scrape, type ScrapeDeps } from '../src/sources/scrape/source.ts';
import { listening } from './ports.ts';
import { type AtEnd, atTestEnd, stopOnce } from './test-end.ts';

interface Held {
  kind: Kind;
  name: string;
  tags: RawTags;
  shape: Shape;
  numbers: number[];
}

/** A registry that merges nothing and refuses nothing: it stores exactly what a scrape passes to it. */
interface OpenIntake extends PageIntake {
  readonly held: ReadonlySet<Held>;
  /** Every number as one sample line, `name{label="value",…}`, with sorted labels: what Prometheus would store. */
  samples(): Record<string, number>;
  kinds(): Record<string, Kind>;
}

const sampleName = (name: string, tags: RawTags): string =>
  `${name}${JSON.stringify(Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1)))}`;

function samplesOf({ kind, name, tags, shape, numbers }: Held): [string, number][] {
  if (kind !== 'histogram' && kind !== 'summary') return [[sampleName(name, tags), numbers[0]!]];
  const texts = kind === 'summary' ? (shape.quantiles ?? []) : [...(shape.boundTexts ?? []), '+Inf'];
  const label = kind === 'summary' ? 'quantile' : 'le';
  const ending = kind === 'summary' ? '' : '_bucket';
  return [
    ...texts.map((text, i): [string, number] => [
      sampleName(name + ending, { ...tags, [label]: text }),
      numbers[i]!,
    ]),
    ...(shape.hasSum === false
      ? []
      : [[sampleName(`${name}_sum`, tags), numbers[texts.length]!] as [string, number]]),
    ...(shape.hasCount === false
      ? []
      : [[sampleName(`${name}_count`, tags), numbers[texts.length + 1]!] as [string, number]]),
  ];
}

function openIntake(): OpenIntake {
  const held = new Set<Held>();
  return {
    held,
    parts(kind, name, tags, shape = {}) {
      const series: Held = { kind, name, tags, shape, numbers: [] };
      held.add(series);
      return {
        part: (index) => ({
          set(value) {
            series.numbers[index] = value;
          },
        }),
        release() {
          if (!held.delete(series)) throw new Error(`released twice: ${name}`);
        },
      };
    },
    samples: () => Object.fromEntries([...held].flatMap(samplesOf)),
    kinds: () => Object.fromEntries([...held].map(({ name, kind }) => [name, kind])),
  };
}

interface Reading {
  samples: Record<string, number>;
  kinds: Record<string, Kind>;
  invalidLines: number;
  changed: boolean;
  fallen: number;
}

/** A target whose pages are passed in as text. */
export function pageTarget(
  limits: Partial<ScrapeLimits> = {},
  memory?: LineUse,
  slice: Slice = createSlice(),
) {
  const table = createLineTable();
  const intake = openIntake();
  const refusedLines = createRefusedLines(1000);
  const reader = createPageReader(table, refusedLines, { ...scrapeDefaults.limits, ...limits }, memory);
  const detector = createVocabularyDetector([]);
  const relay = createPageSeries(table, { intake, refusedLines, detector, slice });
  return {
    intake,
    relay,
    table,
    /** Reads one page, cut into chunks of this size, and accepts it. Rejects if the reader throws. */
    async read(page: string | Buffer, format: Exposition = 'text', chunkBytes = 1 << 20): Promise<Reading> {
      const bytes = Buffer.from(page);
      reader.begin(format);
      try {
        for (let at = 0; at < bytes.length; at += chunkBytes)
          reader.write(bytes.subarray(at, at + chunkBytes));
        const read = reader.end(true);
        await relay.arrange(read);
        const { refusedLines, fallen } = relay.fill(read);
        reader.take(read);
        const invalidLines = read.invalidLines + refusedLines;
        return {
          samples: intake.samples(),
          kinds: intake.kinds(),
          invalidLines,
          changed: read.changed,
          fallen,
        };
      } catch (error) {
        reader.discard();
        throw error;
      }
    },
  };
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A target on loopback. A test decides its next responses. */
export interface Target {
  url: string;
  server: Server;
  requests: IncomingMessage[];
  answer(next: Answer): void;
  /** Responds with 200 and this page as text 0.0.4. */
  page(text: string | Buffer, headers?: Record<string, string>): void;
  close(): Promise<void>;
}

export const pageAnswer =
  (text: string | Buffer, headers: Record<string, string> = {}): Answer =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4', ...headers });
    response.end(text);
  };

/** A server of pages that ends with the test, or with the file if `atEnd` is `afterAll`. */
export async function openTarget(atEnd: AtEnd = atTestEnd): Promise<Target> {
  let current: Answer = pageAnswer('');
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    current(request, response);
  });
  const { port, close } = await listening(server);
  atEnd(close);
  return {
    url: `http://127.0.0.1:${port}/metrics`,
    server,
    requests,
    answer(next) {
      current = next;
    },
    page(text, headers) {
      current = pageAnswer(text, headers);
    },
    close,
  };
}

/** A server of pages for each test of the file that calls this at its top. Its first page is `page`. */
export function eachTarget(page = ''): Target {
  const target = {} as Target;
  beforeEach(async () => {
    Object.assign(target, await openTarget());
    target.page(page);
  });
  return target;
}

/** A scrape source over an open intake, which stops with the test. It records everything that the source reports. */
interface Scraped {
  scrape: Scrape;
  intake: OpenIntake;
  /** What readers see: the samples of the last page that is shown, or nothing while the target is hidden. */
  shown(): Record<string, number>;
  up(): number | undefined;
  drops: Record<string, number>;
  resets: { fallen: number; counters: number }[];
  stop(): Promise<void>;
}

export async function openScrape(
  options: Partial<ScrapeOptions> & { url: string },
  clock: Clock,
  deps: Partial<ScrapeDeps> = {},
  atEnd: AtEnd = atTestEnd,
): Promise<Scraped> {
  const intake = openIntake();
  const drops: Record<string, number> = {};
  const resets: { fallen: number; counters: number }[] = [];
  let shown: Record<string, number> = {};
  let up: number | undefined;
  const show: PageVisibility = {
    swap() {
      shown = intake.samples();
    },
    hide() {
      shown = {};
    },
  };
  const gauge: Gauge = {
    add() {},
    set(value) {
      up = value;
    },
    release() {
      up = undefined;
    },
  };
  const count: Drops['count'] = (component, reason, n = 1) => {
    drops[`${component}/${reason}`] = (drops[`${component}/${reason}`] ?? 0) + n;
  };
  const log: Log = { write() {}, named: () => log };
  const { intervalMs, timeoutMs, limits } = scrapeDefaults;
  const scrape = createScrape(
    { intervalMs, timeoutMs, limits, ...options },
    {
      intake,
      show,
      up: gauge,
      clock,
      drops: { count },
      log,
      readSecret: (secret) => Promise.resolve(String(secret)),
      ownListeners: () => [],
      mark: 'test',
      detector: createVocabularyDetector([]),
      onPage: (evidence) => {
        if (evidence.fallen > 0) resets.push(evidence);
      },
      ...deps,
    },
  );
  const stop = stopOnce(await scrape.start(), atEnd);
  return { scrape, intake, shown: () => shown, up: () => up, drops, resets, stop };
}

/** A scrape of one role into a registry, opened in the same way as by the agent. */
export function openRole(
  registry: Registry,
  clock: Clock,
  url: string,
  {
    detector = createVocabularyDetector([]),
    atEnd,
    ...own
  }: Partial<IntakeOptions> & {
    service: string;
    detector?: VocabularyDetector;
    atEnd?: AtEnd;
  },
): Promise<Scraped> {
  const store = createPageStore();
  const intake = registry.intake({
    component: 'scrape',
    relayed: true,
    rank: 0,
    store,
    globalTags: {},
    received: true,
    tagService: true,
    translate: detector.translate,
    ...own,
  });
  return openScrape({ url }, clock, { intake, show: store, detector }, atEnd);
}

export { sampleName };
