import { expect, test } from 'vitest';
import { untilBack } from '../../../../src/agent/verdict/downtime.ts';
import type { Begun, Found } from '../../../../src/agent/verdict/found.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

/** Times in seconds. The crashes of history began at 700 s, the last one was at 1000 s, and now is 1200 s. */
const nowSeconds = 1_200;
interface Times {
  since?: number;
  last?: number;
  /** When the crashes would have ended without the downtime. */
  otherwise?: number;
}
const problem = (kind: Found['kind'], { since, last, otherwise }: Times, more: Partial<Found> = {}) =>
  ({
    ...{ kind, subject: 'history', about: { role: 'history' }, evidence: [] },
    ...(since !== undefined && { sinceMs: since * 1e3 }),
    ...(last !== undefined && { lastMs: last * 1e3 }),
    ...(otherwise !== undefined && { down: { line: 'role_down/history', lastMs: otherwise * 1e3 } }),
    ...more,
  }) as Begun;
const crashes = (times: Times = {}) => problem('crash_loop', { since: 700, last: 1_000, ...times });
const gone = (since = 1_050, more: Partial<Found> = {}) =>
  problem('role_down', { since }, { reason: 'refused', ...more });
const page = problem('scrape_down', { since: 1_050 }, { reason: 'refused' });

const lasting = [nowSeconds, 1_000];
const over = [1_000];

test.each<[string, { found?: Begun; other?: Begun; last?: Begun; passes?: boolean }, number[]]>([
  ['the role is gone', { other: gone() }, lasting],
  ['the role is back', {}, over],
  ['another role is gone', { other: gone(1_050, { about: { role: 'worker' } }) }, over],
  ['the role fails its check because of its store', { other: gone(1_050, { reason: 'persistence' }) }, over],
  ['its check has wrong credentials', { other: gone(1_050, { reason: 'credentials' }) }, over],
  ['a fatal entry is no downtime', { other: problem('fatal', { since: 1_050, last: 1_100 }) }, over],
  ['errors are no downtime', { other: problem('persistence_errors', { since: 1_050 }) }, over],
  ['only its page is watched, and is gone', { other: page }, lasting],
  ['its page is gone, and its check passes', { other: page, passes: true }, over],
  // Kubernetes waits five minutes at most, and a start takes a while.
  ['a loop that waits six minutes', { found: crashes({ last: 690 }), other: gone() }, [nowSeconds, 690]],
  ['gone later than that', { found: crashes({ last: 690 }), other: gone(1_050.001) }, [690]],
  [
    'gone 75 s after a fatal entry',
    { found: problem('fatal', { since: 975, last: 975 }), other: gone() },
    [nowSeconds, 975],
  ],
  [
    'gone later than 75 s after a fatal entry',
    { found: problem('fatal', { since: 975, last: 975 }), other: gone(1_050.001) },
    [975],
  ],
  // A check may find the downtime three minutes before crashes are counted.
  ['gone shortly before the first crash', { other: gone(520) }, lasting],
  ['gone long before the first crash', { other: gone(519.999) }, over],
  [
    'gone before the first crash that a new agent counted, which knows of those before',
    { found: crashes({ since: 1_000 }), other: gone(800), last: crashes() },
    lasting,
  ],
  [
    'gone before the first crash that an agent counted',
    { found: crashes({ since: 1_000 }), other: gone(800) },
    over,
  ],
  ['the role was down until later', { last: crashes({ last: 1_100 }) }, [1_100]],
  ['the role was down until now', { last: crashes({ last: nowSeconds }) }, [nowSeconds]],
  ['the clock was set back', { last: crashes({ last: 1_200.001 }) }, over],
  ['the role is down again', { other: gone(), last: crashes({ last: 1_100 }) }, [nowSeconds, 1_100]],
  [
    'it crashed once more while it was down',
    { other: gone(), last: crashes({ last: 1_150, otherwise: 950 }) },
    lasting,
  ],
  [
    'it is down again after an earlier downtime',
    { other: gone(), last: crashes({ last: 1_150, otherwise: 1_020 }) },
    [nowSeconds, 1_020],
  ],
  ['errors do not last', { found: problem('persistence_errors', { last: 1_000 }), other: gone() }, over],
])('%s', (_, { found = crashes(), other, last, passes = false }, seconds) => {
  const probes = passes ? [probeStatusOf('health/history', {})] : [];
  const context = { facts: statusFactsOf({ probes }), nowMs: nowSeconds * 1e3 };
  const { lastMs, down } = untilBack(found, other ? [found, other] : [found], last, context);
  expect([lastMs, ...(down ? [down.lastMs] : [])]).toEqual(seconds.map((each) => each * 1e3));
  expect(down?.line).toBe(down && (other === page ? 'scrape_down/history' : 'role_down/history'));
});

test('a role that is down without a crash is left as it is', () => {
  const facts = statusFactsOf({});
  expect(untilBack(gone(), [gone()], undefined, { facts, nowMs: nowSeconds * 1e3 })).toEqual(gone());
});
