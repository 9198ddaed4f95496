import { describe, expect, it } from 'vitest';
import { agentMetrics } from '../../../src/core/agent-metrics.ts';
import { catalog } from '../../../src/core/catalog.ts';
import { createLabeller, foldTag, isForbiddenTag } from '../../../src/core/registry/labels.ts';

const forbidden = `
  workflow_id workflowId workflowID WorkflowID WORKFLOW_ID workflow-id workflow.id workflow_ids wf-id wf_id wfId wfid
  run_id runId runID RunID run-id run.id wf-run-id wf_run_id wfRunId workflow_run_id workflowRunId
  parent_workflow_id parentWorkflowID first_run_id originalRunID continued-execution-run-id
  execution_id workflow_execution_id
  timestamp Timestamp time_stamp timestamps timestamp_ms timestampMs timestamp_ns timestamp_seconds event_timestamp
  ts TS time Time datetime date_time date-time unix_time epoch
  event_time eventTime start_time startTime end_time close_time created_at createdAt updated-at creation_time
  user_id userId userID UserID user-id user.id user_ids uid UID uids user_uuid run_uuid
`;
const allowed = `
  workflow_type workflowType domain operation tasklist activity_type svc_service le quantile instance job
  runtime uptime times host hosts tests status run runs user username users_total workflow wf id shard_id shardId
  timezone time_unit timeout lifetime type tsx its build_id identity grid guide fluid idle pod namespace cluster
  heartbeat format restart update create event closed started level logger reason component family store kind database probe backup version trace
`;
const words = (table: string) => table.trim().split(/\s+/);

describe('forbidden by name', () => {
  it.each(words(forbidden))('%s', (name) => expect(isForbiddenTag(name)).toBe(true));
  it.each(words(allowed))('not %s', (name) => expect(isForbiddenTag(name)).toBe(false));

  it('no tag of the catalog or of the agent', () => {
    const tags = new Set([...catalog, ...agentMetrics].flatMap((metric) => [...metric.tags]));
    expect([...tags].filter((tag) => isForbiddenTag(tag))).toEqual([]);
  });

  it('further names in any spelling', () => {
    const more = new Set(['Customer-No'].map(foldTag));
    expect(
      ['customer_no', 'customerNo', 'CUSTOMER.NO', 'customer'].map((name) => isForbiddenTag(name, more)),
    ).toEqual([true, true, true, false]);
  });
});

/** The value of a received tag as a label. */
const labelOf = (value: string) =>
  createLabeller({
    globalTags: {},
    received: true,
    service: '',
    serviceKeys: new Set(),
    forbidden: new Set(),
    allowValues: new Set(),
    exempt: false,
  }).label({ tag: value }, 'counter').labels[0]![1];
const id = '0f8fad5b-d9cb-469f-a165-70867728950e';

describe('forbidden by value', () => {
  it.each([
    [id, '_id_'],
    [id.toUpperCase(), '_id_'],
    [id.replaceAll('-', '_'), '_id_'],
    [`order-${id}`, 'order-_id_'],
    [`wf${id}`, 'wf_id_'],
    [`${id}/${id}`, '_id_/_id_'],
    [`a ${id} b`, 'a _id_ b'],
    [`${id}_3`, '_id__3'],
    ['2026-01-02T03:04:05Z', '_time_'],
    ['2026-01-02t03:04:05z', '_time_'],
    ['2026-01-02 03:04:05Z', '_time_'],
    ['2026-01-02T03:04:05.123456789+02:00', '_time_'],
    ['2016-12-31T23:59:60Z', '_time_'],
    ['batch 2026-01-02T03:04:05-07:30 done', 'batch _time_ done'],
    ['1700000000', '_time_'],
    ['1700000000000', '_time_'],
    ['1700000000000000', '_time_'],
    ['1700000000000000000', '_time_'],
    ['job-1700000000-a', 'job-_time_-a'],
    ['job_1700000000_a', 'job__time__a'],
    ['1700000000.5', '_time_.5'],
    ['1700000000,1700000001', '_time_,_time_'],
    ['0978307200', '_time_'],
    ['4133980799', '_time_'],
    ['4133980799999', '_time_'],
    [`${id} 1700000000 2026-01-02T03:04:05Z`, '_id_ _time_ _time_'],
  ])('%s becomes %s', (value, clean) => expect(labelOf(value)).toBe(clean));

  it.each([
    'orders',
    '0f8fad5bd9cb469fa16570867728950e',
    '0f8fad5b-d9cb-469f-a165-7086772895',
    '0f8fad5b.d9cb.469f.a165.70867728950e',
    'gggggggg-d9cb-469f-a165-70867728950e',
    '2026-01-02',
    '2026-01-02T03:04:05',
    '2026-13-02T03:04:05Z',
    '2026-01-32T03:04:05Z',
    '2026-01-02T24:04:05Z',
    '2026-01-02T03:04Z',
    '170000000',
    '17000000000',
    '170000000000',
    '17000000000000',
    '17000000000000000000',
    '0978307199',
    '4133980800',
    '9999999999',
    '0000000000000',
    'v1700000000',
    '1700000000ms',
    'é1700000000',
    '1700000000é',
    '٣1700000000',
    '10.0.0.1:7933',
    '5551234567',
  ])('%s stays', (value) => expect(labelOf(value)).toBe(value));
});
