import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRegistry, type Registry } from '../../../src/core/registry.ts';
import { createPageStore } from '../../../src/core/value-stores.ts';
import type { VocabularyDetector } from '../../../src/core/vocabulary.ts';
import { createRenderer } from '../../../src/reporters/pull/exposition.ts';
import { readVocabularies, vocabularyDetectorFor } from '../../../src/sources/vocabularies.ts';
import { manualClock } from '../../clock.ts';
import {
  compare,
  pageNames as names,
  parse,
  rawPage,
  recordedCases,
  type Sample,
} from '../../recorded-pages.ts';
import { openScrape, openTarget, type Scraped, type Target } from '../../scrape.ts';

/** Recorded pages on their way through scrape, vocabulary, registry and exposition. */
const folder = fileURLToPath(new URL('../../../vocabularies/', import.meta.url));

interface Page {
  raw: Sample[];
  shown: Sample[];
  detector: VocabularyDetector;
  refusals: unknown;
}

let target: Target;
const scraped: Scraped[] = [];
beforeAll(async () => {
  target = await openTarget();
});
afterAll(async () => {
  for (const one of scraped) await one.stop();
  await target.close();
});

async function shownBy(registry: Registry): Promise<Sample[]> {
  const view = registry.view(({ relayed }) => relayed);
  let page = '';
  for await (const piece of createRenderer().render(view, 'text')) page += piece;
  view.release();
  return parse(page);
}

async function play(name: string): Promise<Page> {
  const page = rawPage(name);
  const clock = manualClock();
  const limits = { seriesPerMetric: 2000, series: 50_000, forbiddenTags: [], allowValues: [] };
  const registry = createRegistry({ limits, serviceKeys: [name] }, { clock });
  const detector = vocabularyDetectorFor('auto', await readVocabularies(folder), 'test');
  const store = createPageStore();
  const intake = registry.intake({
    service: name,
    component: 'scrape',
    relayed: true,
    rank: 0,
    store,
    globalTags: {},
    received: true,
    tagService: true,
    translate: detector.translate,
  });
  target.page(page);
  const one = await openScrape({ url: target.url }, clock, { intake, show: store, detector });
  scraped.push(one);
  expect(await one.scrape.scrapeNow()).toEqual({ ok: true });
  return { raw: parse(page), shown: await shownBy(registry), detector, refusals: registry.status().refusals };
}

const pages: Record<string, Page> = {};
beforeAll(async () => {
  for (const name of names) pages[name] = await play(name);
});

test.each(recordedCases)('%s: %s is the sum of its raw metrics', (page, _, row) => {
  const { raw, shown } = pages[page]!;
  const { expected, found } = compare(row, raw, shown);
  expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
  for (const [key, value] of Object.entries(expected)) expect(found[key], key).toBeCloseTo(value, 6);
});

describe('the whole', () => {
  test.each(['frontend', 'history', 'matching', 'worker'])(
    'of %s’s persistence calls is there once',
    (page) => {
      const { raw, shown } = pages[page]!;
      const total = (samples: Sample[], metric: string) =>
        samples.reduce((sum, { name, value }) => sum + (name === metric ? value : 0), 0);
      // A histogram of all calls, which no rule reads; counted a moment later, while calls went on.
      const all = total(raw, 'persistence_latency_histogram_per_host_count');
      expect(all).toBeGreaterThan(100);
      for (const metric of ['svc_persistence_requests', 'svc_persistence_latency_count']) {
        expect(Math.abs(total(shown, metric) / all - 1), metric).toBeLessThan(0.002);
      }
    },
  );

  test('of the frontend’s calls is there once', () => {
    const { shown } = pages.frontend!;
    const total = (metric: string) =>
      shown.reduce((sum, { name, value }) => sum + (name === metric ? value : 0), 0);
    const share = total('svc_frontend_client_latency_count') / total('svc_frontend_client_requests');
    expect(Math.abs(share - 1)).toBeLessThan(0.005);
  });
});

test('only the frontend counts its own calls as calls to the frontend', () => {
  for (const page of ['history', 'matching', 'worker']) {
    const found = pages[page]!.shown.filter(({ name }) => name.startsWith('svc_frontend_client_'));
    expect(found, page).toEqual([]);
  }
});

test.each(names)(
  '%s: what is left out on purpose is no refusal, and no tag of a shard, host or retry stays',
  (page) => {
    const { refusals, shown, detector } = pages[page]!;
    expect(refusals).toEqual([]);
    expect(detector.vocabulary?.name).toBe('cadence');
    const catalogued = shown.filter(({ name }) =>
      /^svc_(persistence|history_cache|\w+_client|workflow)_/.test(name),
    );
    const tags = new Set(catalogued.flatMap(({ labels }) => Object.keys(labels)));
    for (const tag of ['shard_id', 'is_retry', 'task_category', 'caller', 'transport'])
      expect(tags).not.toContain(tag);
  },
);
