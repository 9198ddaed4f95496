import type { HandWritten, Plan, Series } from './plan.ts';

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
const downAt = (instance: string) => ({ labels: { cluster: 'dc1', job: 'history', instance }, value: '0' });
const absent = { labels: { job: 'worker' }, value: '1' };

/** Of src/monitoring/rules/alerts/availability.ts. */
export const availabilityPlans: readonly (Plan | HandWritten)[] = [
  {
    alert: 'SvcServiceDown',
    at: 10,
    bad: { 'up{job="history"}': '1 0x20' },
    good: { 'up{job="history"}': '1x20' },
    edge: { 'up{job="history"}': '1x9 0x20' },
    reset: { 'up{job="history"}': '0x8 1 0x20' },
    labels: { job: 'history' },
    value: '0',
    more: [
      {
        shows: 'one of two instances answers',
        series: {
          'up{job="history", cluster="dc1", instance="a"}': '0x20',
          'up{job="history", cluster="dc1", instance="b"}': '1x20',
        },
        at: 10,
        fires: [],
      },
      {
        shows: 'the agent is no role',
        series: { [`up{job="svc-agent", ${at}}`]: '0x20' },
        at: 10,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcInstanceDown',
    cases: [
      { shows: 'healthy', series: { ...up('a', '1x20'), ...up('b', '1x20') }, at: 10, fires: [] },
      { shows: 'fires', series: { ...up('a', '0x20'), ...up('b', '1x20') }, at: 10, fires: [downAt('a')] },
      {
        shows: 'exactly on the threshold',
        series: { ...up('a', '1x5 0x20'), ...up('b', '1x20') },
        at: 10,
        fires: [],
      },
      {
        shows: 'counter reset or interruption',
        series: { ...up('a', '0x7 1 0x20'), ...up('b', '1x20') },
        at: 10,
        fires: [],
      },
      {
        shows: 'series missing',
        series: { ...up('a', '0x5 stale'), ...up('b', '1x20') },
        at: 10,
        fires: [],
      },
      {
        shows: 'two clusters of which one is ill: an outage there hides nothing here',
        series: { ...up('a', '0x20'), ...up('b', '1x20'), ...up('c', '0x20', 'dc2') },
        at: 10,
        fires: [downAt('a')],
      },
      {
        shows: 'two agents that report the same: each has its own scrape',
        series: { ...up('a', '0x20'), ...up('b', '0x20'), ...up('d', '1x20') },
        at: 10,
        fires: [downAt('a'), downAt('b')],
      },
      {
        shows: 'all down is another alert',
        series: { ...up('a', '0x20'), ...up('b', '0x20') },
        at: 10,
        fires: [],
      },
    ],
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
    more: [
      {
        shows: 'one of two targets is gone, as after a rollout',
        series: {
          'up{job="matching", cluster="dc1", instance="a"}': '1x10 stale',
          'up{job="matching", cluster="dc1", instance="b"}': '1x60',
        },
        at: 30,
        fires: [],
      },
      {
        shows: 'the agents too',
        series: { [`up{job="svc-agent", ${at}}`]: '1x10 stale' },
        at: 30,
        fires: [{ labels: { cluster: 'dc1', job: 'svc-agent' }, value: '1' }],
      },
    ],
  },
  {
    alert: 'SvcRoleAbsent',
    cases: [
      { shows: 'healthy', series: all('1x20'), at: 15, fires: [] },
      { shows: 'fires', series: all('1x20', 'worker'), at: 15, fires: [absent] },
      { shows: 'down is not absent', series: all('0x20'), at: 15, fires: [] },
      {
        shows: 'exactly on the threshold',
        series: { ...all('1x20', 'worker'), 'up{job="worker"}': '1x6 stale' },
        at: 15,
        fires: [],
      },
      {
        shows: 'counter reset or interruption',
        series: { ...all('1x20', 'worker'), 'up{job="worker"}': '_x8 1 stale' },
        at: 15,
        fires: [],
      },
      {
        shows: 'series missing',
        series: {},
        at: 15,
        fires: ['frontend', 'history', 'matching', 'worker', 'svc-agent'].map((job) => ({
          labels: { job },
          value: '1',
        })),
      },
      {
        shows: 'two clusters of which one is ill: it cannot see that, SvcTargetsVanished does',
        series: { ...all('1x20', 'worker'), 'up{cluster="dc2", instance="c", job="worker"}': '1x20' },
        at: 15,
        fires: [],
      },
      {
        shows: 'two agents that report the same',
        series: { ...all('1x20', 'worker'), 'up{cluster="dc1", instance="b", job="frontend"}': '1x20' },
        at: 15,
        fires: [absent],
      },
    ],
  },
  {
    alert: 'SvcHealthFailing',
    at: 10,
    bad: { [`svc_role_up{${role}}`]: '1 0x20' },
    good: { [`svc_role_up{${role}}`]: '1x20' },
    edge: { [`svc_role_up{${role}}`]: '1x8 0x20' },
    reset: { [`svc_role_up{${role}}`]: '0x7 1 0x20' },
    labels: history,
    instance: true,
    value: '0',
  },
  {
    alert: 'SvcAgentDown',
    at: 10,
    bad: { 'up{job="svc-agent"}': '1 0x20' },
    good: { 'up{job="svc-agent"}': '1x20' },
    edge: { 'up{job="svc-agent"}': '1x5 0x20' },
    reset: { 'up{job="svc-agent"}': '0x7 1 0x20' },
    labels: { job: 'svc-agent' },
    instance: true,
    value: '0',
    more: [
      { shows: 'a role is no agent', series: { [`up{job="worker", ${at}}`]: '0x20' }, at: 10, fires: [] },
    ],
  },
];
