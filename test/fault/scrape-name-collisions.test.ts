import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createRegistry } from '../../src/core/registry/registry.ts';
import { manualClock } from '../clock.ts';
import { eachTarget, openRole } from '../scrape.ts';
import { pageOf } from '../view.ts';

const target = eachTarget();

/** The page that the agent exposes after reading these pages one after the other. */
async function relay(...pages: string[]): Promise<{ page: string; refused: number }> {
  const clock = manualClock();
  const limits = { seriesPerMetric: 100, series: 1000, forbiddenTags: [], allowValues: [] };
  const registry = createRegistry({ limits, serviceKeys: ['history'] }, { clock });
  const scraped = await openRole(registry, clock, target.url, { service: 'history' });
  for (const text of pages) {
    target.page(text);
    clock.advance(1000);
    expect(await scraped.scrape.scrapeNow()).toEqual({ ok: true });
  }
  const view = registry.view(({ relayed }) => relayed);
  const page = await pageOf(view);
  view.release();
  const status = registry.status();
  await scraped.stop();
  return { page, refused: status.refusals.length };
}

/**
 * Checks a page with promtool, which returns 3 for what its linter rejects (names without unit, help) and 1 for a page that it
 * cannot read.
 */
function expectReadable(page: string): void {
  const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' });
  expect([0, 3], stderr).toContain(status);
}

const samples = (page: string): string[] =>
  page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .sort();

const collisions: Record<string, { parts: string[]; samples: string[] }> = {
  'a.b, a-b and a_b of one kind are one counter': {
    parts: ['# TYPE a.b counter\na.b 1\n', '# TYPE a-b counter\na-b 2\n', '# TYPE a_b counter\na_b 4\n'],
    samples: ['a_b{svc_service="history"} 7'],
  },
  'of different kinds the smallest raw name has it': {
    parts: ['# TYPE a.b counter\na.b 1\n', '# TYPE a-b gauge\na-b 2\n', '# TYPE a_b gauge\na_b 4\n'],
    samples: ['a_b{svc_service="history"} 2'],
  },
  'a counter beside a histogram of its name': {
    parts: [
      '# TYPE x histogram\nx_bucket{le="1"} 1\nx_bucket{le="+Inf"} 2\nx_sum 3\nx_count 2\n',
      '# TYPE x.count counter\nx.count{of="its own"} 9\n',
    ],
    samples: [
      'x_bucket{svc_service="history",le="+Inf"} 2',
      'x_bucket{svc_service="history",le="1"} 1',
      'x_count{svc_service="history"} 2',
      'x_sum{svc_service="history"} 3',
    ],
  },
  'tags that meet keep the first in the order of their raw names': {
    parts: ['c{k.1="dot",k-1="dash"} 1\n'],
    samples: ['c{k_1="dash",svc_service="history"} 1'],
  },
  'reserved tags': {
    parts: ['c{le="1",job="j",__name__="other"} 1\n'],
    samples: ['c{exported___name__="other",exported_job="j",le="1",svc_service="history"} 1'],
  },
};

const permutations = (parts: string[]): string[][] =>
  parts.length < 2
    ? [parts]
    : parts.flatMap((part, i) => permutations(parts.toSpliced(i, 1)).map((rest) => [part, ...rest]));

test.each(Object.entries(collisions))(
  '%s, in whatever order they come',
  async (_, { parts, samples: wanted }) => {
    for (const order of permutations(parts)) {
      const { page } = await relay(order.join(''));
      expect(samples(page)).toEqual(wanted);
      expectReadable(page);
      const later = await relay(order[0]!, order.join(''));
      expect(samples(later.page)).toEqual(wanted);
    }
  },
);

test('a conflict is listed', async () => {
  const { refused } = await relay('# TYPE a.b counter\na.b 1\n# TYPE a-b gauge\na-b 2\n');
  expect(refused).toBeGreaterThan(0);
});
