import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { hasPromtool, promtoolOver } from './promtool.ts';

const store = 'store="main",kind="postgres",database="svc"';
const backup = 'backup="main-full",store="main",database="svc",backup_type="full"';
const series = (name: string, labels: string, instance: string, values: string) => ({
  series: `${name}{cluster="dc1",instance="${instance}",${labels}}`,
  values,
});

interface Case {
  alert: string;
  /** What the first and the second agent report. */
  reported: readonly [string, string, string, string];
  firing: number;
}

const cases: readonly [string, Case][] = [
  [
    'a store that neither reaches is one alert',
    { alert: 'SvcStoreDown', reported: ['svc_store_up', store, '0x60', '0x60'], firing: 1 },
  ],
  [
    'a store that one of them reaches is none',
    { alert: 'SvcStoreDown', reported: ['svc_store_up', store, '0x60', '1x60'], firing: 0 },
  ],
  [
    'a failed backup that both see is one alert',
    {
      alert: 'SvcBackupFailures',
      reported: ['svc_backup_last_failure_timestamp_seconds', backup, '600x60', '607x60'],
      firing: 1,
    },
  ],
  [
    'a failover that both see is one alert',
    {
      alert: 'SvcDomainFailover',
      reported: ['svc_domain_last_failover_timestamp_seconds', 'domain="orders"', '1200x60', '1231x60'],
      firing: 1,
    },
  ],
];

test.runIf(hasPromtool).each(cases)(
  'two cluster agents beside each other: %s',
  async (_, { alert, reported: [name, labels, first, second], firing }) => {
    const document = {
      rule_files: [resolve('rules/recommended.rules.yml')],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [series(name, labels, 'a', first), series(name, labels, 'b', second)],
          promql_expr_test: [
            {
              expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
              eval_time: '25m',
              exp_samples: [{ labels: '{}', value: firing }],
            },
          ],
        },
      ],
    };
    const { status, output } = await promtoolOver({ 'two.yml': document }, 'test', 'rules', 'two.yml');
    expect(output).not.toContain('FAILED');
    expect(status, output).toBe(0);
  },
);
