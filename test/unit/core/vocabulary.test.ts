import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { catalog } from '../../../src/core/catalog.ts';
import type { Kind, RawTags } from '../../../src/core/model.ts';
import {
  catalogVocabulary,
  createVocabulary,
  createVocabularyDetector,
  detectVocabulary,
  type VocabularyTable,
} from '../../../src/core/vocabulary.ts';

const tableOf = (name: string): VocabularyTable =>
  JSON.parse(readFileSync(new URL(`../../../vocabularies/${name}.json`, import.meta.url), 'utf8'));
const tables = { cadence: tableOf('cadence'), temporal: tableOf('temporal') };
const cadence = createVocabulary(tables.cadence);
const temporal = createVocabulary(tables.temporal);
const all = [catalogVocabulary(), cadence, temporal];

test.each(Object.entries(tables))('%s leads to the catalog', (name, table) => {
  expect(table.name).toBe(name);
  const known = new Set([...catalog.map((metric) => metric.name), 'svc_replication_latency']);
  const strangers = [...createVocabulary(table).leadsTo].filter((metric) => !known.has(metric));
  expect(strangers).toEqual([]);
});

interface Row {
  vocabulary?: typeof cadence;
  kind?: Kind;
  name: string;
  tags?: RawTags;
  has?: string[];
  to: string | { name: string; tags?: RawTags; divisor?: number };
}

const rows: Record<string, Row> = {
  'a name': { name: 'workflow_cancel', to: { name: 'svc_workflow_canceled' } },
  'a tag': {
    name: 'restarts',
    tags: { cadence_service: 'cadence_history' },
    to: { name: 'svc_restarts', tags: { svc_service: 'cadence_history' } },
  },
  'tags of a metric that nobody maps': {
    name: 'cadence_requests',
    tags: { workflowType: 'w' },
    to: { name: 'cadence_requests', tags: { workflow_type: 'w' } },
  },
  'a metric that is split by a tag': {
    name: 'cadence_client_errors',
    tags: { cadence_role: 'history_client', operation: 'X' },
    to: { name: 'svc_history_client_errors', tags: { operation: 'X' } },
  },
  'a value that the split does not know': {
    name: 'cadence_client_errors',
    tags: { cadence_role: 'admin_client' },
    to: { name: 'cadence_client_errors', tags: { cadence_role: 'admin_client' } },
  },
  'an operation in the catalog’s spelling': {
    name: 'persistence_requests',
    tags: { operation: 'GetWorkflowExecution' },
    to: { name: 'svc_persistence_requests', tags: { operation: 'PersistenceGetWorkflowExecution' } },
  },
  'an operation that has the catalog’s spelling': {
    name: 'persistence_requests',
    tags: { operation: 'PersistenceGetWorkflowExecution' },
    to: { name: 'svc_persistence_requests', tags: { operation: 'PersistenceGetWorkflowExecution' } },
  },
  nanoseconds: {
    kind: 'gauge',
    name: 'replication_latency',
    tags: { target_cluster: 'dc2' },
    to: { name: 'svc_replication_latency', tags: { target_cluster: 'dc2' }, divisor: 1e9 },
  },
  'a distribution over all domains': {
    kind: 'histogram',
    name: 'cadence_latency',
    tags: { domain: 'all' },
    to: 'left_out',
  },
  'a counter of a domain of that name': {
    kind: 'counter',
    name: 'workflow_failed',
    tags: { domain: 'all' },
    to: { name: 'svc_workflow_failed', tags: { domain: 'all' } },
  },
  'a new histogram beside its timer': {
    kind: 'histogram',
    name: 'persistence_latency_ns',
    has: ['persistence_latency'],
    to: 'left_out',
  },
  'a new histogram without its timer': {
    kind: 'histogram',
    name: 'persistence_latency_ns',
    to: { name: 'svc_persistence_latency' },
  },
  'a tag whose new name is taken': {
    name: 'x',
    tags: { cadence_service: 'a', svc_service: 'b' },
    to: { name: 'x', tags: { cadence_service: 'a', svc_service: 'b' } },
  },
  'the sibling’s split': {
    vocabulary: temporal,
    name: 'client_requests',
    tags: { service_role: 'matching', namespace: 'orders' },
    to: { name: 'svc_matching_client_requests', tags: { domain: 'orders' } },
  },
};

test.each(Object.entries(rows))(
  'translates %s',
  (_, { vocabulary = cadence, kind = 'counter', name, tags = {}, has = [], to }) => {
    const translated = vocabulary.translate(kind, name, tags, (other) => has.includes(other));
    if (typeof to === 'string') expect(translated).toBe(to);
    else expect(translated).toMatchObject({ tags: {}, divisor: 1, ...to });
  },
);

describe('detectVocabulary', () => {
  test.each([
    [['cadence_requests_per_tl', 'persistence_requests'], 'cadence'],
    [['client_requests', 'persistence_requests'], 'temporal'],
    [['svc_restarts', 'go_threads'], 'svc'],
    [['persistence_requests', 'restarts'], undefined],
    [['go_threads'], undefined],
    [['client_requests', 'task_backlog_per_tl'], undefined],
  ])('%j speaks %s', (names, name) => {
    expect(detectVocabulary(all, new Set(names))?.name).toBe(name);
  });
});

describe('words', () => {
  test('auto waits for a name that tells, decides once, and says what is to be asked for anew', () => {
    const words = createVocabularyDetector(all);
    expect(words.translate('counter', 'restarts', {})).toBeUndefined();
    expect(words.detect(new Set(['restarts', 'other']))).toEqual(new Set());
    const names = new Set(['restarts', 'other', 'task_backlog_per_tl']);
    expect(words.detect(names)).toEqual(names);
    expect(words.translate('counter', 'restarts', {})).toMatchObject({ name: 'svc_restarts' });
    expect(words.detect(new Set(['client_requests', 'approximate_backlog_count']))).toEqual(new Set());
    expect(words.vocabulary?.name).toBe('cadence');
  });

  test('a name that makes another a double is news for its series', () => {
    const words = createVocabularyDetector([cadence], true);
    words.detect(new Set(['persistence_latency_ns', 'other']));
    const reworded = words.detect(new Set(['persistence_latency_ns', 'persistence_latency', 'other']));
    expect(reworded).toEqual(new Set(['persistence_latency_ns', 'persistence_latency']));
    expect(words.translate('histogram', 'persistence_latency_ns', {})).toBe('left_out');
  });
});
