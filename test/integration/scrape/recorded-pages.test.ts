import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { VocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import { playRole } from '../../played-pages.ts';
import {
  compare,
  pageNames as names,
  parse,
  rawPage,
  recordedCases,
  type Sample,
  sums,
} from '../../recorded-pages.ts';

interface Page {
  raw: Sample[];
  shown: Sample[];
  detector: VocabularyDetector;
  refusals: unknown;
}

async function play(name: string): Promise<Page> {
  const role = await playRole(name, 'auto', undefined, afterAll);
  const page = rawPage(name);
  return {
    raw: parse(page),
    shown: await role.page(page),
    detector: role.detector,
    refusals: role.refusals(),
  };
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
      // This is a histogram of all calls, which no rule reads; it was counted a moment later, while calls continued.
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

test('the frontend’s calls by domain and caller add up to all of its calls', () => {
  const { raw, shown } = pages.frontend!;
  const by = (samples: Sample[], metric: string, take = (_: Sample['labels']) => true) =>
    sums(
      samples,
      ({ name, labels }) => name === metric && take(labels),
      ({ domain, caller }) => `${domain} ${caller}`,
    );
  expect(by(shown, 'svc_frontend_domain_requests')).toEqual(by(raw, 'cadence_requests'));
  expect(Object.keys(by(raw, 'cadence_requests')).length).toBeGreaterThan(5);
  expect(by(shown, 'svc_frontend_domain_latency_count')).toEqual(
    by(raw, 'cadence_latency_count', ({ domain }) => domain !== 'all'),
  );
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
