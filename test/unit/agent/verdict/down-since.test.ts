import { expect, test } from 'vitest';
import { sinceOf } from '../../../../src/agent/verdict/down-since.ts';

const [early, late] = ['2026-01-01T00:00:30.000Z', '2026-01-01T00:02:00.000Z'];
const down = { kind: 'health', name: 'health/history', state: 'down', since: late } as const;
const problem = (since: string, kind = 'role_down', subject = 'history') => ({ kind, subject, since });

test.each([
  ['a probe of a new agent, whose target went down before', down, [problem(early)], early],
  ['a probe that knows an earlier time', { ...down, since: early }, [problem(late)], early],
  ['a probe without a time', { ...down, since: undefined }, [problem(early)], early],
  ['a target without a problem', down, [], late],
  ['the problem of another target', down, [problem(early, 'role_down', 'matching')], late],
  ['a problem of another kind', down, [problem(early, 'heap')], late],
  ['a target that is up', { ...down, state: 'up' } as const, [problem(early)], late],
  [
    'a store with a database',
    { ...down, kind: 'store', name: 'store/main/orders' } as const,
    [problem(early, 'store_down', 'main/orders')],
    early,
  ],
])('since when %s is in its state', (_, probe, problems, since) =>
  expect(sinceOf(probe, problems)).toBe(since),
);
