import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { readOpenMetrics } from '../../openmetrics.ts';
import { until } from '../../until.ts';
import { type TestView, viewOf } from '../../view.ts';
import { get, manualGather, startPull } from './scraper.ts';

const small = () =>
  viewOf([{ name: 'a_total', kind: 'counter', series: [{ labels: { x: '1' }, numbers: [3] }] }]);
const page = '# TYPE a_total counter\na_total{x="1"} 3\n';
const large = () =>
  viewOf([
    {
      name: 'a_total',
      kind: 'counter',
      series: Array.from({ length: 20_000 }, (_, i) => ({ labels: { i: `${i}` }, numbers: [i] })),
    },
  ]);

test('answers a scrape with the text page, and releases the view', async () => {
  const view = small();
  const { address } = await startPull(manualGather(() => view).gather);
  const { status, headers, body } = await get(address, '/metrics');
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(headers.vary).toBe('Accept-Encoding');
  expect(body.toString()).toBe(page);
  expect(view.released).toBe(1);
});

test('compresses for who wants it, and what comes out is the same page', async () => {
  const { address } = await startPull(manualGather(large).gather);
  const plain = await get(address, '/metrics');
  const zipped = await get(address, '/metrics', { 'accept-encoding': 'gzip' });
  expect(zipped.headers['content-encoding']).toBe('gzip');
  expect(plain.headers['content-encoding']).toBeUndefined();
  expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true);
  expect(zipped.body.length).toBeLessThan(plain.body.length / 4);
});

test('negotiates OpenMetrics only where it is on', async () => {
  const accept = { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' };
  const off = await startPull(manualGather(small).gather);
  expect((await get(off.address, '/metrics', accept)).body.toString()).toBe(page);
  const on = await startPull(manualGather(small).gather, { openMetrics: true });
  const { headers, body } = await get(on.address, '/metrics', accept);
  expect(headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  expect(headers.vary).toBe('Accept, Accept-Encoding');
  expect(readOpenMetrics(body.toString())).toEqual([
    {
      name: 'a',
      type: 'counter',
      help: undefined,
      samples: [{ name: 'a_total', labels: { x: '1' }, value: 3 }],
    },
  ]);
  expect((await get(on.address, '/metrics')).body.toString()).toBe(page);
});

test('puts the prefix before every name, sanitized', async () => {
  const { address } = await startPull(manualGather(small).gather, { prefix: 'my-svc' });
  expect((await get(address, '/metrics')).body.toString()).toBe(page.replaceAll('a_total', 'my_svc_a_total'));
});

test('HEAD has the head of GET, no body, and gathers nothing', async () => {
  const { gather, requests } = manualGather(small);
  const { address, down } = await startPull(gather);
  const head = await get(address, '/metrics', { 'accept-encoding': 'gzip' }, 'HEAD');
  expect([head.status, head.body.length]).toEqual([200, 0]);
  expect(head.headers['content-encoding']).toBe('gzip');
  expect(head.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  down.add('frontend');
  expect((await get(address, '/metrics?service=frontend', {}, 'HEAD')).status).toBe(503);
  expect((await get(address, '/metrics?service=nobody', {}, 'HEAD')).status).toBe(404);
  expect(requests.length).toBe(0);
});

test('50 scrapes at a time share one gather; later ones get the next', async () => {
  const hand = manualGather();
  const { address } = await startPull(hand.gather);
  const first = Array.from({ length: 50 }, (_, i) =>
    get(address, '/metrics', i % 2 ? { 'accept-encoding': 'gzip' } : {}),
  );
  await until('the first gather', () => hand.requests.length === 1);
  // Connections are accepted and read in order: once later ones are answered, all of the 50 have joined.
  const others = await Promise.all(Array.from({ length: 50 }, () => get(address, '/ready')));
  expect(others.every(({ status }) => status === 200)).toBe(true);
  const before = small();
  hand.answer(0, before);
  const bodies = (await Promise.all(first)).map(({ headers, body }) =>
    headers['content-encoding'] ? gunzipSync(body).toString() : body.toString(),
  );
  expect(new Set(bodies)).toEqual(new Set([page]));
  expect(hand.requests.length).toBe(1);
  expect(before.released).toBe(1);

  const later = get(address, '/metrics');
  await until('the second gather', () => hand.requests.length === 2);
  hand.answer(1, viewOf([]));
  expect((await later).body.toString()).toBe('');
});

test('a scrape that comes after the freeze does not share it', async () => {
  const hand = manualGather();
  const { address } = await startPull(hand.gather);
  const early = get(address, '/metrics');
  await until('the first gather', () => hand.requests.length === 1);
  hand.requests[0]!.frozen?.();
  const late = get(address, '/metrics');
  await until('the second gather', () => hand.requests.length === 2);
  hand.answer(1, viewOf([{ name: 'late', kind: 'gauge', series: [{ numbers: [2] }] }]));
  hand.answer(0, small());
  expect((await early).body.toString()).toBe(page);
  expect((await late).body.toString()).toContain('late 2');
});

test('scrapes of different services do not share', async () => {
  const hand = manualGather();
  const { address } = await startPull(hand.gather);
  const answers = ['', '?service=frontend', '?service=agent'].map((query) =>
    get(address, `/metrics${query}`),
  );
  await until('three gathers', () => hand.requests.length === 3);
  const frontend = { service: 'frontend', relayed: true };
  expect(hand.requests.filter(({ takes }) => takes(frontend)).length).toBe(2);
  for (const n of hand.requests.keys()) hand.answer(n, small());
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
});

test('the deadline is the scraper’s timeout less half a second; without one the targets’ own decide', async () => {
  const { gather, requests } = manualGather(small);
  const { address, clock } = await startPull(gather);
  clock.advance(1_000);
  for (const timeout of ['10', '2.5', '0.2', 'soon', '-1', '0']) {
    await get(address, '/metrics', { 'x-prometheus-scrape-timeout-seconds': timeout });
  }
  await get(address, '/metrics');
  const deadlines = requests.map(({ deadlineMs }) => deadlineMs);
  expect(deadlines).toEqual([10_500, 3_000, 1_000, Infinity, Infinity, Infinity, Infinity]);
});

test('who cannot wait as long as the others is not made to', async () => {
  const hand = manualGather();
  const { address } = await startPull(hand.gather);
  const timeout = (seconds: number) => ({ 'x-prometheus-scrape-timeout-seconds': `${seconds}` });
  const patient = get(address, '/metrics', timeout(60));
  await until('the first gather', () => hand.requests.length === 1);
  const hasty = get(address, '/metrics', timeout(2));
  await until('a gather of its own', () => hand.requests.length === 2);
  hand.answer(1, small());
  expect((await hasty).status).toBe(200);
  hand.answer(0, small());
  expect((await patient).status).toBe(200);
});

test('a role that is down answers 503 to its own scrape alone, judged after the gather', async () => {
  const hand = manualGather();
  const { address, down } = await startPull(hand.gather);
  const view = small();
  const role = get(address, '/metrics?service=frontend');
  await until('the gather', () => hand.requests.length === 1);
  down.add('frontend');
  hand.answer(0, view);
  const { status, body } = await role;
  expect(status).toBe(503);
  expect(body.toString()).toBe('Role frontend is down: its last scrape or health check failed.\n');
  expect(view.released).toBe(1);
  const all = get(address, '/metrics');
  await until('the second gather', () => hand.requests.length === 2);
  hand.answer(1, small());
  expect((await all).status).toBe(200);
});

test('an unknown or unwatched service is 404', async () => {
  const { gather, requests } = manualGather(small);
  const { address } = await startPull(gather);
  for (const query of ['service=matching', 'service=', 'service=frontend&service=history']) {
    expect((await get(address, `/metrics?${query}`)).status).toBe(404);
  }
  expect(requests.length).toBe(0);
});

test('a scrape by the agent itself is refused, one by another agent is not', async () => {
  const { address } = await startPull(manualGather(small).gather);
  const asked = (mark: string) => get(address, '/metrics', { 'x-svc-agent-scrape': mark });
  expect((await asked('agent-1')).status).toBe(508);
  expect((await asked('agent-2')).status).toBe(200);
});

test('a gather that fails is a 500 without its reason, which the log has', async () => {
  const hand = manualGather();
  const { address, logged } = await startPull(hand.gather);
  const error = new Error('secret path /x');
  const answer = get(address, '/metrics');
  await until('the gather', () => hand.requests.length === 1);
  hand.fail(0, error);
  const { status, body } = await answer;
  expect([status, body.toString()]).toEqual([500, 'Internal error.\n']);
  expect(logged.filter(({ level }) => level === 'error')).toEqual([
    { level: 'error', msg: 'scrape failed', fields: { error } },
  ]);
  const next = get(address, '/metrics');
  await until('another gather', () => hand.requests.length === 2);
  hand.answer(1, small());
  expect((await next).status).toBe(200);
});

test('a rendering that fails breaks the answer off and releases the view', async () => {
  const view: TestView = { ...large(), released: 0 };
  let released = 0;
  let asked = 0;
  const broken = {
    ...view,
    numbers(series: Parameters<TestView['numbers']>[0]) {
      asked += 1;
      if (asked > 10_000) throw new Error('broken');
      return view.numbers(series);
    },
    release() {
      released += 1;
    },
  };
  const { address, logged } = await startPull(manualGather(() => broken).gather);
  await expect(get(address, '/metrics')).rejects.toThrow(/aborted|hang up|ECONNRESET/);
  expect(released).toBe(1);
  expect(logged.some(({ msg }) => msg === 'scrape failed')).toBe(true);
});
