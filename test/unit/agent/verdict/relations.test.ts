import { expect, test } from 'vitest';
import type { Exceeded, StatusFacts } from '../../../../src/agent/report.ts';
import { createServiceReadings } from '../../../../src/agent/verdict/readings.ts';
import { probeStatusOf, statusReportOf } from '../../../status-report.ts';

const now = '2026-01-01T12:00:00.000Z';
const began = '2026-01-01T11:30:00.000Z';
const last = { at: '2026-01-01T11:59:59.000Z' };
const exceeded = (kind: string, about: Record<string, string>): Exceeded => ({
  ...{ kind, about, value: '9', limit: '1', since: began },
});
type Name = Parameters<typeof probeStatusOf>[0];
const down = (name: Name, reason = 'refused') =>
  probeStatusOf(name, { ...last, reason, msg: 'x' } as never, { since: began });
const up = (name: Name) => probeStatusOf(name, last);
const unscraped = (service: string, reason: 'refused' | 'status') => ({
  ...{ service, url: 'http://h/metrics', up: false, lastTakenMs: Date.parse(began) },
  ...{ lastFailure: { reason, what: 'no', atMs: Date.parse(began) }, failures: {} },
  failingSinceMs: Date.parse(began),
  ...{ page: undefined, firstInvalid: undefined, vocabulary: undefined },
});
const well = ['frontend', 'matching', 'worker'].map((role) => up(`health/${role}` as Name));
/** Each problem with the problem that explains it. */
const causesIn = (facts: Partial<StatusFacts>) =>
  statusReportOf({ now, ...facts }).verdict.problems.map(({ id, causedBy }) =>
    causedBy === undefined ? id : `${id} by ${causedBy}`,
  );

test.each<[string, Partial<StatusFacts>, string[]]>([
  [
    'a list that nobody polls explains how workflows of its domain end, and not those of another',
    {
      exceeded: [
        exceeded('list_unpolled', { domain: 'a', tasklist: 't' }),
        exceeded('workflow_timeouts', { domain: 'a' }),
        exceeded('workflow_failures', { domain: 'a' }),
        exceeded('workflow_failures', { domain: 'b' }),
      ],
    },
    [
      'list_unpolled/a/t',
      'workflow_timeouts/a by list_unpolled/a/t',
      'workflow_failures/a by list_unpolled/a/t',
      'workflow_failures/b',
    ],
  ],
  [
    'a role that still cannot use its store does not explain the persistence errors of the others, but those of itself',
    {
      probes: [down('health/history', 'persistence'), ...well],
      exceeded: ['frontend', 'history', 'matching', 'worker'].map((role) =>
        exceeded('persistence_errors', { role }),
      ),
    },
    [
      'role_down/history',
      'persistence_errors/history by role_down/history',
      'persistence_errors/frontend',
      'persistence_errors/matching',
      'persistence_errors/worker',
    ],
  ],
  [
    'time-outs explain no failures',
    {
      exceeded: [
        exceeded('workflow_timeouts', { domain: 'a' }),
        exceeded('workflow_failures', { domain: 'a' }),
      ],
    },
    ['workflow_timeouts/a', 'workflow_failures/a'],
  ],
  [
    'shards that move explain late tasks, and both explain the work',
    {
      exceeded: [
        exceeded('shard_movement', { role: 'history' }),
        exceeded('task_latency', { role: 'history', queue: 'timer' }),
        exceeded('canary', { domain: 'canary' }),
      ],
    },
    [
      'canary/canary by shard_movement/history',
      'shard_movement/history',
      'task_latency/timer of history by shard_movement/history',
    ].sort(),
  ],
  ...(
    [
      ['a role that crashed until shortly before explains a role that calls it', 74_999, true],
      ['a role that crashed minutes before does not', 75_000, false],
    ] as const
  ).map(([name, agoMs, isCause]): [string, Partial<StatusFacts>, string[]] => [
    name,
    {
      probes: [up('health/matching'), down('health/frontend', 'warming_up')],
      exceeded: [
        {
          ...exceeded('crash_loop', { role: 'matching' }),
          lastCounted: new Date(Date.parse(began) - agoMs).toISOString(),
        },
      ],
    },
    ['crash_loop/matching', isCause ? 'role_down/frontend by crash_loop/matching' : 'role_down/frontend'],
  ]),
  ...(
    [
      ['is gone has ended again', { probes: [down('health/matching')] }, true, 'role_down'],
      [
        'runs, but lacks its store, did not',
        { probes: [down('health/matching', 'persistence')] },
        false,
        'role_down',
      ],
      [
        'pauses for garbage collection runs',
        { exceeded: [exceeded('gc_pause', { role: 'matching' })] },
        false,
        'gc_pause',
      ],
    ] as const
  ).map(([name, facts, isCause, kind]): [string, Partial<StatusFacts>, string[]] => [
    `a role that crashed minutes before and ${name}`,
    {
      probes: [],
      ...facts,
      exceeded: [
        ...('exceeded' in facts ? facts.exceeded : []),
        {
          ...exceeded('crash_loop', { role: 'matching' }),
          lastCounted: new Date(Date.parse(began) - 75_000).toISOString(),
        },
      ],
    },
    ['crash_loop/matching', `${kind}/matching${isCause ? ' by crash_loop/matching' : ''}`],
  ]),
  [
    'late tasks alone explain the work',
    {
      exceeded: [
        exceeded('task_latency', { role: 'history', queue: 'timer' }),
        exceeded('workflow_timeouts', { domain: 'a' }),
      ],
    },
    ['task_latency/timer of history', 'workflow_timeouts/a by task_latency/timer of history'],
  ],
  [
    'requests that fail explain the work',
    {
      exceeded: [
        exceeded('request_errors', { role: 'frontend', callee: 'matching' }),
        exceeded('list_stalled', { domain: 'a', tasklist: 't' }),
      ],
    },
    ['list_stalled/a/t by request_errors/frontend to matching', 'request_errors/frontend to matching'],
  ],
  [
    'a store that is down does not explain that a role, which is well, does not serve its metrics',
    {
      probes: [...well, up('health/history'), down('store/main/persistence')],
      scrapes: [unscraped('matching', 'status')],
    },
    ['scrape_down/matching', 'store_down/main/persistence'],
  ],
  [
    'a store that is down explains processes that ended together, and so their metrics',
    {
      probes: [
        ...(['frontend', 'history'] as const).map((role) => down(`health/${role}`)),
        down('store/main'),
      ],
      scrapes: [unscraped('matching', 'refused')],
    },
    [
      'role_down/frontend by store_down/main',
      'role_down/history by store_down/main',
      'scrape_down/matching by store_down/main',
      'store_down/main',
    ],
  ],
  [
    'a role that only its page shows to be gone explains the roles that call it',
    {
      probes: [down('health/frontend', 'not_ok'), down('health/matching', 'not_ok')],
      scrapes: [unscraped('history', 'refused')],
    },
    [
      'role_down/frontend by scrape_down/history',
      'role_down/matching by scrape_down/history',
      'scrape_down/history',
    ],
  ],
  [
    'a role that only its page shows to be gone explains no role that it calls',
    { probes: [down('health/history', 'not_ok')], scrapes: [unscraped('frontend', 'refused')] },
    ['role_down/history', 'scrape_down/frontend'],
  ],
  [
    'of history and matching, which call each other, history is the cause',
    { probes: [down('health/history', 'not_ok')], scrapes: [unscraped('matching', 'refused')] },
    ['role_down/history', 'scrape_down/matching'],
  ],
  [
    'calls of a role that fail explain its slow calls, if no other role is slow',
    {
      exceeded: [
        exceeded('persistence_latency', { role: 'history' }),
        exceeded('persistence_errors', { role: 'history' }),
        exceeded('heap', { role: 'worker' }),
      ],
    },
    [
      'heap/worker',
      'persistence_errors/history',
      'persistence_latency/history by persistence_errors/history',
    ],
  ],
  [
    'neither calls of a role that fail nor its end explain that the calls of several roles are slow',
    {
      exceeded: [
        ...['history', 'matching', 'worker'].map((role) => exceeded('persistence_latency', { role })),
        exceeded('persistence_errors', { role: 'history' }),
        exceeded('crash_loop', { role: 'matching' }),
      ],
    },
    [
      'crash_loop/matching',
      'persistence_errors/history',
      'persistence_latency/history',
      'persistence_latency/matching by persistence_latency/history',
      'persistence_latency/worker by persistence_latency/history',
    ],
  ],
  [
    'slow calls of a role whose process ends again and again are its consequence',
    {
      exceeded: [
        exceeded('persistence_latency', { role: 'worker' }),
        exceeded('crash_loop', { role: 'worker' }),
      ],
    },
    ['crash_loop/worker', 'persistence_latency/worker by crash_loop/worker'],
  ],
  [
    'a frontend that is down explains a domain that cannot be read, a worker does not',
    { probes: [down('health/frontend'), down('domain/a', 'command_failed')] },
    ['domain/a by role_down/frontend', 'role_down/frontend'],
  ],
  [
    'a worker that is down explains no domain that cannot be read',
    { probes: [down('health/worker', 'tls_expired'), down('domain/a', 'command_failed')] },
    ['domain/a', 'role_down/worker'],
  ],
  ...(
    [
      ['refused', ['crash_loop/worker', 'role_down/worker by crash_loop/worker']],
      ['tls_expired', ['crash_loop/worker', 'role_down/worker']],
    ] as const
  ).map(
    ([reason, problems]) =>
      [
        `crashes and a role that is down: ${reason}`,
        { probes: [down('health/worker', reason)], exceeded: [exceeded('crash_loop', { role: 'worker' })] },
        [...problems],
      ] as [string, Partial<StatusFacts>, string[]],
  ),
  [
    'a certificate that has ended explains itself where the check says so',
    {
      probes: [down('health/worker', 'tls_expired'), ...well.slice(0, 2)],
      certificates: [
        { probe: 'health/worker', notAfter: '2025-12-31T00:00:00.000Z' },
        { probe: 'health/other', notAfter: '2025-12-31T00:00:00.000Z' },
      ],
    },
    ['certificate/health/other', 'certificate/health/worker by role_down/worker', 'role_down/worker'],
  ],
  [
    'another reason explains no certificate',
    {
      probes: [down('health/worker', 'not_in_ring'), ...well.slice(0, 2)],
      certificates: [{ probe: 'health/worker', notAfter: '2025-12-31T00:00:00.000Z' }],
    },
    ['certificate/health/worker', 'role_down/worker'],
  ],
  [
    'an archive that receives nothing explains what retention deletes',
    {
      exceeded: [
        exceeded('archival_stalled', { archive: 'history', scheme: 's3' }),
        exceeded('retention_unarchived', { archive: 'history', scheme: 's3' }),
      ],
    },
    ['archival_stalled/history', 'retention_unarchived/history by archival_stalled/history'],
  ],
  [
    'a log file of two roles is no problem of one of them',
    {
      probes: [down('health/a', 'not_in_ring')],
      logs: [{ path: '/x.log', services: ['a', 'b'], offset: 0, lagBytes: 0, state: 'permission denied' }],
    },
    ['log_unread//x.log', 'role_down/a'],
  ],
])('%s', (_, facts, causes) => {
  expect(causesIn(facts).sort()).toEqual([...causes].sort());
});

test('metrics that show most of the errors in the log hide nothing', () => {
  const conflicts = (truth: number) =>
    statusReportOf({
      now,
      exceeded: [exceeded('persistence_errors', { role: 'history' })],
      telemetryTruth: { history: truth },
    }).verdict.problems[0]!.evidence.filter(({ source }) => source === 'conflict');
  expect(conflicts(0.5)).toEqual([]);
  expect(conflicts(0.49)).toHaveLength(1);
});

test('the sentence counts one problem more', () => {
  const four = ['a', 'b', 'c', 'd'].map((_, i) =>
    exceeded(['heap', 'gc_pause', 'log_lost', 'log_silent'][i]!, { role: `r${i}` }),
  );
  expect(statusReportOf({ now, exceeded: four }).verdict.sentence).toMatch(/ and 1 more problem\.$/);
});

test('a canary of archival is silent for long', () => {
  const readings = createServiceReadings();
  for (let step = 0; step <= 80; step++) {
    const rows = [{ service: 'history', labels: { domain: 'canary_archival' }, value: 99 }];
    readings.sample((family) => (family === 'svc_workflow_completed' ? rows : []), {
      nowMs: Date.parse(now) + step * 15_000,
      monotonicMs: step * 15_000,
    });
  }
  expect(readings.report().exceeded).toEqual([]);
});
