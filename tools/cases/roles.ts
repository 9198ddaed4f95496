import { type Extra, fires, type HandWritten, type Plan, type Series, silent, within } from './case.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const at = 'cluster="dc1", instance="a"';
const all = (values: string, but?: string): Series =>
  Object.fromEntries(
    ['frontend', 'history', 'matching', 'worker', 'svc-agent']
      .filter((job) => job !== but)
      .map((job) => [`up{cluster="dc1", instance="a", job="${job}"}`, values]),
  );
const up = (instance: string, values: string, cluster = 'dc1'): Series => ({
  [`up{cluster="${cluster}", instance="${instance}", pod="pod-${instance}", job="history"}`]: values,
});
const downAt = (instance: string) => ({
  labels: { cluster: 'dc1', job: 'history', ...history, instance },
  value: '0',
});
const unhealthy = (up: string, failures = '0+6x60'): Series => ({
  [`svc_role_up{${role}}`]: up,
  [`svc_role_health_failures_total{${role}, reason="persistence"}`]: failures,
});
const failures = `svc_role_health_failures_total{${at}, ${role}`;
const absent = { labels: { job: 'worker' }, value: '1' };
/** The other roles: alerts on targets have a branch for each role, and their plans are about history. */
const others = ['frontend', 'matching', 'worker'];
const target = (cluster: string, instance: string, job: string, value: 0 | 1): Series => ({
  [`up{cluster="${cluster}", instance="${instance}", pod="pod-${instance}", job="${job}"}`]: `${value}x20`,
});
const downOf = (job: string): Extra => ({
  shows: `${job} is down in dc1, answers on one of two hosts in dc2, and is hidden by its agent in dc3`,
  series: {
    ...target('dc1', 'a', job, 0),
    ...target('dc1', 'b', job, 0),
    ...target('dc1', 'a', 'svc-agent', 1),
    ...target('dc2', 'c', job, 0),
    ...target('dc2', 'd', job, 1),
    ...target('dc3', 'e', job, 0),
    ...target('dc3', 'e', 'svc-agent', 0),
  },
  at: 10,
  fires: [{ labels: { cluster: 'dc1', job, svc_service: job }, value: '0' }],
});
const instanceDownOf = (job: string): Extra => ({
  shows: `${job} is down on one of two hosts in dc1 and in dc3, where its agent hides it`,
  series: {
    ...target('dc1', 'a', job, 0),
    ...target('dc1', 'b', job, 1),
    ...target('dc1', 'a', 'svc-agent', 1),
    ...target('dc3', 'e', job, 0),
    ...target('dc3', 'f', job, 1),
    ...target('dc3', 'e', 'svc-agent', 0),
  },
  at: 10,
  fires: [{ labels: { cluster: 'dc1', job, svc_service: job, instance: 'a' }, value: '0' }],
});
/** The four roles, each up or down by its health check. Each of the first `blamed` roles has its own incident with this cause. */
const fourRoles = (
  values: string,
  { last = values, cause = 'role_down', blamed = 4, of = 'cluster="dc1"' } = {},
) =>
  Object.fromEntries(
    ['frontend', 'history', 'matching', 'worker'].flatMap((name, i): [string, string][] => [
      [`svc_role_up{${of}, instance="a", svc_service="${name}"}`, i < 3 ? values : last],
      ...(i < blamed
        ? [
            [`svc_incident{${of}, instance="a", cause="${cause}", subject="${name}"}`, '1x40'] as [
              string,
              string,
            ],
          ]
        : []),
    ]),
  );
/** The four roles without health checks, by their pages. */
const pagesOf = (values: string) =>
  Object.fromEntries(
    Object.entries(fourRoles(values, { cause: 'scrape_down' })).map(([key, its]) => [
      key.replace('svc_role_up', 'svc_role_scrape_up'),
      its,
    ]),
  );
const noRole = { labels: { cluster: 'dc1' }, value: '4' };
/** The cases of the alert that no role is up: src/monitoring/alerts/roles.ts. */
const allRolesPlan: HandWritten = {
  alert: 'SvcAllRolesDown',
  at: 10,
  silent: {
    healthy: fourRoles('1x20'),
    'exactly on the threshold': fourRoles('1 0x20', { last: '1x9 0x20' }),
    'counter reset or interruption': fourRoles('1 0x20', { last: '1x7 0 1 0x20' }),
    'one of four roles is up': fourRoles('0x20', { last: '1x20' }),
    'one role explains another': fourRoles('0x20', { blamed: 3 }),
    'another problem explains all of them': {
      ...fourRoles('0x20', { blamed: 0 }),
      [`svc_incident{${at}, cause="store_down", subject="main/persistence"}`]: '1x20',
    },
    'another kind of problem has the names of the roles': fourRoles('0x20', { cause: 'log_silent' }),
    'the incidents are over': Object.fromEntries(
      Object.entries(fourRoles('0x20')).map(([key, values]) => [
        key,
        key.startsWith('svc_incident') ? '0x20' : values,
      ]),
    ),
    'only one role is watched': {
      [`svc_role_up{${at}, ${role}}`]: '0x20',
      [`svc_incident{${at}, cause="role_down", subject="history"}`]: '1x20',
    },
  },
  cases: [
    fires('fires', [noRole], fourRoles('1 0x20')),
    { shows: 'series missing', series: fourRoles('0x5 stale'), at: 15, fires: [] },
    fires('two clusters of which one fails', [noRole], {
      ...fourRoles('0x20'),
      ...fourRoles('0x20', { last: '1x20', of: 'cluster="dc2"' }),
    }),
    fires(
      'two environments with the same names of which one fails',
      [{ labels: { cluster: 'dc1', environment: 'production' }, value: '4' }],
      {
        ...fourRoles('0x20', { of: 'environment="production", cluster="dc1"' }),
        ...fourRoles('0x20', { last: '1x20', of: 'environment="staging", cluster="dc1"' }),
      },
    ),
    silent('two agents that report the same: one instance of one role is up', {
      ...fourRoles('0x20'),
      [`svc_role_up{cluster="dc1", instance="b", ${role}}`]: '1x20',
    }),
    fires('two hosts, and no role is up on either: the incidents of a role count once', [noRole], {
      ...fourRoles('0x20'),
      [`svc_role_up{cluster="dc1", instance="b", ${role}}`]: '0x20',
      'svc_incident{cluster="dc1", instance="b", cause="role_down", subject="history"}': '1x20',
    }),
    ...['crash_loop', 'fatal', 'role_failing'].map((cause) =>
      fires(`each role has the problem ${cause}`, [noRole], fourRoles('0x20', { cause })),
    ),
    fires('roles without a health check: the page of none can be read', [noRole], pagesOf('0x20')),
    silent('roles without a health check: a page of one can be read', {
      ...pagesOf('0x20'),
      [`svc_role_scrape_up{cluster="dc1", instance="b", ${role}}`]: '1x20',
    }),
    silent('no page can be read, and one role passes its health check', {
      ...pagesOf('0x20'),
      ...fourRoles('0x20', { last: '1x20' }),
    }),
    fires('every page can be read, and no role passes its health check', [noRole], {
      ...pagesOf('1x20'),
      ...fourRoles('0x20'),
    }),
  ],
};
/** The plans for alerts on targets and health: src/monitoring/alerts/roles.ts. */
export const availabilityPlans: readonly (Plan | HandWritten)[] = [
  {
    alert: 'SvcServiceDown',
    at: 10,
    bad: { 'up{job="history"}': '1 0x20' },
    good: { 'up{job="history"}': '1x20' },
    edge: { 'up{job="history"}': '1x9 0x20' },
    reset: { 'up{job="history"}': '1x7 0 1 0x20' },
    labels: { job: 'history', ...history },
    value: '0',
    silent: {
      'one of two instances answers': {
        'up{job="history", cluster="dc1", instance="a"}': '0x20',
        'up{job="history", cluster="dc1", instance="b"}': '1x20',
      },
      'an agent that is down hides its role': {
        [`up{job="history", ${at}}`]: '0x20',
        [`up{job="svc-agent", ${at}}`]: '0x20',
      },
      'the agent is no role': { [`up{job="svc-agent", ${at}}`]: '0x20' },
      'the role passes its health check: only its metrics cannot be read': {
        [`up{job="history", ${at}}`]: '0x20',
        [`svc_role_up{${at}, ${role}}`]: '1x20',
      },
      'an instance whose scrape fails, too, passes its health check': {
        [`up{job="history", ${at}}`]: '0x20',
        'up{job="history", cluster="dc1", instance="b"}': '0x20',
        [`svc_role_up{${at}, ${role}}`]: '0x20',
        [`svc_role_up{cluster="dc1", instance="b", ${role}}`]: '1x20',
      },
    },
    more: [
      fires('the health check of another role, and of this role in another cluster, passes', '0', {
        [`up{job="history", ${at}}`]: '0x20',
        [`svc_role_up{${at}, ${role}}`]: '0x20',
        [`svc_role_up{${at}, svc_service="matching"}`]: '1x20',
        [`svc_role_up{cluster="dc2", instance="c", ${role}}`]: '1x20',
      }),
      ...others.map(downOf),
      fires('the agent answers, and its role does not', '0', {
        [`up{job="history", ${at}}`]: '0x20',
        [`up{job="svc-agent", ${at}}`]: '1x20',
      }),
    ],
  },
  {
    alert: 'SvcMetricsUnread',
    at: 10,
    bad: { 'up{job="history"}': '1 0x20', [`svc_role_up{${role}}`]: '1x21' },
    good: { 'up{job="history"}': '1x20', [`svc_role_up{${role}}`]: '1x20' },
    edge: { 'up{job="history"}': '1x5 0x20', [`svc_role_up{${role}}`]: '1x21' },
    reset: { 'up{job="history"}': '1 0x3 1 0x20', [`svc_role_up{${role}}`]: '1x21' },
    labels: { job: 'history', ...history },
    agentsDiffer: 'is silent',
    value: '0',
    silent: {
      'its health check fails, too': {
        [`up{job="history", ${at}}`]: '0x20',
        [`svc_role_up{${at}, ${role}}`]: '0x20',
      },
      'it has no health check': { [`up{job="history", ${at}}`]: '0x20' },
      'an agent that is down hides its role': {
        [`up{job="history", ${at}}`]: '0x20',
        [`up{job="svc-agent", ${at}}`]: '0x20',
        [`svc_role_up{cluster="dc1", instance="b", ${role}}`]: '1x20',
      },
    },
    more: others.map((job) => ({
      ...downOf(job),
      shows: `no page of ${job} can be read in dc1, one of two in dc2, and its agent hides it in dc3`,
      series: {
        ...downOf(job).series,
        ...Object.fromEntries(
          ['dc1', 'dc2', 'dc3'].map((cluster) => [
            `svc_role_up{cluster="${cluster}", instance="g", svc_service="${job}"}`,
            '1x20',
          ]),
        ),
      },
    })),
  },
  allRolesPlan,
  {
    alert: 'SvcInstanceDown',
    at: 10,
    silent: {
      healthy: { ...up('a', '1x20'), ...up('b', '1x20') },
      'exactly on the threshold': { ...up('a', '1x5 0x20'), ...up('b', '1x20') },
      'counter reset or interruption': { ...up('a', '1 0x3 1 0x20'), ...up('b', '1x20') },
      'all down is another alert': { ...up('a', '0x20'), ...up('b', '0x20') },
      'behind an agent that is down': {
        ...up('a', '0x20'),
        ...up('b', '1x20'),
        [`up{job="svc-agent", ${at}}`]: '0x20',
        'up{job="svc-agent", cluster="dc1", instance="b"}': '1x20',
      },
    },
    cases: [
      ...others.map(instanceDownOf),
      fires('fires', [downAt('a')], { ...up('a', '0x20'), ...up('b', '1x20') }),
      {
        shows: 'series missing',
        series: { ...up('a', '0x5 stale'), ...up('b', '1x20') },
        at: 15,
        fires: [],
      },
      fires('two clusters of which one fails: an outage there hides nothing here', [downAt('a')], {
        ...up('a', '0x20'),
        ...up('b', '1x20'),
        ...up('c', '0x20', 'dc2'),
      }),
      fires(
        'two environments with the same names: one is down as a whole, one has another host',
        [{ ...downAt('a'), labels: { ...downAt('a').labels, environment: 'production' } }],
        {
          ...within('production', { ...up('a', '0x20'), ...up('b', '1x20') }),
          ...within('staging', { ...up('a', '0x20'), ...up('b', '0x20') }),
        },
      ),
      fires('two agents that report the same: each has its own scrape', [downAt('a'), downAt('b')], {
        ...up('a', '0x20'),
        ...up('b', '0x20'),
        ...up('d', '1x20'),
      }),
    ],
  },
  {
    alert: 'SvcRoleUnwatched',
    at: 15,
    bad: { 'up{job="history"}': '1 0x20', 'up{job="svc-agent"}': '1 0x20' },
    good: { 'up{job="history"}': '0x20', 'up{job="svc-agent"}': '1x20' },
    edge: { 'up{job="history"}': '1x10 0x20', 'up{job="svc-agent"}': '1x10 0x20' },
    reset: { 'up{job="history"}': '0x20', 'up{job="svc-agent"}': '1x5 0x3 1 0x20' },
    labels: { job: 'history' },
    value: '1',
    twice: '2',
    silent: {
      'one of two agents answers': {
        ...up('a', '0x20'),
        ...up('b', '0x20'),
        [`up{job="svc-agent", ${at}}`]: '0x20',
        'up{job="svc-agent", cluster="dc1", instance="b"}': '1x20',
      },
      'the role is scraped past the agent, which is down, and answers': {
        ...up('a', '1x20'),
        [`up{job="svc-agent", ${at}}`]: '0x20',
      },
    },
  },
  {
    alert: 'SvcTargetsVanished',
    at: 30,
    bad: { 'up{job="matching"}': '1x10 stale' },
    good: { 'up{job="matching"}': '1x60' },
    edge: { 'up{job="matching"}': '1x25 stale' },
    reset: { 'up{job="matching"}': '1x10 stale _x14 1 stale _x9' },
    labels: { job: 'matching' },
    value: '1',
    twice: '2',
    ending: { afterMinutes: 60, value: '1' },
    silent: {
      'one of two targets is gone, as after a rollout': {
        'up{job="matching", cluster="dc1", instance="a"}': '1x10 stale',
        'up{job="matching", cluster="dc1", instance="b"}': '1x60',
      },
    },
    more: [
      fires('the agents too', [{ labels: { cluster: 'dc1', job: 'svc-agent' }, value: '1' }], {
        [`up{job="svc-agent", ${at}}`]: '1x10 stale',
      }),
    ],
  },
  {
    alert: 'SvcRoleAbsent',
    at: 15,
    silent: {
      healthy: all('1x20'),
      'down is not absent': all('0x20'),
      'exactly on the threshold': { ...all('1x20', 'worker'), 'up{job="worker"}': '1x6 stale' },
      'counter reset or interruption': { ...all('1x20', 'worker'), 'up{job="worker"}': '_x8 1 stale' },
      'two clusters of which one fails: this alert cannot see it, SvcTargetsVanished does': {
        ...all('1x20', 'worker'),
        'up{cluster="dc2", instance="c", job="worker"}': '1x20',
      },
    },
    cases: [
      fires('fires', [absent], all('1x20', 'worker')),
      fires(
        'series missing',
        ['frontend', 'history', 'matching', 'worker', 'svc-agent'].map((job) => ({
          labels: { job },
          value: '1',
        })),
        {},
      ),
      silent('agents push their metrics and nothing is scraped', {
        [`svc_agent_build_info{${at}, job="svc-agent"}`]: '1x20',
      }),
      fires(
        'agents are scraped by jobs of other names',
        ['frontend', 'history', 'matching', 'worker', 'svc-agent'].map((job) => ({
          labels: { job },
          value: '1',
        })),
        {
          [`svc_agent_build_info{${at}, job="agents"}`]: '1x20',
          [`up{${at}, job="agents"}`]: '1x20',
        },
      ),
      fires('a job is missing, and agents elsewhere push their metrics', [absent], {
        ...all('1x20', 'worker'),
        'svc_agent_build_info{cluster="dc2", instance="c", job="svc-agent"}': '1x20',
      }),
      fires(
        'two environments of which one has no such job',
        [{ labels: { job: 'worker', environment: 'production' }, value: '1' }],
        {
          ...within('production', all('1x20', 'worker')),
          ...within('staging', all('1x20')),
        },
      ),
      fires('two agents that report the same', [absent], {
        ...all('1x20', 'worker'),
        'up{cluster="dc1", instance="b", job="frontend"}': '1x20',
      }),
    ],
  },
  {
    alert: 'SvcRoleUnhealthy',
    at: 10,
    bad: unhealthy('1 0x20'),
    good: unhealthy('1x20', '7x20'),
    edge: unhealthy('1x8 0x20'),
    reset: unhealthy('1x4 0x1 1 0x20'),
    labels: { ...history, reason: 'persistence' },
    agentsDiffer: 'is silent',
    value: '0',
    more: [
      fires('nobody counted a reason', [{ labels: { cluster: 'dc1', ...history }, value: '0' }], {
        [`svc_role_up{${at}, ${role}}`]: '0x20',
      }),
      {
        shows: 'one instance at a time, as in a rollout',
        series: {
          [`svc_role_up{${at}, ${role}}`]: '1x2 0x2 1x20',
          [`svc_role_up{cluster="dc1", instance="b", ${role}}`]: '1x5 0x2 1x20',
        },
        at: 8,
        fires: [],
      },
      {
        shows: 'a reason that is over for some minutes is not named any more',
        series: {
          [`svc_role_up{${at}, ${role}}`]: '1 0x20',
          [`${failures}, reason="refused"}`]: '0+6x8 48x20',
          [`${failures}, reason="persistence"}`]: '0x6 6+6x30',
        },
        at: 18,
        fires: '0',
      },
      {
        shows: 'warming up after a rollout',
        series: {
          [`svc_role_up{${at}, ${role}}`]: '1x20 0x20',
          [`${failures}, reason="refused"}`]: '0x20 6+6x1 12x40',
          [`${failures}, reason="warming_up"}`]: '0x21 6+6x30',
        },
        at: 32,
        fires: [],
      },
      {
        shows: 'the only instance that was up warms up, beside one that has been down for long',
        series: {
          [`svc_role_up{${at}, ${role}}`]: '0x40',
          [`svc_role_up{cluster="dc1", instance="b", ${role}}`]: '1x20 0x20',
          [`${failures}, reason="refused"}`]: '0+6x40',
          [`svc_role_health_failures_total{cluster="dc1", instance="b", ${role}, reason="warming_up"}`]:
            '0x20 6+6x30',
        },
        at: 32,
        fires: [],
      },
      {
        shows: 'an instance that is new warms up',
        series: {
          [`svc_role_up{${at}, ${role}}`]: '_x20 0x20',
          [`${failures}, reason="warming_up"}`]: '_x20 0+6x30',
        },
        at: 30,
        fires: [],
      },
      {
        shows: 'warming up for more than a quarter of an hour',
        series: {
          [`svc_role_up{${at}, ${role}}`]: '1x5 0x40',
          [`${failures}, reason="warming_up"}`]: '0x5 6+6x40',
        },
        at: 30,
        fires: [{ labels: { cluster: 'dc1', ...history, reason: 'warming_up' }, value: '0' }],
      },
    ],
  },
  {
    alert: 'SvcHealthFailing',
    at: 20,
    bad: unhealthy('1 0x40'),
    good: unhealthy('1x40', '7x40'),
    edge: unhealthy('1x12 0x40'),
    reset: unhealthy('1 0x8 1 0x40'),
    labels: { ...history, reason: 'persistence' },
    instance: true,
    value: '0',
    more: [
      fires(
        'nobody counted a reason',
        [{ labels: { cluster: 'dc1', instance: 'a', ...history }, value: '0' }],
        { [`svc_role_up{${at}, pod="pod-a", ${role}}`]: '0x40' },
      ),
      {
        shows: 'a restart of three minutes, as in a rollout',
        series: { [`svc_role_up{${at}, ${role}}`]: '1x5 0x3 1x40' },
        at: 9,
        fires: [],
      },
    ],
  },
];
/** The plans for alerts on restarts, memory and garbage collection: src/monitoring/alerts/roles.ts. */
export const processPlans: readonly Plan[] = [
  {
    alert: 'SvcHighRestartRate',
    at: 10,
    bad: { [`svc_role_restarts_total{${role}}`]: '0+12x10' },
    good: { [`svc_role_restarts_total{${role}}`]: '40x10' },
    edge: { [`svc_role_restarts_total{${role}}`]: '0+6x10' },
    reset: { [`svc_role_restarts_total{${role}}`]: '500x5 0x10' },
    labels: history,
    value: '0.20',
    twice: '0.40',
    more: [
      fires('instances that stay below each by itself', '0.15', {
        [`svc_role_restarts_total{cluster="dc1", instance="a", ${role}}`]: '0+5x10',
        [`svc_role_restarts_total{cluster="dc1", instance="b", ${role}}`]: '0+4x10',
      }),
    ],
  },
  {
    alert: 'SvcCrashLooping',
    at: 20,
    bad: { [`svc_role_restarts_total{${role}}`]: '0x5 1x4 2x2 5x20' },
    good: { [`svc_role_restarts_total{${role}}`]: '3x20' },
    edge: { [`svc_role_restarts_total{${role}}`]: '0x6 1x4 2x20' },
    reset: { [`svc_role_restarts_total{${role}}`]: '50x9 0x20' },
    labels: history,
    instance: true,
    value: '5',
    ending: { afterMinutes: 20 },
    silent: {
      'two restarts between few samples, of which increase() would make three': {
        [`svc_role_restarts_total{${at}, ${role}}`]: '_x18 1 3 3',
      },
      'one restart of each of five instances, as in a rollout': Object.fromEntries(
        ['a', 'b', 'c', 'd', 'e'].map((instance) => [
          `svc_role_restarts_total{cluster="dc1", instance="${instance}", ${role}}`,
          '0x10 1x20',
        ]),
      ),
    },
    more: [
      fires('without an agent’s count, collections that start again and again', '3', {
        [`svc_memory_num_gc{${role}, ${at}, pod="pod-a"}`]: '0+5x4 0+5x4 0+5x4 0+5x4 0',
      }),
      fires('the literal condition’s blind spot: every process counts its start as 1', '3', {
        [`svc_restarts{${role}, ${at}}`]: '1x20',
        [`svc_memory_num_gc{${role}, ${at}, pod="pod-a"}`]: '0+5x4 0+5x4 0+5x4 0+5x4 0',
      }),
    ],
  },
  {
    alert: 'SvcHeapMemory',
    at: 30,
    bad: { [`svc_memory_heap{${role}}`]: '9e9x40' },
    good: { [`svc_memory_heap{${role}}`]: '1e9x40' },
    edge: { [`svc_memory_heap{${role}}`]: '8e9x40' },
    reset: { [`svc_memory_heap{${role}}`]: '9e9x22 1e8 9e9x20' },
    labels: history,
    instance: true,
    value: '9G',
    more: [
      {
        shows: 'a sawtooth between collections is no leak',
        series: { [`svc_memory_heap{${role}, ${at}}`]: '4e9+1e9x5 4e9+1e9x5 4e9+1e9x5 4e9+1e9x5 4e9+1e9x5' },
        at: 29,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcGCPause',
    at: 25,
    bad: { [`svc_memory_gc_pause_ms{${role}}`]: '0+12000x30' },
    good: { [`svc_memory_gc_pause_ms{${role}}`]: '0+60x30' },
    edge: { [`svc_memory_gc_pause_ms{${role}}`]: '0+6000x30' },
    reset: { [`svc_memory_gc_pause_ms{${role}}`]: '900000x5 0+60x30' },
    labels: history,
    instance: true,
    value: '200',
    silent: {
      'the quantiles of a summary are no counters': {
        [`svc_memory_gc_pause_ms{${role}, ${at}, quantile="0.99"}`]: '0+12000x30',
      },
    },
    more: [
      fires('a timer keeps seconds in its sum', '200', {
        [`svc_memory_gc_pause_ms_sum{${role}, ${at}}`]: '0+12x30',
      }),
    ],
  },
];
