import { expect, test } from 'vitest';
import { healthRoutes, probeRoutes } from '../../../src/agent/admin/routes.ts';
import type { ProbeReport } from '../../../src/probes/runner/probe-state.ts';
import type { Reply, Routes } from '../../../src/reporters/listen/http.ts';

/** What a route answers to a request. */
async function answer(routes: Routes, target: string): Promise<[status: number, body: string]> {
  const url = new URL(target, 'http://listener');
  let sent: [number, string] | undefined;
  const reply = {
    send(status: number, body: string) {
      sent = [status, body];
    },
  } as unknown as Reply;
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
