import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { hasPromtool, promtoolOver } from './promtool.ts';

const place = 'cluster="dc1",instance="a"';
const store = `${place},store="main",kind="postgres",database="persistence"`;
const stopped = 'SvcServiceDown|SvcRoleUnhealthy|SvcStoreDown';
const firing = (alerts: string) => `ALERTS{alertname=~"${alerts}",alertstate="firing"}`;
/** Alerts that planned work does not inhibit. */
const heard = `${firing(stopped)} unless on (cluster) ${firing('SvcMaintenance')}`;

/** Planned work from minute 5 to minute 25, in which a role and a store are down from minute 8 on. */
const played = (minutesDown: number, after: number) => ({
  [`svc_maintenance{${place}}`]: `0x4 1x10 _x2 1x6 0x${after}`,
  [`up{${place},job="history"}`]: `1x7 0x${minutesDown - 1} 1x${after}`,
  [`svc_role_up{${place},svc_service="history"}`]: `1x7 0x${minutesDown - 1} 1x${after}`,
  [`svc_role_health_failures_total{${place},svc_service="history",reason="refused"}`]: `0x7 4+4x${minutesDown - 1} ${4 * minutesDown}x${after}`,
  [`svc_store_up{${store}}`]: `1x7 0x${minutesDown - 1} 1x${after}`,
});

/** promtool's output for the shipped rules over these series. */
async function evaluated(series: Record<string, string>, expressions: readonly object[]) {
  const document = {
    rule_files: [resolve('rules/recommended.rules.yml')],
    evaluation_interval: '15s',
    tests: [
      {
        interval: '1m',
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        promql_expr_test: expressions,
      },
    ],
  };
  return promtoolOver({ 'work.yml': document }, 'test', 'rules', 'work.yml');
}

const count = (alerts: string, value: number) => ({
  expr: `count(count by (alertname) (${alerts}))`,
  exp_samples: value > 0 ? [{ labels: '{}', value }] : [],
});

test.runIf(hasPromtool)(
  'what planned work has repaired does not notify after its end, nor while the agent restarts',
  async () => {
    const { status, output } = await evaluated(played(16, 40), [
      { ...count(firing('SvcServiceDown|SvcStoreDown'), 2), eval_time: '20m' },
      // The work is over, and these alerts continue.
      { ...count(firing('SvcServiceDown|SvcStoreDown'), 2), eval_time: '27m' },
      ...Array.from({ length: 4 * 50 }, (_, n) => ({ ...count(heard, 0), eval_time: `${n * 15}s` })),
      { ...count(firing('SvcMaintenance'), 0), eval_time: '35m' },
    ]);
    expect(output).not.toContain('FAILED');
    expect(status, output).toBe(0);
  },
);

test.runIf(hasPromtool)('what is still wrong 8 minutes after planned work notifies', async () => {
  const { status, output } = await evaluated(played(40, 40), [
    { ...count(heard, 0), eval_time: '24m' },
    { ...count(heard, 3), eval_time: '33m' },
  ]);
  expect(output).not.toContain('FAILED');
  expect(status, output).toBe(0);
});
