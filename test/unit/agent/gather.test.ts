import { SpanStatusCode, trace } from '@opentelemetry/api';
import { expect, onTestFinished, test } from 'vitest';
import { createGather } from '../../../src/agent/gather.ts';
import type { GatherRequest } from '../../../src/core/ports.ts';
import { viewOf } from '../../view.ts';

type Deps = Parameters<typeof createGather>[0];

/** A gather that records each step, with a state whose status the test sets. */
function recorded(deps: Partial<Deps> = {}) {
  const steps: string[] = [];
  const step = (name: string) => async () => void steps.push(name);
  const status = {
    degraded: undefined as string | undefined,
    lastCommitMs: undefined as number | undefined,
    failures: 0,
  };
  const gauge = (name: string) => ({ set: (value: number) => void steps.push(`${name} ${value}`) });
  const gather = createGather({
    registry: {
      view: () => {
        steps.push('view');
        return viewOf([]);
      },
    },
    state: { commit: step('commit'), status: () => status },
    self: {
      stateDegraded: gauge('degraded'),
      stateLastCommit: gauge('committed'),
      stateCommitFailures: { inc: (by: number) => void steps.push(`failures +${by}`) },
    },
    relaySelf: step('relay'),
    switched: () => undefined,
    refresh: step('refresh'),
    ...deps,
  } as unknown as Deps);
  const request: GatherRequest = { takes: () => true, frozen: () => void steps.push('frozen') };
  return { status, gather: (asked = request) => gather(asked), taken: () => steps.splice(0) };
}

test('pages come first, then the commit, then what it did to the state, then the view', async () => {
  const { gather, taken, status } = recorded();
  await gather();
  const before = ['refresh', 'frozen', 'commit'];
  const after = ['relay', 'view'];
  expect(taken()).toEqual([...before, 'degraded 0', 'failures +0', ...after]);
  Object.assign(status, { degraded: 'write', lastCommitMs: 5500, failures: 2 });
  await gather();
  expect(taken()).toEqual([...before, 'degraded 1', 'committed 5.5', 'failures +2', ...after]);
  status.failures = 3;
  await gather();
  // A counter gets its increase since the last gather.
  expect(taken()).toContain('failures +1');
});

test('gathers at the same time share one copy of the agent’s own metrics; a later one makes another', async () => {
  let copies = 0;
  let end: () => void = () => {};
  const relaySelf = () => {
    copies++;
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  };
  const { gather } = recorded({ relaySelf });
  const both = [gather(), gather()];
  await new Promise((resolve) => setImmediate(resolve));
  expect(copies).toBe(1);
  void end();
  await Promise.all(both);
  const third = gather();
  await new Promise((resolve) => setImmediate(resolve));
  expect(copies).toBe(2);
  void end();
  await third;
});

test('a view waits for a reload that moves series, and for one that begins meanwhile', async () => {
  const moves = [Promise.resolve(), Promise.resolve()];
  let asked = 0;
  const { gather, taken } = recorded({
    switched: () => {
      asked++;
      return moves.shift();
    },
  });
  await gather();
  expect([asked, taken().at(-1)]).toEqual([3, 'view']);
});

/** Records the spans that begin from now on, with their attributes. */
function spans() {
  const begun: { name: string; attributes: object; status?: object; exceptions: unknown[] }[] = [];
  const startActiveSpan = (
    name: string,
    { attributes }: { attributes: object },
    work: (span: object) => unknown,
  ) => {
    const span: (typeof begun)[number] = { name, attributes, exceptions: [] };
    begun.push(span);
    return work({
      setAttributes: (more: object) => Object.assign(span, { attributes: { ...span.attributes, ...more } }),
      setStatus: (status: object) => Object.assign(span, { status }),
      recordException: (thrown: unknown) => span.exceptions.push(thrown),
      end: () => {},
    });
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startActiveSpan }) } as never);
  onTestFinished(() => trace.disable());
  return begun;
}

test('spans tell the size of the view and whether the state is degraded, and why', async () => {
  const begun = spans();
  const families = [
    { name: 'a', kind: 'gauge' as const, series: [{ numbers: [1] }, { labels: { b: '1' }, numbers: [2] }] },
    { name: 'b', kind: 'gauge' as const, series: [{ numbers: [3] }] },
  ];
  const { gather, status } = recorded({ registry: { view: () => viewOf(families) } as never });
  await gather();
  status.degraded = 'the disk is full';
  await gather();
  const found = { name: 'gather', attributes: { 'svc.families': 2, 'svc.series': 3 }, exceptions: [] };
  expect(begun).toEqual([
    found,
    { name: 'commit', attributes: { 'svc.state.degraded': false }, exceptions: [] },
    found,
    {
      ...{ name: 'commit', attributes: { 'svc.state.degraded': true }, exceptions: [] },
      status: { code: SpanStatusCode.ERROR, message: 'cannot write: the disk is full' },
    },
  ]);
});

test('a request may have no interest in the moment when values freeze; a fault of its pages is its own', async () => {
  const begun = spans();
  const { gather } = recorded({ refresh: () => Promise.reject(new Error('no page')) });
  await expect(gather()).rejects.toThrow('no page');
  expect(begun).toMatchObject([
    { name: 'gather', status: { message: 'no page' }, exceptions: [new Error('no page')] },
  ]);
  expect((await recorded().gather({ takes: () => true })).families).toEqual([]);
});
