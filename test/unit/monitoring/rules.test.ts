import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { shippedOptions } from '../../../src/monitoring/rules/options.ts';
import { pack, packs } from '../../../src/monitoring/rules/packs.ts';
import { type RenderedAlert, renderPack } from '../../../src/monitoring/rules/render.ts';
import { rewrite } from '../../../src/monitoring/rules/rewrite.ts';
import { files, tests } from '../../../src/monitoring/shipped.ts';
import { root } from '../house/imports.ts';

const plain = { prefix: '', jobs: {} };

describe('what is shipped', () => {
  test.each(files())('%s is what src/monitoring generates; run scripts/generate.mjs', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
  });

  test('rules/ holds nothing else', () => {
    const present = readdirSync(join(root, 'rules'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
    expect(present.sort()).toEqual(
      files()
        .map(([path]) => path)
        .sort(),
    );
  });

  test('every alert has its seven cases and says so in a plan', () => {
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
      'clusters of which one is ill',
      'two agents',
    ];
    for (const [, text] of files().filter(
      ([path]) => path.endsWith('.test.yml') && !path.includes('recording'),
    )) {
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

  /** The spec's table of alert thresholds, as PromQL; only the agents that repeat each other are taken together. */
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
      'max without (instance, pod) (rate(svc_replication_task_failures_total[5m])) > 10',
    ],
  ])('%s is the spec’s condition to the letter, without for', (name, expr) => {
    const rules = renderPack(pack('spec'), shippedOptions).groups.flatMap((group) => group.rules);
    const rule = rules.find(
      (candidate): candidate is RenderedAlert => 'alert' in candidate && candidate.alert === name,
    )!;
    expect([rule.expr, rule.for]).toEqual([expr, undefined]);
  });
});

describe('rewrite', () => {
  test.each([
    ['svc_restarts', { prefix: 'p' }, 'p_svc_restarts'],
    [
      'rate(svc_persistence_latency_bucket[5m])',
      { prefix: 'p' },
      'rate(p_svc_persistence_latency_bucket[5m])',
    ],
    ['svc_agent_process_cpu_seconds_total', { prefix: 'p' }, 'p_svc_agent_process_cpu_seconds_total'],
    ['up and slo:svc_x:ratio_rate5m', { prefix: 'p' }, 'up and slo:svc_x:ratio_rate5m'],
    ['up{job="frontend"}', { jobs: { frontend: 'prod/"fe"' } }, 'up{job="prod/\\"fe\\""}'],
    ['up{job=~"frontend|history"}', { jobs: { history: 'h.1' } }, 'up{job=~"frontend|h\\\\.1"}'],
    ['up{job!="svc-agent"} > 1', { jobs: { 'svc-agent': 'agents' } }, 'up{job!="agents"} > 1'],
    [
      'svc_role_up{svc_service="frontend"}',
      { jobs: { frontend: 'x' } },
      'svc_role_up{svc_service="frontend"}',
    ],
  ])('%s with %j', (text, options, wanted) => {
    expect(rewrite(text, { ...plain, ...options })).toBe(wanted);
  });
});
