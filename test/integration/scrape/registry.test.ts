import { beforeEach, expect, test } from 'vitest';
import { createRegistry, type Registry } from '../../../src/core/registry/registry.ts';
import { catalogVocabulary, createVocabulary } from '../../../src/core/vocabulary.ts';
import { createVocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import { type ManualClock, manualClock } from '../../clock.ts';
import { eachTarget, openRole } from '../../scrape.ts';

const target = eachTarget();
let clock: ManualClock;
let registry: Registry;
beforeEach(async () => {
  clock = manualClock();
  registry = createRegistry(
    {
      limits: { seriesPerMetric: 100, series: 1000, forbiddenTags: [], allowValues: [] },
      serviceKeys: ['history', 'matching'],
    },
    { clock },
  );
});

const product = createVocabulary({
  name: 'product',
  metrics: { product_started: 'svc_workflow_started', product_wait: { to: 'svc_wait', unit: 'nanoseconds' } },
  tags: { product_service: 'svc_service' },
});

/** Opens a role's page over the real registry. */
const open = (service: string, rank = 0) =>
  openRole(registry, clock, target.url, {
    ...{ service, rank, globalTags: { cluster: 'dc1' } },
    detector: createVocabularyDetector([catalogVocabulary(), product]),
  });

/** What a reporter would show of the relayed families: all numbers of each series, by `name{label="value",…}`. */
function relayed(): Record<string, number[]> {
  const view = registry.view(({ relayed: isRelayed }) => isRelayed);
  const shown = view.families.flatMap(({ name, series }) =>
    series.map((one): [string, number[]] => {
      const labels = one.labels.map(([label, value]) => `${label}="${value}"`).join(',');
      const width = one.bounds.length === 0 ? 1 : one.bounds.length + 3;
      return [`${name}{${labels}}`, [...view.numbers(one).slice(one.at, one.at + width)]];
    }),
  );
  view.release();
  return Object.fromEntries(shown);
}

test('names, services, global and reserved tags are settled on the way', async () => {
  target.page(
    '# TYPE a.b counter\na.b{job="x",instance="7",cluster="own",svc_service="prod-history"} 3\n' +
      '# TYPE h histogram\nh_bucket{le="0.10"} 1\nh_bucket{le="+Inf"} 2\nh_sum 0.5\nh_count 2\n',
  );
  const role = await open('history');
  expect(await role.scrape.scrapeNow()).toEqual({ ok: true });
  const labels = 'cluster="dc1",exported_cluster="own",exported_instance="7",exported_job="x"';
  expect(relayed()).toEqual({
    [`a_b{${labels},svc_service="history"}`]: [3],
    'h{cluster="dc1",svc_service="history"}': [1, 2, 0.5, 2],
  });
  await role.stop();
  expect(relayed()).toEqual({});
});

test('four roles with the same untagged gauge stay apart', async () => {
  target.page('# TYPE g gauge\ng 1\n');
  const roles = await Promise.all([open('history'), open('matching', 1)]);
  await Promise.all(roles.map(({ scrape }) => scrape.scrapeNow()));
  expect(relayed()).toEqual({
    'g{cluster="dc1",svc_service="history"}': [1],
    'g{cluster="dc1",svc_service="matching"}': [1],
  });
  for (const { stop } of roles) await stop();
});

test('counters that meet because an id was replaced add their increases', async () => {
  const id = (n: number) => `6ba7b810-9dad-11d1-80b4-00c04fd430c${n}`;
  target.page(`# TYPE c counter\nc{tasklist="t-${id(1)}"} 5\nc{tasklist="t-${id(2)}"} 7\n`);
  const role = await open('history');
  await role.scrape.scrapeNow();
  const series = 'c{cluster="dc1",svc_service="history",tasklist="t-_id_"}';
  expect(relayed()).toEqual({ [series]: [12] });
  target.page(`# TYPE c counter\nc{tasklist="t-${id(2)}"} 8\n`);
  clock.advance(1000);
  await role.scrape.scrapeNow();
  expect(relayed()).toEqual({ [series]: [13] });
});

test('a page that is not taken leaves nothing to see, and its series come back as they were', async () => {
  target.page('# TYPE c counter\nc 5\n');
  const role = await open('history');
  await role.scrape.scrapeNow();
  const before = relayed();
  target.page('# TYPE c counter\nc 6\n# EOF is missing\n', {
    'content-type': 'application/openmetrics-text; version=1.0.0',
  });
  clock.advance(1000);
  await role.scrape.scrapeNow();
  expect(relayed()).toEqual({});
  target.page('# TYPE c counter\nc 5\n');
  await role.scrape.scrapeNow();
  expect(relayed()).toEqual(before);
});

test('a view that is held does not move while the next page comes in', async () => {
  target.page('g 1\n');
  const role = await open('history');
  await role.scrape.scrapeNow();
  const view = registry.view(({ relayed: isRelayed }) => isRelayed);
  const [series] = view.families[0]!.series;
  target.page('g 2\n');
  clock.advance(1000);
  await role.scrape.scrapeNow();
  expect(view.numbers(series!)[series!.at]).toBe(1);
  view.release();
  expect(relayed()).toEqual({ 'g{cluster="dc1",svc_service="history"}': [2] });
});

test('a product’s words are recognised when they come, and its units become the catalog’s', async () => {
  target.page('# TYPE product_early gauge\nproduct_early{product_service="prod_history"} 1\n');
  const role = await open('history');
  await role.scrape.scrapeNow();
  expect(Object.keys(relayed())).toEqual([
    'product_early{cluster="dc1",product_service="prod_history",svc_service="history"}',
  ]);
  target.page(
    '# TYPE product_early gauge\nproduct_early{product_service="prod_history"} 1\n' +
      '# TYPE product_started counter\nproduct_started{product_service="prod_history"} 4\n' +
      '# TYPE product_wait gauge\nproduct_wait 2500000000\n',
  );
  clock.advance(1000);
  await role.scrape.scrapeNow();
  expect(relayed()).toEqual({
    'product_early{cluster="dc1",svc_service="history"}': [1],
    'svc_workflow_started{cluster="dc1",svc_service="history"}': [4],
    'svc_wait{cluster="dc1",svc_service="history"}': [2.5],
  });
  expect([...role.scrape.values('svc_wait')]).toEqual([{ labels: {}, value: 2.5 }]);
  expect(role.scrape.status().vocabulary).toBe('product');
  expect(role.scrape.mapped()).toContainEqual({
    name: 'product_started',
    to: new Set(['svc_workflow_started']),
    leftOut: false,
  });
});

test('cardinality stays within the limits while the total stays right', async () => {
  const page = (round: number) =>
    `# TYPE c counter\n${Array.from({ length: 500 }, (_, n) => `c{k="${n}"} ${n + round}\n`).join('')}`;
  target.page(page(0));
  const role = await open('history');
  await role.scrape.scrapeNow();
  const total = () => Object.values(relayed()).reduce((sum, [value]) => sum + value!, 0);
  expect(Object.keys(relayed())).toHaveLength(101);
  const before = total();
  target.page(page(3));
  clock.advance(1000);
  await role.scrape.scrapeNow();
  expect(Object.keys(relayed())).toHaveLength(101);
  expect(total() - before).toBe(1500);
});
