import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catalog, findMetric, roles } from '../../../src/core/catalog.ts';

const table = readFileSync(new URL('../../fixtures/spec-metrics.md', import.meta.url), 'utf8');
const inTable = table.split('\n').flatMap((row) => {
  const [, group = '', names = ''] = row.split('|');
  return [...names.matchAll(/svc_\w+/g)].map(([name]) => ({
    name,
    group: group.replace(/\(.*/, '').trim(),
  }));
});

/** The contract's sentence on kinds, as a table; the first pattern that matches is used. */
const kindRules: [RegExp, string, string][] = [
  [/_(requests|errors)$/, 'counter', 'none'],
  [/^svc_restarts$|^svc_memory_num_gc$|^svc_workflow_/, 'counter', 'none'],
  [/^svc_history_(shard_context_closed|replication_tasks_applied)$/, 'counter', 'none'],
  [/^svc_matching_(tasks|poll)_/, 'counter', 'none'],
  [/_latency$/, 'histogram', 'seconds'],
  [/^svc_memory_gc_pause_ms$/, 'counter', 'milliseconds'],
  [/^svc_memory_/, 'gauge', 'bytes'],
  [/^svc_(num_goroutines|gomaxprocs|matching_tasklist_backlog)$/, 'gauge', 'none'],
];

describe('catalog', () => {
  it('has the metrics of the specification, no more and no fewer, each in its group', () => {
    expect(inTable).toHaveLength(42);
    expect(catalog.map(({ name, group }) => ({ name, group }))).toEqual(inTable);
  });

  it.each(inTable)('$name has the kind and unit that the contract gives it', ({ name }) => {
    const rule = kindRules.find(([pattern]) => pattern.test(name));
    const metric = findMetric(name);
    expect([metric?.kind, metric?.unit]).toEqual([rule?.[1], rule?.[2]]);
  });

  it('lets only the task list backlog be added up', () => {
    expect(catalog.filter((metric) => metric.additive).map((metric) => metric.name)).toEqual([
      'svc_matching_tasklist_backlog',
    ]);
  });

  it('uses only the tags of the specification, never one that is forbidden', () => {
    const allowed = ['operation', 'domain', 'tasklist', 'workflow_type', 'activity_type'];
    for (const { tags } of catalog) expect(allowed).toEqual(expect.arrayContaining([...tags]));
  });

  it('lets every role send process, memory and persistence metrics, and some role each other one', () => {
    for (const metric of catalog) {
      const everywhere = ['Process', 'Memory', 'Persistence'].includes(metric.group);
      expect(metric.roles.length).toBeGreaterThanOrEqual(everywhere ? roles.length : 1);
    }
  });

  it('has one line of help for each', () => {
    for (const { help } of catalog) expect(help).toMatch(/^[A-Z][^\n]+\.$/);
  });

  it('knows nothing else', () => {
    expect(findMetric('svc_restarts_total')).toBeUndefined();
  });
});
