import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRegistry, type Registry } from '../../../src/core/registry.ts';
import { createPageStore } from '../../../src/core/stores.ts';
import type { VocabularyDetector } from '../../../src/core/vocabulary.ts';
import { createRenderer } from '../../../src/reporters/pull/exposition.ts';
import { readVocabularies, vocabularyDetectorFor } from '../../../src/sources/vocabularies.ts';
import { handClock } from '../../clock.ts';
import { openScrape, openTarget, type Scraped, type Target } from '../../scrape.ts';

/**
 * Pages of a real service, recorded under load, on their way through scrape, vocabulary, registry and exposition.
 * What each catalog metric must be is summed up from the raw page by the parser below.
 */

interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const files = fileURLToPath(new URL('../../fixtures/real-service/', import.meta.url));
const folder = fileURLToPath(new URL('../../../vocabularies/', import.meta.url));
const rawPage = (name: string) => gunzipSync(readFileSync(`${files}${name}.txt.gz`)).toString();

/** The samples of a text page; the recorded ones have no time stamps and no escapes that matter. */
function parse(page: string): Sample[] {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', pairs = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const labels = [...pairs.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
      return { name, labels: Object.fromEntries(labels), value: Number(value.replace('Inf', 'Infinity')) };
    });
}

type Take = (sample: Sample) => boolean;
/** The key under which a sample is added up: the labels that matter, in the catalog's spelling. */
type Key = (labels: Sample['labels']) => string;

function sums(samples: readonly Sample[], take: Take, key: Key): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const sample of samples) {
    if (!take(sample)) continue;
    const at = key(sample.labels);
    sum[at] = (sum[at] ?? 0) + sample.value;
  }
  return sum;
}

interface Page {
  raw: Sample[];
  shown: Sample[];
  words: VocabularyDetector;
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
  const clock = handClock();
  const limits = { seriesPerMetric: 2000, series: 50_000, forbiddenTags: [], allowValues: [] };
  const registry = createRegistry({ limits, serviceKeys: [name] }, { clock });
  const words = vocabularyDetectorFor('auto', await readVocabularies(folder), 'test');
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
    translate: words.translate,
  });
  target.page(page);
  const one = await openScrape({ url: target.url }, clock, { intake, show: store, words });
  scraped.push(one);
  expect(await one.scrape.scrapeNow()).toEqual({ ok: true });
  return { raw: parse(page), shown: await shownBy(registry), words, refusals: registry.status().refusals };
}

const pages: Record<string, Page> = {};
const names = ['frontend', 'history', 'matching', 'worker', 'sdk-bench-worker'];
beforeAll(async () => {
  for (const name of names) pages[name] = await play(name);
}, 60_000);

const by =
  (...tags: string[]): Key =>
  (labels) =>
    tags.map((tag) => labels[tag] ?? '').join(' ');

interface Row {
  pages: string[];
  /** The catalog's metric, and the raw metrics whose sum it is. */
  metric: string;
  from: string[];
  /** Labels of the catalog that are compared, and their raw spelling where it is another one. */
  tags?: string[];
  raw?: string[];
  prefix?: string;
  /** Which of the raw series count. */
  take?: (labels: Sample['labels']) => boolean;
}

const notAll = ({ domain }: Sample['labels']) => domain !== 'all';
const role = (name: string) => (labels: Sample['labels']) => labels.cadence_role === `${name}_client`;
const clientTags = {
  tags: ['domain', 'tasklist', 'workflow_type'],
  raw: ['Domain', 'TaskList', 'WorkflowType'],
};
const activityTags = {
  tags: [...clientTags.tags, 'activity_type'],
  raw: [...clientTags.raw, 'ActivityType'],
};

const counters: Row[] = [
  {
    pages: ['frontend', 'history', 'matching', 'worker'],
    metric: 'svc_persistence_requests',
    from: ['persistence_requests', 'persistence_requests_per_domain'],
    tags: ['operation'],
    prefix: 'Persistence',
  },
  {
    pages: ['frontend', 'history', 'matching'],
    metric: 'svc_persistence_domain_requests',
    from: ['persistence_requests_per_domain'],
    tags: ['operation', 'domain'],
    prefix: 'Persistence',
  },
  {
    pages: ['frontend'],
    metric: 'svc_frontend_client_requests',
    from: ['cadence_requests'],
    tags: ['operation'],
    prefix: 'FrontendClient',
  },
  ...['history', 'matching'].flatMap((callee) =>
    ['requests', 'errors'].map((what) => ({
      pages: ['frontend', 'history', 'matching'],
      metric: `svc_${callee}_client_${what}`,
      from: [`cadence_client_${what}`],
      tags: ['operation'],
      take: role(callee),
    })),
  ),
  ...Object.entries({
    workflow_started_count: 'started',
    workflow_success: 'completed',
    workflow_failed: 'failed',
    workflow_timeout: 'timeout',
    workflow_cancel: 'canceled',
    workflow_continued_as_new: 'continued_as_new',
  }).map(([raw, name]) => ({
    pages: ['history'],
    metric: `svc_workflow_${name}`,
    from: [raw],
    tags: ['domain', 'workflow_type'],
    raw: ['domain', 'workflowType'],
  })),
  {
    pages: ['matching'],
    metric: 'svc_matching_tasks_added',
    from: ['cadence_requests_per_tl'],
    tags: ['domain', 'tasklist', 'operation'],
    take: ({ operation = '' }) => /^Add(Decision|Activity)Task$/.test(operation),
  },
  ...Object.entries({
    poll_success_per_tl: 'poll_success',
    poll_timeouts_per_tl: 'poll_timeout',
    task_backlog_per_tl: 'tasklist_backlog',
    poller_count_per_tl: 'pollers',
    tasks_expired_per_tl: 'tasks_expired',
  }).map(([raw, name]) => ({
    pages: ['matching'],
    metric: `svc_matching_${name}`,
    from: [raw],
    tags: ['domain', 'tasklist', 'tasklist_type'],
    raw: ['domain', 'tasklist', 'tasklistType'],
  })),
  ...['requests', 'errors'].map((what) => ({
    pages: ['history'],
    metric: `svc_history_cache_${what}`,
    from: [`cache_${what}`],
    tags: ['operation'],
  })),
  ...['restarts', 'num_goroutines', 'gomaxprocs', 'memory_heap', 'memory_num_gc'].map((name) => ({
    pages: ['frontend', 'history', 'matching', 'worker'],
    metric: `svc_${name}`,
    from: [name],
  })),
];

const latencies: Row[] = [
  {
    pages: ['frontend', 'history', 'matching', 'worker'],
    metric: 'svc_persistence_latency',
    from: ['persistence_latency', 'persistence_latency_per_domain'],
    tags: ['operation'],
    prefix: 'Persistence',
  },
  {
    pages: ['frontend'],
    metric: 'svc_frontend_client_latency',
    from: ['cadence_latency'],
    tags: ['operation'],
    prefix: 'FrontendClient',
    take: notAll,
  },
  ...['history', 'matching'].map((callee) => ({
    pages: ['frontend', 'history', 'matching'],
    metric: `svc_${callee}_client_latency`,
    from: ['cadence_client_latency'],
    tags: ['operation'],
    take: role(callee),
  })),
  ...['Decision', 'Activity'].map((task) => ({
    pages: ['history'],
    metric: `svc_${task.toLowerCase()}_task_schedule_to_start_latency`,
    from: ['schedule_to_start_history_queue_latency_per_tl'],
    tags: ['domain', 'tasklist'],
    take: (labels: Sample['labels']) => notAll(labels) && labels.operation === `TransferActiveTask${task}`,
  })),
  {
    pages: ['history'],
    metric: 'svc_activity_task_end_to_end_latency',
    from: ['activity_end_to_end_latency'],
    tags: ['domain', 'tasklist', 'workflow_type', 'activity_type'],
    raw: ['domain', 'tasklist', 'workflowType', 'activityType'],
    take: notAll,
  },
  { pages: ['history'], metric: 'svc_history_task_latency', from: ['task_latency'], tags: ['operation'] },
  { pages: ['history'], metric: 'svc_history_cache_latency', from: ['cache_latency'], tags: ['operation'] },
  ...['scheduled_to_start', 'execution'].flatMap((what) => [
    {
      pages: ['sdk-bench-worker'],
      metric: `svc_decision_task_${what.replace('scheduled', 'schedule')}_latency`,
      from: [`cadence_decision_${what}_latency_ns`],
      ...clientTags,
    },
    {
      pages: ['sdk-bench-worker'],
      metric: `svc_activity_task_${what.replace('scheduled', 'schedule')}_latency`,
      from: [`cadence_activity_${what}_latency_ns`],
      ...activityTags,
    },
  ]),
];

const parts: Row[] = latencies.flatMap((row) => [
  ...['_sum', '_count'].map((part) => ({
    ...row,
    metric: row.metric + part,
    from: row.from.map((name) => name + part),
  })),
  {
    ...row,
    metric: `${row.metric}_bucket`,
    from: row.from.map((name) => `${name}_bucket`),
    tags: [...(row.tags ?? []), 'le'],
    raw: [...(row.raw ?? row.tags ?? []), 'le'],
  },
]);

const cases = [...counters, ...parts].flatMap((row) =>
  row.pages.map((page): [string, string, Row] => [page, row.metric, row]),
);

test.each(cases)('%s: %s is the sum of its raw metrics', (page, metric, row) => {
  const { from, tags = [], raw = tags, prefix = '', take = () => true } = row;
  const { raw: samples, shown } = pages[page]!;
  const rawKey: Key = (labels) =>
    raw.map((tag) => (tag === 'operation' ? prefix : '') + (labels[tag] ?? '')).join(' ');
  const expected = sums(samples, ({ name, labels }) => from.includes(name) && take(labels), rawKey);
  const found = sums(shown, ({ name }) => name === metric, by(...tags));
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
    const { refusals, shown, words } = pages[page]!;
    expect(refusals).toEqual([]);
    expect(words.vocabulary?.name).toBe('cadence');
    const catalogued = shown.filter(({ name }) =>
      /^svc_(persistence|history_cache|\w+_client|workflow)_/.test(name),
    );
    const tags = new Set(catalogued.flatMap(({ labels }) => Object.keys(labels)));
    for (const tag of ['shard_id', 'is_retry', 'task_category', 'caller', 'transport'])
      expect(tags).not.toContain(tag);
  },
);
