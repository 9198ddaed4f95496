import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { catalog } from '../../../src/core/catalog.ts';
import type { Kind, RawTags } from '../../../src/core/model.ts';
import {
  catalogVocabulary,
  coverageOf,
  createVocabulary,
  type VocabularyTable,
} from '../../../src/core/vocabulary.ts';
import { createVocabularyDetector } from '../../../src/core/vocabulary-detector.ts';
import { vocabularyDetectorFor } from '../../../src/sources/vocabularies.ts';

const tableOf = (name: string): VocabularyTable =>
  JSON.parse(readFileSync(new URL(`../../../vocabularies/${name}.json`, import.meta.url), 'utf8'));
const tables = { cadence: tableOf('cadence'), temporal: tableOf('temporal') };
const cadence = createVocabulary(tables.cadence);
const temporal = createVocabulary(tables.temporal);
const all = [catalogVocabulary(), cadence, temporal];

const readme = readFileSync(new URL('../../../vocabularies/README.md', import.meta.url), 'utf8');

/** The names on the page; `, \`_latency\`` after a name stands for another name with that suffix. */
const documented = new Set(
  [...readme.matchAll(/`(svc_\w+)`((?:, `_\w+`)*)/g)].flatMap(([, name = '', endings = '']) => [
    name,
    ...[...endings.matchAll(/`(_\w+)`/g)].map(([, ending]) => name.replace(/_[a-z]+$/, '') + ending),
  ]),
);

test.each(Object.entries(tables))(
  '%s leads to the catalog, or to a name of ours that the page documents',
  (name, table) => {
    expect(table.name).toBe(name);
    const known = new Set([...catalog.map((metric) => metric.name), 'svc_replication_latency']);
    const others = [...createVocabulary(table).leadsTo].filter((metric) => !known.has(metric));
    expect(others.filter((metric) => !documented.has(metric))).toEqual([]);
  },
);

interface Row {
  vocabulary?: typeof cadence;
  kind?: Kind;
  name: string;
  tags?: RawTags;
  has?: string[];
  to: string | { name: string; tags?: RawTags; divisor?: number; also?: { name: string; tags: RawTags } };
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
  'a new histogram without its timer': {
    kind: 'histogram',
    name: 'persistence_latency_ns',
    tags: { histogram_start: '1ms', histogram_end: '1000s', histogram_scale: '1' },
    to: { name: 'svc_persistence_latency', tags: {} },
  },
  'a part of a whole, which loses the tags that the other part does not have': {
    name: 'persistence_requests_per_domain',
    has: ['persistence_requests', 'persistence_requests_rollup'],
    tags: { operation: 'GetTasks', domain: 'd', is_retry: 'false' },
    to: {
      name: 'svc_persistence_requests',
      tags: { operation: 'PersistenceGetTasks' },
      also: {
        name: 'svc_persistence_domain_requests',
        tags: { operation: 'PersistenceGetTasks', domain: 'd' },
      },
    },
  },
  'a part that an older server has in the plain metric too': {
    name: 'persistence_requests_per_domain',
    has: ['persistence_requests'],
    tags: { operation: 'GetTasks', domain: 'd' },
    to: { name: 'svc_persistence_domain_requests', tags: { operation: 'PersistenceGetTasks', domain: 'd' } },
  },
  'a rollup beside its parts': {
    name: 'persistence_latency_rollup',
    has: ['persistence_latency_per_domain'],
    to: 'left_out',
  },
  'a rollup of errors that has the plain name': {
    name: 'persistence_errors',
    has: ['persistence_requests_rollup', 'persistence_errors_per_domain'],
    tags: { operation: 'GetTasks' },
    to: 'left_out',
  },
  'errors without a domain beside those with one': {
    name: 'persistence_errors',
    has: ['persistence_requests_rollup', 'persistence_errors_per_domain'],
    tags: { operation: 'GetShard', is_retry: 'false', task_category: 'none' },
    to: { name: 'svc_persistence_errors', tags: { operation: 'PersistenceGetShard' } },
  },
  'errors whose part per domain is not sent': {
    name: 'persistence_errors',
    has: ['persistence_requests_rollup'],
    tags: { operation: 'GetTasks' },
    to: { name: 'svc_persistence_errors', tags: { operation: 'PersistenceGetTasks' } },
  },
  'the frontend’s own requests': {
    name: 'cadence_requests',
    tags: { cadence_service: 'cadence_frontend', operation: 'StartWorkflowExecution', caller: 'x' },
    to: {
      name: 'svc_frontend_client_requests',
      tags: { svc_service: 'cadence_frontend', operation: 'FrontendClientStartWorkflowExecution' },
      also: {
        name: 'svc_frontend_domain_requests',
        tags: { svc_service: 'cadence_frontend', caller: 'x' },
      },
    },
  },
  'another role’s requests': {
    name: 'cadence_requests',
    tags: { cadence_service: 'cadence_history', operation: 'StartWorkflowExecution' },
    to: {
      name: 'svc_served_requests',
      tags: { svc_service: 'cadence_history', operation: 'StartWorkflowExecution' },
    },
  },
  'an answer of the frontend, which is no failure': {
    name: 'cadence_errors_entity_not_exists',
    tags: { cadence_service: 'cadence_frontend' },
    to: { name: 'cadence_errors_entity_not_exists', tags: { svc_service: 'cadence_frontend' } },
  },
  'a tag whose new name is taken': {
    name: 'x',
    tags: { cadence_service: 'a', svc_service: 'b' },
    to: { name: 'x', tags: { cadence_service: 'a', svc_service: 'b' } },
  },
  'the sibling’s frontend, by what it was asked itself': {
    vocabulary: temporal,
    name: 'service_requests_total',
    tags: { service_name: 'frontend', operation: 'StartWorkflowExecution', namespace: 'orders' },
    to: {
      name: 'svc_frontend_client_requests',
      tags: { svc_service: 'frontend', operation: 'FrontendClientStartWorkflowExecution' },
    },
  },
  'the sibling’s requests to another role, which keep their name': {
    vocabulary: temporal,
    name: 'service_requests',
    tags: { service_name: 'history', operation: 'RecordActivityTaskStarted' },
    to: {
      name: 'service_requests',
      tags: { svc_service: 'history', operation: 'RecordActivityTaskStarted' },
    },
  },
  'the sibling’s calls to the frontend, which the frontend counts': {
    vocabulary: temporal,
    name: 'client_requests',
    tags: { service_role: 'frontend' },
    to: { name: 'client_requests', tags: { service_role: 'frontend' } },
  },
  'the sibling’s timer in milliseconds': {
    vocabulary: temporal,
    kind: 'histogram',
    name: 'persistence_latency_milliseconds',
    tags: { operation: 'GetWorkflowExecution' },
    to: {
      name: 'svc_persistence_latency',
      divisor: 1000,
      tags: { operation: 'PersistenceGetWorkflowExecution' },
    },
  },
  'the sibling’s wait of a task': {
    vocabulary: temporal,
    kind: 'histogram',
    name: 'task_schedule_to_start_latency',
    tags: {
      task_type: 'Workflow',
      operation: 'RecordWorkflowTaskStarted',
      namespace: 'orders',
      taskqueue: 'q',
    },
    to: {
      name: 'svc_decision_task_schedule_to_start_latency',
      tags: { domain: 'orders', tasklist: 'q' },
    },
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
    const translated = vocabulary.translate(kind, name, tags, {
      has: (other) => has.includes(other),
      isRepeated: () => false,
    });
    if (typeof to === 'string') expect(translated).toBe(to);
    else {
      expect(translated).toMatchObject({ divisor: 1, ...to });
      expect(translated).toHaveProperty('tags', to.tags ?? {});
      if (!to.also) expect(translated).not.toHaveProperty('also');
    }
  },
);

test.each([
  [['cadence_requests_per_tl', 'persistence_requests'], 'cadence'],
  [['client_requests', 'persistence_requests'], 'temporal'],
  [['service_requests_total', 'persistence_requests_total'], 'temporal'],
  [['approximate_backlog_count', 'poll_success'], 'temporal'],
  [['svc_restarts', 'go_threads'], 'svc'],
  [['persistence_requests', 'restarts'], undefined],
  [['go_threads'], undefined],
  [['client_requests', 'task_backlog_per_tl'], undefined],
])('%j speaks %s', (names, name) => {
  const detector = createVocabularyDetector(all);
  detector.detect(new Set(names));
  expect(detector.vocabulary?.name).toBe(name);
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

describe('a vocabulary of the configuration', () => {
  const own = { metrics: { my_started: 'svc_workflow_started' }, tags: { team_name: 'team' }, units: {} };
  const translate = (
    setting: Parameters<typeof vocabularyDetectorFor>[0],
    name: string,
    tags: RawTags = {},
  ) => vocabularyDetectorFor(setting, all, 'services.history.vocabulary').translate('counter', name, tags);

  test('extends a shipped table', () => {
    const extended = { ...own, extends: 'cadence', metrics: { ...own.metrics, restarts: 'svc_gomaxprocs' } };
    expect(translate(extended, 'my_started', { team_name: 'a' })).toMatchObject({
      name: 'svc_workflow_started',
      tags: { team: 'a' },
    });
    expect(translate(extended, 'workflow_cancel', { workflowType: 'w' })).toMatchObject({
      name: 'svc_workflow_canceled',
      tags: { workflow_type: 'w' },
    });
    expect(translate(extended, 'restarts')).toMatchObject({ name: 'svc_gomaxprocs' });
  });

  test('is the whole vocabulary without a base', () => {
    expect(translate(own, 'my_started')).toMatchObject({ name: 'svc_workflow_started' });
    expect(translate(own, 'workflow_cancel')).toMatchObject({ name: 'workflow_cancel' });
  });

  const metrics = ['restarts', 'task_latency', 'task_latency_queue', 'workflow_failed'];
  const left = (selection: Partial<Parameters<typeof vocabularyDetectorFor>[0] & object>) =>
    metrics.filter((name) => translate({ ...own, extends: 'cadence', ...selection }, name) !== 'left_out');
  test.each([
    [{ drop: ['task_*', 'svc_restarts'] }, ['workflow_failed']],
    [
      { keep: ['svc_history_*', 'workflow_failed'] },
      ['task_latency', 'task_latency_queue', 'workflow_failed'],
    ],
    [{ keep: ['*'], drop: ['restarts'] }, metrics.slice(1)],
    [{ drop: ['task.latency'] }, metrics],
  ])('%j chooses', (selection, expected) => expect(left(selection)).toEqual(expected));

  test('labels are dropped by either name, and the others stay', () => {
    const tags = { workflowType: 'w', domain: 'd', host: 'h' };
    const setting = { ...own, extends: 'cadence', labels: { drop: ['workflow_type', 'host'] } };
    expect(translate(setting, 'workflow_failed', tags)).toMatchObject({ tags: { domain: 'd' } });
    expect(translate(setting, 'no_rule', tags)).toHaveProperty('tags', { domain: 'd' });
  });

  test.each([
    [
      { ...own, extends: 'nosuch' },
      'services.history.vocabulary.extends: unknown vocabulary, got "nosuch"; use svc, cadence, temporal',
    ],
    [{ ...own, units: { x: 'hours' } }, 'services.history.vocabulary.units.x: unknown unit, got "hours"'],
    [
      'nosuch',
      'services.history.vocabulary: unknown vocabulary, got "nosuch"; use auto, svc, cadence, temporal or a table',
    ],
  ])('refuses %j', (setting, message) => {
    expect(() => translate(setting, 'x')).toThrow(message);
  });
});

test('coverage of a page: what was made of what, what is missing, what looks like it, what was left out', () => {
  const mapped = [
    { name: 'persistence_requests', to: new Set(['svc_persistence_requests']), leftOut: false },
    { name: 'persistence_requests_per_domain', to: new Set(['svc_persistence_requests']), leftOut: false },
    { name: 'persistence_requests_rollup', to: new Set<string>(), leftOut: true },
    { name: 'matching_poll_success_v2', to: new Set(['matching_poll_success_v2']), leftOut: false },
    { name: 'build_age', to: new Set(['build_age']), leftOut: false },
    { name: 'errors', to: new Set(['errors']), leftOut: false },
    { name: 'read_by_a_probe', to: new Set(['read_by_a_probe']), leftOut: false },
    { name: 'svc_restarts', to: new Set(['svc_restarts']), leftOut: false },
  ];
  const wanted = [
    'svc_restarts',
    'svc_persistence_requests',
    'svc_matching_poll_success',
    'svc_persistence_errors',
  ];
  const { made, ...rest } = coverageOf(mapped, wanted, new Set([...wanted, 'read_by_a_probe']));
  expect(made).toMatchObject({
    svc_persistence_requests: ['persistence_requests', 'persistence_requests_per_domain'],
    svc_restarts: ['svc_restarts'],
  });
  expect(rest).toEqual({
    missing: ['svc_matching_poll_success', 'svc_persistence_errors'],
    unmapped: ['build_age', 'errors', 'matching_poll_success_v2'],
    alike: { matching_poll_success_v2: ['svc_matching_poll_success'] },
    leftOut: ['persistence_requests_rollup'],
  });
});
