import { expect, test } from 'vitest';
import { healthRoutes, probeRoutes, statusRoutes } from '../../../src/agent/admin/routes.ts';
import type { ProbeReport } from '../../../src/probes/runner/probe-state.ts';
import type { Reply, Routes } from '../../../src/reporters/listen/http.ts';

/** The answer of a route to a request; `closed` collects what is called once the answer was sent. */
async function answer(
  routes: Routes,
  target: string,
  closed: (then: () => void) => void = () => {},
): Promise<[status: number, body: string]> {
  const url = new URL(target, 'http://listener');
  let sent: [number, string] | undefined;
  const send = (status: number, body: string) => {
    sent = [status, body];
  };
  const reply = { send, closed } as unknown as Reply;
  await routes[url.pathname]!.handle({ url, message: {} as never }, reply);
  return sent!;
}

test.each([
  ['/health', true, 200],
  ['/ready', false, 503],
])('%s: {"ok":%s} is %d, and open without credentials', async (path, ok, status) => {
  const routes = healthRoutes({
    health: () => ({ ok: true, msg: 'OK' }),
    ready: () => ({ ok: false, msg: 'starting' }),
  } as never);
  const [code, body] = await answer(routes, path);
  expect([code, JSON.parse(body)]).toEqual([status, { ok, msg: ok ? 'OK' : 'starting' }]);
  expect(routes[path]!.access).toBe('open');
});

test.each([
  ['/probe?name=store/other', 404, ['store/other']],
  ['/probe', 400, []],
  ['/probe?name=', 400, []],
])('%s is %d with the names that there are, and checks nothing else', async (target, status, asked) => {
  const checked: string[] = [];
  const known = ['store/main', 'health/history'].map((name) => ({ name }) as ProbeReport);
  const routes = probeRoutes(
    () => known,
    async (name) => {
      checked.push(name);
      return undefined;
    },
  );
  const [code, body] = await answer(routes, target);
  expect([code, checked]).toEqual([status, asked]);
  expect(body.trimEnd().split('\n').slice(1)).toEqual(['store/main', 'health/history']);
});

const atMs = Date.UTC(2026, 0, 2, 3, 4, 5);
const failed = { atMs, ok: false, reason: 'refused', msg: 'no', durationMs: 3, phasesMs: { connect: 3 } };
const report = {
  ...{
    name: 'store/main',
    kind: 'store',
    target: 'main',
    state: 'down',
    sinceMs: atMs,
    nextRunMs: atMs + 1000,
  },
  ...{ last: failed, history: [{ ...failed, atMs: atMs - 1000, ok: true }, failed], failures: [failed] },
} as unknown as ProbeReport;
const routesOfProbes = probeRoutes(
  () => [report, { ...report, name: 'store/other' }],
  async () => report,
);

test('/probes has every probe, without what has been', async () => {
  const [code, body] = await answer(routesOfProbes, '/probes');
  const probes = JSON.parse(body);
  expect([code, probes.map(({ name }: { name: string }) => name)]).toEqual([
    200,
    ['store/main', 'store/other'],
  ]);
  expect(probes[0]).toMatchObject({
    ...{ state: 'down', since: '2026-01-02T03:04:05.000Z', nextRun: '2026-01-02T03:04:06.000Z' },
    last: { at: '2026-01-02T03:04:05.000Z', reason: 'refused' },
  });
  expect(Object.keys(probes[0])).not.toContain('history');
});

test.each([
  ['', undefined, undefined],
  ['&debug=1', [false, true], [true]],
  ['&debug=0', undefined, undefined],
])('/probe?name=store/main%s has the last results, newest first, if it is asked for them', async (...row) => {
  const [query, history, failures] = row;
  const [code, body] = await answer(routesOfProbes, `/probe?name=store/main${query}`);
  const probe = JSON.parse(body);
  expect([code, probe.name]).toEqual([200, 'store/main']);
  expect(probe.history?.map(({ ok }: { ok: boolean }) => ok)).toEqual(history);
  expect(probe.failures?.map(({ phasesMs }: { phasesMs?: object }) => phasesMs !== undefined)).toEqual(
    failures,
  );
});

test('four copies of the history leave at a time; whoever comes then is asked to come again', async () => {
  const closings: (() => void)[] = [];
  const routes = statusRoutes({
    report: () => ({ version: '1' }) as never,
    live: { route: {} } as never,
    history: { packed: () => 'copy' } as never,
  });
  expect(await answer(routes, '/api/status')).toEqual([200, '{"version":"1"}\n']);
  const ask = async () => (await answer(routes, '/api/history', (then) => closings.push(then)))[0];
  for (const status of [200, 200, 200, 200, 503, 503]) expect(await ask()).toBe(status);
  closings.shift()!();
  for (const status of [200, 503]) expect(await ask()).toBe(status);
  for (const close of closings.splice(0)) close();
  for (const status of [200, 200, 200, 200, 503]) expect(await ask()).toBe(status);
});
