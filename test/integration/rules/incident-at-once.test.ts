import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { hasPromtool, promtoolOver } from './promtool.ts';

const place = 'cluster="dc1",instance="a"';
/** Another agent, which sees no incident. */
const other = 'cluster="dc1",instance="b"';
const input = {
  [`svc_incident{${place},cause="store_down",subject="main/persistence"}`]: '_x41 1x40',
  [`svc_incident{${place},cause="role_down",subject="history"}`]: '_x41 1x40',
  [`svc_incident{${place},cause="read_only",subject="visible/persistence"}`]: '_x41 1x40',
  [`svc_incident{${other},cause="store_down",subject="main/persistence"}`]: '_x41 0x40',
  [`svc_incident{${other},cause="role_down",subject="history"}`]: '_x41 0x40',
  [`svc_incident{${other},cause="read_only",subject="visible/persistence"}`]: '_x41 0x40',
  [`svc_role_up{${place},svc_service="frontend"}`]: '1x40 0x40',
};

/** Rules are evaluated four times a minute; each of these looks at a cause that began a moment ago. */
test.runIf(hasPromtool).each([
  ['a store', 'store', 'SvcIncident', 'main'],
  ['a store that refuses writes', 'store', 'SvcIncident', 'visible'],
  ['a role', 'svc_service', 'SvcIncident', 'history'],
  ['a role that another incident explains', 'svc_service', 'SvcRoleExplained', 'frontend'],
])('an incident has the labels of inhibitions from its first sample: %s', async (_, label, alert, value) => {
  const document = {
    rule_files: [resolve('rules/recommended.rules.yml')],
    evaluation_interval: '15s',
    tests: [
      {
        interval: '15s',
        input_series: Object.entries(input).map(([series, values]) => ({ series, values })),
        promql_expr_test: [615, 630, 645].map((seconds) => ({
          expr: `count by (${label}) (ALERTS{alertname="${alert}",${label}="${value}",alertstate="firing"})`,
          eval_time: `${seconds}s`,
          exp_samples: [{ labels: `{${label}="${value}"}`, value: 1 }],
        })),
      },
    ],
  };
  const { status, output } = await promtoolOver({ 'once.yml': document }, 'test', 'rules', 'once.yml');
  expect(output).not.toContain('FAILED');
  expect(status, output).toBe(0);
});
