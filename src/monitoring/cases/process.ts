import type { Plan } from './plan.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const at = 'cluster="dc1", instance="a"';

/** Of src/monitoring/rules/alerts/process.ts. */
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
      {
        shows: 'instances that stay below each by itself',
        series: {
          [`svc_role_restarts_total{cluster="dc1", instance="a", ${role}}`]: '0+5x10',
          [`svc_role_restarts_total{cluster="dc1", instance="b", ${role}}`]: '0+4x10',
        },
        at: 10,
        fires: [{ labels: { cluster: 'dc1', ...history }, value: '0.15' }],
      },
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
    more: [
      {
        shows: 'without an agent’s count, collections that start again and again',
        series: { [`svc_memory_num_gc{${role}, ${at}, pod="pod-a"}`]: '0+5x4 0+5x4 0+5x4 0+5x4 0' },
        at: 20,
        fires: [{ labels: { cluster: 'dc1', instance: 'a', ...history }, value: '3' }],
      },
      {
        shows: 'one restart of each of five instances, as in a rollout',
        series: Object.fromEntries(
          ['a', 'b', 'c', 'd', 'e'].map((instance) => [
            `svc_role_restarts_total{cluster="dc1", instance="${instance}", ${role}}`,
            '0x10 1x20',
          ]),
        ),
        at: 20,
        fires: [],
      },
      {
        shows: 'the literal condition’s blind spot: every process counts its start as 1',
        series: {
          [`svc_restarts{${role}, ${at}}`]: '1x20',
          [`svc_memory_num_gc{${role}, ${at}, pod="pod-a"}`]: '0+5x4 0+5x4 0+5x4 0+5x4 0',
        },
        at: 20,
        fires: [{ labels: { cluster: 'dc1', instance: 'a', ...history }, value: '3' }],
      },
    ],
  },
  {
    alert: 'SvcHeapMemory',
    at: 30,
    bad: { [`svc_memory_heap{${role}}`]: '9e9x40' },
    good: { [`svc_memory_heap{${role}}`]: '1e9x40' },
    edge: { [`svc_memory_heap{${role}}`]: '8e9x40' },
    reset: { [`svc_memory_heap{${role}}`]: '9e9x18 1e8 9e9x20' },
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
    more: [
      {
        shows: 'a timer keeps seconds in its sum',
        series: { [`svc_memory_gc_pause_ms_sum{${role}, ${at}}`]: '0+12x30' },
        at: 25,
        fires: [{ labels: { cluster: 'dc1', instance: 'a', ...history }, value: '200' }],
      },
      {
        shows: 'the quantiles of a summary are no counters',
        series: { [`svc_memory_gc_pause_ms{${role}, ${at}, quantile="0.99"}`]: '0+12000x30' },
        at: 25,
        fires: [],
      },
    ],
  },
];
