import { expect, test } from 'vitest';
import { messageOf, phaseOf, reasonOf, sinceOf } from '../../../../src/agent/verdict/probe-text.ts';

test.each([
  ['connect ECONNREFUSED 127.0.0.1:5432', 'connection refused by 127.0.0.1:5432'],
  ['connect ECONNREFUSED', 'connection refused'],
  ['connect EHOSTUNREACH 10.0.0.1:9042 - Local', 'no route to 10.0.0.1:9042 - Local'],
  ['connect ENETUNREACH ::1:80', 'no route to [::1]:80'],
  ['connect ETIMEDOUT 10.0.0.1:80', 'no answer from 10.0.0.1:80'],
  ['getaddrinfo ENOTFOUND db.example', 'no address found for db.example'],
  ['getaddrinfo EAI_AGAIN db.example', 'getaddrinfo EAI_AGAIN db.example'],
  ['connect EPERM 10.0.0.1:80', 'connect EPERM 10.0.0.1:80'],
  ['connect ECONNREFUSED ::1:18399', 'connection refused by [::1]:18399'],
  ['connect EHOSTUNREACH 2001:db8::1:443', 'no route to [2001:db8::1]:443'],
  ['10.0.0.1: connect ECONNREFUSED 10.0.0.1:1', '10.0.0.1: connection refused by 10.0.0.1:1'],
  ['server has gone away', 'server has gone away'],
])('a system error in plain words: %s', (msg, text) => {
  expect(messageOf(msg)).toBe(text);
});

test.each([
  ['refused', 'connect ECONNREFUSED 127.0.0.1:1', 'connection refused by 127.0.0.1:1'],
  ['resolve', 'getaddrinfo ENOTFOUND db', 'no address found for db'],
  ['too_slow', 'no answer within 5s', 'too slow: no answer within 5s'],
  ['too_slow', 'Too slow by 3 s', 'Too slow by 3 s'],
  ['reset', 'resetting', 'reset: resetting'],
  ['failed', '', 'failed'],
  [undefined, 'down', 'down'],
])('a reason is said once: %s and %s', (reason, msg, text) => {
  expect(reasonOf({ last: { ...(reason && { reason }), msg } })).toBe(text);
});

test('a probe without a result has no reason and no phase', () => {
  expect(reasonOf({})).toBe('');
  expect(phaseOf({})).toBeUndefined();
  expect(phaseOf({ last: { at: '', ok: false, msg: '', durationMs: 1 } })).toBeUndefined();
});

test('the phase of a failed check is the last that it entered', () => {
  const last = { at: '', ok: false, msg: '', durationMs: 1, phasesMs: { resolve: 1, connect: 9, tls: 3 } };
  expect(phaseOf({ last })).toBe('tls');
});

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
