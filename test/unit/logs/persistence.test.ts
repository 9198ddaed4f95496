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

describe('a failure that two entries report', () => {
  const refused = 'UpdateTaskList operation failed. Failed to start transaction. Error: dial tcp: refused';
  const client = (error: string, msg = 'Operation failed with internal error.') => ({ msg, error });
  const caller = (error: string) => ({
    msg: 'Persistent store operation failure',
    'store-operation': 'update-task-list',
    error,
  });
  const lines = (...entries: Record<string, unknown>[]) =>
    entries.map((entry) => `${JSON.stringify({ level: 'error', ...entry })}\n`).join('');
  const series = 'svc_log_persistence_errors_total{operation="PersistenceUpdateTaskList"}';

  test.each<[string, Record<string, unknown>[], number]>([
    ['client and caller', [client(refused), caller(refused)], 1],
    ['two failures', [client(refused), caller(refused), client(refused), caller(refused)], 2],
    ['two at the same time', [client(refused), client(refused), caller(refused), caller(refused)], 2],
    ['a retry', [client(refused), client(refused), caller(refused)], 2],
    ['an unavailable store', [client(refused, 'DBUnavailable Error:'), caller(refused)], 1],
    ['a time-out, which only the caller logs', [caller('UpdateTaskList timed out. Error: deadline')], 1],
    ['another error', [client(refused), caller('UpdateTaskList timed out. Error: deadline')], 2],
    ['no error text', [{ msg: 'Persistent store operation failure', operation: 'UpdateTaskList' }], 1],
  ])('%s', (_, entries, count) => {
    const counting = createCounting();
    feed(counting.open(), lines(...entries));
    expect(counting.counts()[series]).toBe(count);
  });

  test('counts once across a restart between the two', () => {
    const before = createCounting();
    const sink = before.open();
    feed(sink, lines(client(refused)));
    const after = createCounting();
    feed(after.open(['history'], sink.state()), lines(caller(refused)));
    expect(before.counts()[series]).toBe(1);
    expect(after.counts()[series]).toBeUndefined();
  });

  test('of many different errors only the last few are remembered', () => {
    const counting = createCounting();
    const errors = Array.from({ length: 20 }, (_, n) => `UpdateTaskList operation failed. Error: ${n}`);
    feed(
      counting.open(),
      lines(...errors.map((error) => client(error)), caller(errors[19]!), caller(errors[0]!)),
    );
    expect(counting.counts()[series]).toBe(21);
  });
});

test.each([
  ['UpdateTaskList operation failed. Failed to start transaction. Error: x', 'PersistenceUpdateTaskList'],
  ['GetMetadata operation failed.  Error: dial tcp: connection refused', 'PersistenceGetMetadata'],
  ['LeaseTaskList operation failed. Failed to check if task list existed.', 'PersistenceLeaseTaskList'],
  ['AppendHistoryEvents timed out.  Error: context deadline exceeded', 'PersistenceAppendHistoryEvents'],
  ['lockNextEventID timed out.  Error: context deadline exceeded', 'other'],
])('without a field the operation is that of the error text: %s', (error, operation) => {
  expect(counted({ level: 'error', msg: 'Operation failed with internal error.', error })).toBe(
    `{operation="${operation}"}`,
  );
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
