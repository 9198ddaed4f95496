import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { withUnit } from '../../../src/monitoring/alert.ts';
import { namesOf, shippedNaming } from '../../../src/monitoring/names.ts';
import {
  alertsOf,
  pack,
  packs,
  type RenderedAlert,
  type RuleOptions,
  renderPack,
  shippedOptions,
} from '../../../src/monitoring/packs.ts';
import { parse as parsePromql, selectorsOf } from '../../../tools/promql.ts';
import { caseFiles, ruleFiles, tests } from '../../../tools/shipped.ts';
import { root } from '../house/imports.ts';

describe('what is shipped', () => {
  test.each(ruleFiles())('%s is what scripts/generate.mjs writes', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
  });

  test('rules/ holds nothing else', () => {
    const present = readdirSync(join(root, 'rules')).filter((name) => name !== 'tests');
    expect(present.map((name) => `rules/${name}`).sort()).toEqual(
      ruleFiles()
        .map(([path]) => path)
        .sort(),
    );
  });

  test('every alert has its eight cases and says so in a plan', () => {
    const planned = tests.flatMap(([, plans, name]) =>
      plans.map(({ alert, ruleLabels = {} }) => `${name} ${alert} ${ruleLabels.window ?? ''}`),
    );
    const alerts = packs.flatMap(({ name, groups }) =>
      groups.flatMap((group) =>
        (group.alerts ?? []).map((alert) => `${name} ${alert.name} ${alert.labels?.window ?? ''}`),
      ),
    );
    expect(planned.sort()).toEqual(alerts.sort());
    const wanted = [
      'healthy',
      'fires',
      'exactly on',
      'counter reset',
      'series missing',
      'clusters of which one fails',
      'two environments',
      'two agents',
    ];
    for (const [, text] of caseFiles().filter(([path]) => !path.includes('recording'))) {
      const names = (parse(text) as { tests: { name: string }[] }).tests.map(({ name }) => name);
      const subjects = new Set(names.map((name) => name.split(':')[0]!));
      for (const subject of subjects)
        for (const scenario of wanted)
          expect(
            names.filter((name) => name.startsWith(`${subject}:`) && name.includes(scenario)),
            `${subject} ${scenario}`,
          ).not.toEqual([]);
    }
  });

  /** Prometheus ends an alert at the first evaluation that misses its series: the restart of an agent is enough. */
  test('an alert on a state of the moment outlives a gap in its series', () => {
    const alerts = alertsOf(pack('recommended')).filter(
      ({ name, severity }) => severity !== 'info' && name !== 'SvcRoleAbsent',
    );
    const looksBack = (expr: string) => /\[\d+[mhd](?::\d+m)?\]/.test(expr);
    const ends = alerts.filter(({ expr, isState }) => {
      const text = expr(namesOf(shippedNaming), 1);
      return !isState && !looksBack(text);
    });
    expect(ends.map(({ name }) => name)).toEqual([]);
    const kept = alerts.filter(({ isState }) => isState).map(({ name }) => name);
    const rendered = renderPack(pack('recommended'), shippedOptions).groups.flatMap(({ rules }) => rules);
    expect(
      rendered
        .flatMap((rule) => ('alert' in rule && rule.keep_firing_for === '5m' ? [rule.alert] : []))
        .sort(),
    ).toEqual(kept.sort());
  });

  /** The spec's table of alert thresholds as PromQL, in which only agents that repeat each other are merged. */
  test.each([
    ['SvcServiceDown', 'up{job="frontend"} == 0'],
    ['SvcHighRestartRate', 'rate(svc_restarts[5m]) > 0.1'],
    ['SvcPersistenceErrorRate', 'rate(svc_persistence_errors[5m]) > 10'],
    ['SvcPersistenceLatency', 'histogram_quantile(0.99, rate(svc_persistence_latency_bucket[5m])) > 1'],
    ['SvcTaskListBacklogGrowth', 'rate(svc_matching_tasklist_backlog[5m]) > 100'],
    ['SvcWorkflowTimeouts', 'rate(svc_workflow_timeout[5m]) > 5'],
    ['SvcHeapMemory', 'svc_memory_heap > 8000000000'],
    ['SvcGCPause', 'rate(svc_memory_gc_pause_ms[5m]) > 100'],
    ['SvcFrontendLatency', 'histogram_quantile(0.95, rate(svc_frontend_client_latency_bucket[5m])) > 0.5'],
    [
      'SvcBackupAge',
      'time() - max without (instance, pod) (svc_backup_last_success_timestamp_seconds) > 90000',
    ],
    ['SvcBackupFailures', 'max without (instance, pod) (rate(svc_backup_failures_total[1h])) > 0'],
    ['SvcReplicationLag', 'max without (instance, pod) (svc_replication_lag_seconds) > 300'],
    [
      'SvcReplicationTaskFailures',
      'sum without (instance, pod) (rate(svc_replication_task_failures_total[5m])) > 10',
    ],
  ])('%s is the spec’s condition to the letter, without for', (name, expr) => {
    const rules = renderPack(pack('spec'), shippedOptions).groups.flatMap((group) => group.rules);
    const rule = rules.find(
      (candidate): candidate is RenderedAlert => 'alert' in candidate && candidate.alert === name,
    )!;
    expect([rule.expr, rule.for]).toEqual([expr, undefined]);
  });
});

describe('the names of an installation', () => {
  test.each([
    [{}, 'svc_restarts', 'job="frontend"', 'job=~"frontend|history"'],
    [{ prefix: 'p' }, 'p_svc_restarts', 'job="frontend"', 'job=~"frontend|history"'],
    [
      { jobs: { frontend: 'prod/"fe"', history: 'h.1' } },
      'svc_restarts',
      'job="prod/\\"fe\\""',
      'job=~"prod/\\"fe\\"|h\\\\.1"',
    ],
  ])('%j', (naming, metric, one, two) => {
    const { m, job } = namesOf({ ...shippedNaming, ...naming });
    expect([m('svc_restarts'), job('frontend'), job('frontend', 'history')]).toEqual([metric, one, two]);
  });

  test('a prefix reaches every metric that agents report, and nothing else', () => {
    for (const of of packs)
      for (const { rules } of renderPack(of, { ...shippedOptions, prefix: 'p' }).groups)
        for (const { expr } of rules)
          for (const { name } of selectorsOf(parsePromql(expr)))
            expect(name, expr).toMatch(/^(?:p_svc_\w+|up|ALERTS|slo:.*)$/);
  });
});

describe('a number with its unit', () => {
  test.each([
    [90_000, 'seconds', '1d 1h'],
    [300, 'seconds', '5m'],
    [0.5, 'seconds', '500ms'],
    [90.5, 'seconds', '1m 30.5s'],
    [0.05, 'share', '5%'],
    [0.999, 'share', '99.9%'],
    [8e9, 'bytes', '8GB'],
    [67_108_864, 'binaryBytes', '64MiB'],
    [0, 'binaryBytes', '0B'],
    [10, 'none', '10'],
  ] as const)('%d as %s', (value, unit, text) => expect(withUnit(value, unit)).toBe(text));
});

describe('links', () => {
  const annotations = (options: Partial<RuleOptions>) =>
    packs.flatMap((of) =>
      renderPack(of, { ...shippedOptions, ...options }).groups.flatMap(({ rules }) =>
        rules.flatMap((rule): Record<string, string>[] =>
          'alert' in rule ? [{ name: rule.alert, ...rule.annotations }] : [],
        ),
      ),
    );
  test('are absent until there is an address, and the description has the first steps', () => {
    for (const alert of annotations({})) {
      expect(Object.keys(alert)).toEqual(['name', 'summary', 'description', 'runbook']);
      expect(existsSync(join(root, alert.runbook!)), alert.runbook).toBe(true);
      expect(alert.description).toMatch(/ First steps: [A-Z].+\.$/s);
    }
  });
  test('are absolute once there is one', () => {
    const addresses = { runbookUrl: 'https://wiki.example/rb', dashboardUrl: 'https://grafana.example' };
    for (const { name, runbook_url, dashboard_url } of annotations(addresses)) {
      expect(runbook_url).toBe(`https://wiki.example/rb/${name}.md`);
      expect(dashboard_url).toMatch(
        /^https:\/\/grafana\.example\/d\/svc-[a-z-]+\?var-environment={{ \$labels\.environment }}(?:&var-cluster={{ \$labels\.cluster }})?$/,
      );
    }
  });
});
