import { describe, expect, test } from 'vitest';
import { operationOf } from '../../../src/sources/logs/metrics/persistence-errors.ts';
import { createCounting, feed } from '../../counting.ts';

const counted = (entry: Record<string, unknown>) => {
  const counting = createCounting();
  feed(counting.open(), `${JSON.stringify(entry)}\n`);
  const series = Object.keys(counting.counts()).filter((name) => name.startsWith('svc_log_persistence'));
  expect(series.length).toBeLessThan(2);
  return series[0]?.replace('svc_log_persistence_errors_total', '');
};

describe('a persistence error', () => {
  test.each([
    ['error', 'Operation failed with internal error.'],
    ['error', 'DBUnavailable Error:'],
    ['fatal', 'Persistent store operation failure'],
    ['error', 'Persistent fetch operation failure'],
    ['error', 'persistence error'],
    ['fatal', 'Got a PERSISTENCE Error, again'],
    ['error', 'a "Persistence error"\n'],
    ['error', 'ü persistence error'],
  ])('is %s: %s', (level, msg) => {
    expect(counted({ level, msg })).toBe('');
  });

  test.each([
    ['warn', 'persistence error'],
    ['ERROR', 'persistence error'],
    [undefined, 'persistence error'],
    ['error', 'persistence  error'],
    ['error', 'persistence erro'],
    ['error', 'ersistence error'],
    ['error', 'operation failed with internal error.'],
    ['error', 'Operation failed with internal error'],
    ['error', 'DBUnavailable Error: x'],
    ['error', ''],
    ['error', undefined],
    ['error', { text: 'persistence error' }],
  ])('is not %s: %s', (level, msg) => {
    expect(counted({ level, msg })).toBeUndefined();
  });

  test.each([
    [{ operation: 'PersistenceUpdateWorkflowExecution' }, 'PersistenceUpdateWorkflowExecution'],
    [{ operation: 'AppendHistoryEvents' }, 'PersistenceAppendHistoryEvents'],
    [{ 'store-operation': 'update-wf-execution' }, 'PersistenceUpdateWorkflowExecution'],
    [{ operation: 'GetShard', 'store-operation': 'update-shard' }, 'PersistenceGetShard'],
    [{ operation: '', 'store-operation': 'update-shard' }, 'PersistenceUpdateShard'],
    [{ operation: null, 'store-operation': 'update-shard' }, 'PersistenceUpdateShard'],
    [{ operation: 'store-42', 'store-operation': 'update-shard' }, 'other'],
    [{ operation: 17 }, 'other'],
  ])('has the operation of %j', (fields, operation) => {
    expect(counted({ level: 'error', msg: 'persistence error', ...fields })).toBe(
      `{operation="${operation}"}`,
    );
  });

  test('counts each, known operations and new ones', () => {
    const counting = createCounting();
    const line = (operation: string) =>
      `${JSON.stringify({ level: 'error', msg: 'persistence error', operation })}\n`;
    feed(
      counting.open(),
      line('GetShard'),
      line('UpdateShard'),
      line('GetShard'),
      line('PersistenceGetShard'),
    );
    expect(counting.counts()).toMatchObject({
      'svc_log_persistence_errors_total{operation="PersistenceGetShard"}': 3,
      'svc_log_persistence_errors_total{operation="PersistenceUpdateShard"}': 1,
    });
  });
});

test.each([
  ['create-wf-execution', 'PersistenceCreateWorkflowExecution'],
  ['get-wf-execution', 'PersistenceGetWorkflowExecution'],
  ['conflict-resolve-wf-execution', 'PersistenceConflictResolveWorkflowExecution'],
  ['is-wf-execution-exists', 'PersistenceIsWorkflowExecutionExists'],
  ['get-tasks', 'PersistenceGetTasks'],
  ['create-tasks', 'PersistenceCreateTasks'],
  ['complete-tasks-less-than', 'PersistenceCompleteTasksLessThan'],
  ['update-task-list', 'PersistenceUpdateTaskList'],
  ['update-shard', 'PersistenceUpdateShard'],
  ['get-replication-tasks-from-dlq', 'PersistenceGetReplicationTasksFromDLQ'],
  ['get-replication-dlq-size', 'PersistenceGetReplicationDLQSize'],
  ['range-delete-replication-task-from-dlq', 'PersistenceRangeDeleteReplicationTaskFromDLQ'],
  ['list-open-wf-executions-by-wfID', 'PersistenceListOpenWorkflowExecutionsByWorkflowID'],
  ['list-current-execution', 'PersistenceListCurrentExecutions'],
  ['createFailoverMarkerTasks', 'PersistenceCreateFailoverMarkerTasks'],
  ['append-history-nodes', 'PersistenceAppendHistoryNodes'],
  ['PersistenceAppendHistoryEvents', 'PersistenceAppendHistoryEvents'],
  ['persistenceappendhistoryevents', 'other'],
  ['constructor', 'other'],
])('operation %s is %s', (logged, operation) => {
  expect(operationOf(logged)).toBe(operation);
});
