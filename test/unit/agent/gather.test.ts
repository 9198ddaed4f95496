import { expect, test } from 'vitest';
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
  return { status, gather: () => gather(request), taken: () => steps.splice(0) };
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
  // A counter gets what came since the last gather.
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
