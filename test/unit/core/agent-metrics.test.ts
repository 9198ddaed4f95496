import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { copySelfMetrics, createSelfMetrics } from '../../../src/agent/self-metrics.ts';
import { agentMetric, agentMetrics, isAgentName } from '../../../src/core/agent-metrics.ts';
import { findMetric } from '../../../src/core/catalog.ts';
import { testRegistry } from '../../registry.ts';

const table = readFileSync(new URL('../../fixtures/contract-metrics.md', import.meta.url), 'utf8');

const list = (text = '') => text.split(',').filter(Boolean);

/** The rows of the contract's table: a name with its own labels, in addition to those in braces after the group. */
const inTable = table.split('\n').flatMap((row) => {
  const [, head = '', cells = ''] = row.split('|');
  const [, group = '', , groupTags] = /^\s*(\w+)\s*(`\{([\w,]+)\}`)?/.exec(head) ?? [];
  const unlabelled = cells.indexOf('without label:');
  return [...cells.matchAll(/`(svc_\w+)(?:\{([\w,]+)\})?`/g)].map((match) => ({
    name: match[1] as string,
    group,
    tags: [...(unlabelled >= 0 && match.index > unlabelled ? [] : list(groupTags)), ...list(match[2])],
  }));
});

describe('the agent’s own metrics', () => {
  it('are those of the contract, each with its group and labels', () => {
    expect(inTable.length).toBeGreaterThan(70);
    expect(agentMetrics.map(({ name, group, tags }) => ({ name, group, tags }))).toEqual(inTable);
  });

  it.each(inTable)('$name has the kind and unit its name promises', ({ name }) => {
    const { kind, unit } = agentMetric(name as Parameters<typeof agentMetric>[0]);
    expect(kind).toBe(name.endsWith('_total') ? 'counter' : 'gauge');
    const suffix = /_(timestamp_seconds|seconds|bytes)(_total)?$/.exec(name)?.[1];
    expect(unit).toBe(suffix === 'timestamp_seconds' ? 'timestamp' : (suffix ?? 'none'));
  });

  it('has one line of help for each', () => {
    for (const { help } of agentMetrics) expect(help).toMatch(/^[A-Z][^\n]+\.$/);
  });

  it('shares no name with the service’s catalog', () => {
    expect(agentMetrics.filter(({ name }) => findMetric(name))).toEqual([]);
  });
});

it.each<[string, Parameters<typeof isAgentName>, boolean]>([
  ['one of the table', ['svc_store_up', 'gauge'], true],
  ['one of the table, of another kind', ['svc_store_up', 'histogram'], true],
  ['one of the table that its own source makes', ['svc_store_up', 'gauge', 'stores'], false],
  ['one of the table that another source makes', ['svc_store_up', 'gauge', 'logs'], true],
  ['whatever the agent says of itself', ['svc_agent_nodejs_handles', 'gauge', 'stores'], true],
  ['a counter without its ending', ['svc_log_entries', 'counter'], true],
  ['another name', ['svc_store_ups', 'gauge'], false],
  ['a name with an ending', ['svc_store_up_total', 'counter'], false],
])('knows its names: %s', (_, [name, kind, own], expected) => {
  expect(isAgentName(name, kind, own)).toBe(expected);
});

it('gives none of its gauges a suffix that means a counter or a distribution', async () => {
  const { registry, intake } = testRegistry();
  const self = createSelfMetrics();
  await copySelfMetrics(self.registry, intake({ received: false, relayed: false, component: 'agent' }))();
  const view = registry.view();
  const gauges = view.families.filter(({ kind }) => kind === 'gauge').map(({ name }) => name);
  view.release();
  expect(gauges).toContain('svc_agent_nodejs_handles');
  expect(gauges.filter((name) => /_(?:total|count|sum|bucket)$/.test(name))).toEqual([]);
});
