import { describe, expect, test } from 'vitest';
import type { Change } from '../../../../src/agent/report.ts';
import { incidentsShown, type KeptIncident } from '../../../../src/agent/verdict/incident-list.ts';
import { atOf } from '../../../judged.ts';

const incident = (
  cause: string,
  subject: string,
  [fromSeconds, untilSeconds]: readonly [number, number],
  more: Partial<KeptIncident> = {},
): KeptIncident => ({
  ...{ id: `${cause}/${subject}`, severity: 'critical', cause, subject, what: `store ${subject} refuses` },
  ...{ start: atOf(fromSeconds), end: atOf(untilSeconds), durationSeconds: untilSeconds - fromSeconds },
  ...more,
});
const persistence = incident('store_down', 'main/persistence', [10, 40], { consequences: '4 roles' });
const requests = (caller: string, callee: string, when: readonly [number, number]) =>
  incident('request_errors', `${caller} to ${callee}`, when, {
    what: `requests from ${caller} to ${callee} fail`,
  });

test.each<[string, KeptIncident[], object[]]>([
  [
    'two databases of a store are one incident, as long as both together',
    [incident('store_down', 'main/visibility', [8, 37]), persistence],
    [
      {
        ...{ id: 'store_down/main', subject: 'main', what: 'store main refuses', consequences: '4 roles' },
        ...{ start: atOf(8), end: atOf(40), durationSeconds: 32, over: 'store main recovered' },
      },
    ],
  ],
  [
    'three databases, too',
    [
      persistence,
      incident('store_down', 'main/visibility', [30, 50]),
      incident('store_down', 'main/x', [45, 60]),
    ],
    [{ id: 'store_down/main', start: atOf(10), end: atOf(60) }],
  ],
  [
    'the texts are those of the longer one, in either order',
    [persistence, incident('store_down', 'main/visibility', [8, 37])],
    [{ id: 'store_down/main', consequences: '4 roles' }],
  ],
  [
    'one begins in the moment in which the other ends: the store was not well in between',
    [incident('store_down', 'main/visibility', [40, 60]), persistence],
    [{ id: 'store_down/main', start: atOf(10), end: atOf(60) }],
  ],
  [
    'one ends in the moment in which the other begins',
    [persistence, incident('store_down', 'main/visibility', [40, 60])],
    [{ id: 'store_down/main', start: atOf(10), end: atOf(60) }],
  ],
  [
    'one database twice, at the same time, because the clock was set back in between',
    [incident('store_down', 'main/persistence', [30, 60]), persistence],
    [{ id: 'store_down/main/persistence' }, { id: 'store_down/main/persistence' }],
  ],
  ['one database is named', [persistence], [{ id: 'store_down/main/persistence' }]],
  [
    'the clock jumped by an hour in both',
    [
      incident('store_down', 'main/persistence', [10, 3_640], { durationSeconds: 30 }),
      incident('store_down', 'main/visibility', [8, 3_634], { durationSeconds: 26 }),
    ],
    [{ start: atOf(8), end: atOf(3_640), durationSeconds: 32 }],
  ],
  [
    'a role that fails the requests of three others is one incident',
    [
      requests('frontend', 'matching', [8, 37]),
      requests('history', 'matching', [10, 40]),
      requests('worker', 'matching', [20, 30]),
    ],
    [
      {
        ...{
          id: 'request_errors/several roles to matching',
          what: 'requests from several roles to matching fail',
        },
        ...{ start: atOf(8), end: atOf(40), over: 'requests from several roles to matching succeed again' },
      },
    ],
  ],
  [
    'one role that calls two others',
    [requests('frontend', 'matching', [8, 37]), requests('frontend', 'history', [10, 40])],
    [{ subject: 'frontend to history' }, { subject: 'frontend to matching' }],
  ],
  [
    'one after the other',
    [persistence, incident('store_down', 'main/visibility', [50, 60])],
    [{ subject: 'main/visibility' }, { subject: 'main/persistence' }],
  ],
  [
    'one after the other, of which the later is known first',
    [incident('store_down', 'main/visibility', [50, 60]), persistence],
    [{ subject: 'main/visibility' }, { subject: 'main/persistence' }],
  ],
  [
    'another store',
    [persistence, incident('store_down', 'other/visibility', [10, 41])],
    [{ subject: 'other/visibility' }, { subject: 'main/persistence' }],
  ],
  [
    'another fault',
    [persistence, incident('read_only', 'main/visibility', [10, 41])],
    [{ subject: 'main/visibility' }, { subject: 'main/persistence' }],
  ],
  [
    'what is no store',
    [incident('recovery', 'main/persistence', [10, 40]), incident('recovery', 'main/visibility', [10, 40])],
    [{}, {}],
  ],
  [
    'two streams of replication to one cluster',
    [incident('replication_lag', 'a to c', [10, 40]), incident('replication_lag', 'b to c', [10, 41])],
    [{ subject: 'b to c' }, { subject: 'a to c' }],
  ],
  [
    'of a kind that only another version of the agent has',
    [
      incident('later_kind', 'main/persistence', [10, 40]),
      incident('later_kind', 'main/visibility', [10, 41]),
    ],
    [{ subject: 'main/visibility' }, { subject: 'main/persistence' }],
  ],
])('incidents: %s', (_, kept, shown) => {
  expect(incidentsShown(kept, [])).toMatchObject(shown);
});

describe('the end of an incident of a role', () => {
  const restart = (seconds: number, role = 'matching'): Change => ({
    ...{ at: atOf(seconds), kind: 'restart', role, what: `role ${role} restarted` },
  });
  const overOf = (cause: string, ...changes: Change[]) =>
    incidentsShown([incident(cause, 'matching', [100, 110])], changes)[0]!.over;
  test.each<[string, string, Change[], string]>([
    [
      'a restart seen shortly after',
      'role_failing',
      [restart(170)],
      'restarted and passes its health check again',
    ],
    ['a restart seen shortly before', 'role_down', [restart(40)], 'restarted and recovered'],
    ['a restart in it', 'scrape_down', [restart(105)], 'restarted and can be scraped again'],
    ['a later restart', 'role_failing', [restart(171)], 'passes its health check again'],
    ['an earlier restart', 'role_failing', [restart(39)], 'passes its health check again'],
    ['a restart of another role', 'role_failing', [restart(105, 'history')], 'passes its health check again'],
    ['a deploy', 'role_failing', [{ ...restart(105), kind: 'deploy' }], 'passes its health check again'],
    ['restarts in a loop', 'crash_loop', [restart(105)], 'no longer crashes'],
  ])('with %s', (_, cause, changes, over) => {
    expect(overOf(cause, ...changes)).toBe(`role matching ${over}`);
  });
});
