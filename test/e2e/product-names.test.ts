import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { exposition } from '../../examples/service/exposition.ts';
import { type MetricNames, metricNames } from '../../examples/service/options.ts';
import { createRoleProcess } from '../../examples/service/process.ts';
import { createRandom } from '../../examples/service/random.ts';
import { catalog, type Role, roles } from '../../src/core/catalog.ts';
import { newFolder } from '../folder.ts';
import { listening } from '../ports.ts';
import { parse, type Sample, sums } from '../recorded-pages.ts';
import { stopsAtEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { startExample } from './example.ts';
import { startAgent } from './process.ts';

/**
 * Exactly the same activity of the example service with the names of the catalog and with those of the product: the built agent
 * shows the same totals.
 */

const place = newFolder(afterAll);
const stops = stopsAtEnd();

/** What a role sends after five minutes, some of which were spent in trouble. */
function pageOf(role: Role, names: MetricNames): string {
  const process = createRoleProcess(
    { role, names, ratePerSecond: 10, startMs: 0 },
    createRandom(7 + roles.indexOf(role)),
  );
  for (let second = 1; second <= 300; second += 1)
    process.advance(second * 1000, second > 200 ? { failingRole: role } : {});
  return exposition(process.families());
}

async function shownBy(names: MetricNames): Promise<Sample[]> {
  const pages = new Map(roles.map((role) => [`/${role}`, pageOf(role, names)]));
  const server = await listening(
    createServer((request, response) => {
      response.setHeader('Content-Type', 'text/plain; version=0.0.4');
      response.end(pages.get(request.url!));
    }),
  );
  stops.push(server.close);
  const file = join(place, `${names}.yaml`);
  const config = {
    stateDirectory: join(place, names),
    metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
    admin: { listenAddress: '127.0.0.1:0' },
    services: Object.fromEntries(
      roles.map((role) => [role, { vocabulary: names, scrape: `http://127.0.0.1:${server.port}/${role}` }]),
    ),
  };
  writeFileSync(file, stringify(config));
  const agent = await startAgent(file);
  stops.push(() => agent.end());
  return until('the pages of all roles', async () => {
    const samples = parse(await (await fetch(`http://${agent.address('metrics')}/metrics`)).text());
    const isUp = (role: Role) =>
      samples.some(
        ({ name, labels, value }) =>
          name === 'svc_role_scrape_up' && labels.svc_service === role && value === 1,
      );
    return roles.every(isUp) ? samples : undefined;
  });
}

let shown: Record<MetricNames, Sample[]>;
beforeAll(async () => {
  const [svc, cadence] = await Promise.all(metricNames.map(shownBy));
  shown = { svc: svc!, cadence: cadence! };
});

/** Metrics that the product's server does not send: a client's library sends them, or nobody does. */
const notSent = [
  'svc_decision_task_execution_latency',
  'svc_activity_task_execution_latency',
  'svc_matching_tasks_dispatched',
];

/** In some operations the product leaves out the callee's name or the prefix of the store. */
const operationOf = ({ operation = '' }: Sample['labels']) =>
  operation.replace(/^(Frontend|History|Matching)Client/, '');

const names = [...catalog.map(({ name }) => name), 'svc_replication_latency'];
test.each(names)('%s is the same in both', (name) => {
  const kind = catalog.find((metric) => metric.name === name)?.kind ?? 'gauge';
  // One counts a pause in milliseconds, the other times it in seconds.
  const isPause = name === 'svc_memory_gc_pause_ms';
  const isSame = (sample: Sample, suffix: string) => sample.name === name + suffix;
  const totals = (samples: readonly Sample[], suffix: string) =>
    sums(
      samples,
      (sample) => isSame(sample, suffix),
      ({ le = '', ...labels }) =>
        [labels.svc_service, operationOf(labels), labels.domain, labels.tasklist, labels.target_cluster, le]
          // One of the two has no operation there.
          .filter((_, index) => !(index === 1 && /_cache_|tasks_added/.test(name)))
          .join(' '),
    );
  for (const suffix of kind === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) {
    const expected = totals(shown.svc, suffix);
    const found = totals(shown.cadence, isPause ? '_sum' : suffix);
    if (notSent.includes(name)) {
      expect([Object.keys(expected).length > 0, found]).toEqual([true, {}]);
      continue;
    }
    expect(Object.keys(expected).length).toBeGreaterThan(0);
    // A counter of the product appears with its first event.
    for (const [key, value] of Object.entries(expected)) {
      if (value === 0 && !(key in found)) continue;
      const factor = isPause ? 1000 : 1;
      expect((found[key] ?? Number.NaN) * factor, key).toBeCloseTo(value, 6);
    }
    expect(Object.keys(found).filter((key) => !(key in expected))).toEqual([]);
  }
});

test('the built service speaks the names of the product, and the agent finds them out by itself', async () => {
  const example = await startExample(place, ['--names', 'cadence']);
  stops.push(() => example.end());
  const file = join(place, 'auto.yaml');
  const scrapes = Object.entries(example.roles).map(([role, { metrics }]) => [role, { scrape: metrics }]);
  writeFileSync(
    file,
    stringify({
      stateDirectory: join(place, 'auto'),
      metrics: { pullmetrics: { listenAddress: '127.0.0.1:0' } },
      admin: { listenAddress: '127.0.0.1:0' },
      services: Object.fromEntries(scrapes),
    }),
  );
  const agent = await startAgent(file);
  stops.push(() => agent.end());
  const wanted = ['PersistenceGetWorkflowExecution', 'PersistenceCreateWorkflowExecution'];
  const found = await until('what the product counts by domain and without', async () => {
    const text = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
    const operations = new Set(
      parse(text)
        .filter(({ name, labels }) => name === 'svc_persistence_requests' && labels.svc_service === 'history')
        .map(({ labels }) => labels.operation),
    );
    return wanted.every((name) => operations.has(name)) ? [...operations] : undefined;
  });
  expect(found).toEqual(expect.arrayContaining(wanted));
});
