import { agentMetric } from '../../../core/agent-metrics.ts';
import type { Counter, Intake } from '../../../core/model.ts';
import { createPattern, isPatternAt } from '../lines/byte-pattern.ts';
import { escapedText, type Fields, plainText, type Slots, textOf, viewOf } from '../lines/fields.ts';

/**
 * Counts `svc_log_persistence_errors_total` of one service. `isPersistenceError` is the definition of the
 * contract (Logs); `operationOf` maps the spellings of the log to the `operation` tag of the catalog.
 */
export interface PersistenceErrors {
  /** The caller passes entries of level error and fatal only. */
  count(fields: Fields): void;
}

export const persistenceFamily = agentMetric('svc_log_persistence_errors_total');
/** The fields of an entry that this metric reads. */
export const persistenceFields = ['msg', 'operation', 'store-operation'] as const;

export function createPersistenceErrors(intake: Intake, slots: Slots): PersistenceErrors {
  const [msg, ...operations] = persistenceFields.map((name) => slots.of(name)) as [number, ...number[]];
  const counters = new Map<string, Counter>();
  const { name, help } = persistenceFamily;

  const counterOf = (operation: string): Counter => {
    const known = counters.get(operation);
    if (known !== undefined) return known;
    const counter = intake.counter(name, operation === '' ? {} : { operation }, { help });
    counters.set(operation, counter);
    return counter;
  };
  counterOf('');
  return {
    count(fields) {
      if (!isPersistenceError(fields, msg)) return;
      const logged = operations.map((slot) => textOf(fields, slot)).find((text) => text);
      counterOf(logged ? operationOf(logged) : '').add(1);
    },
  };
}

const messages = [
  'Operation failed with internal error.',
  'DBUnavailable Error:',
  'Persistent store operation failure',
  'Persistent fetch operation failure',
].map((text) => createPattern(Buffer.from(text)));
const phrase = Buffer.from('persistence error');

const foldCase = (byte: number) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte);

/** Whether `bytes[from, to)` contains `phrase` in any case. */
function containsPhrase(bytes: Buffer, from: number, to: number): boolean {
  const last = to - phrase.length;
  for (let at = from; at <= last; at++) {
    let i = 0;
    while (i < phrase.length && foldCase(bytes[at + i]!) === phrase[i]) i++;
    if (i === phrase.length) return true;
  }
  return false;
}

function isMessage(view: DataView, from: number, to: number): boolean {
  for (const text of messages) if (text.length === to - from && isPatternAt(text, view, from)) return true;
  return false;
}

/** Whether the entry's `msg` reports that the store failed. */
function isPersistenceError(fields: Fields, msg: number): boolean {
  const from = fields.from[msg]!;
  const to = fields.to[msg]!;
  if (fields.kind[msg] === plainText) {
    return isMessage(fields.view, from, to) || containsPhrase(fields.bytes, from, to);
  }
  if (fields.kind[msg] !== escapedText) return false;
  const text = Buffer.from(textOf(fields, msg) as string);
  return isMessage(viewOf(text), 0, text.length) || containsPhrase(text, 0, text.length);
}

/** Persistence operations as the catalog's `operation` tag spells them, without the prefix `Persistence`. */
const names = `
  CreateShard GetShard UpdateShard
  CreateWorkflowExecution GetWorkflowExecution UpdateWorkflowExecution ConflictResolveWorkflowExecution
  ResetWorkflowExecution DeleteWorkflowExecution DeleteCurrentWorkflowExecution GetCurrentExecution
  ListCurrentExecutions ListConcreteExecutions IsWorkflowExecutionExists
  GetTransferTasks CompleteTransferTask RangeCompleteTransferTask
  GetCrossClusterTasks CompleteCrossClusterTask RangeCompleteCrossClusterTask
  GetReplicationTasks CompleteReplicationTask RangeCompleteReplicationTask
  PutReplicationTaskToDLQ GetReplicationTasksFromDLQ GetReplicationDLQSize DeleteReplicationTaskFromDLQ
  RangeDeleteReplicationTaskFromDLQ CreateFailoverMarkerTasks
  GetTimerIndexTasks CompleteTimerTask RangeCompleteTimerTask GetHistoryTasks RangeCompleteHistoryTask
  CreateTask CreateTasks GetTasks GetOrphanTasks CompleteTask CompleteTasksLessThan
  LeaseTaskList GetTaskList UpdateTaskList ListTaskList DeleteTaskList GetTaskListSize StopTaskList
  AppendHistoryEvents AppendHistoryNodes ReadHistoryBranch ForkHistoryBranch DeleteHistoryBranch
  GetHistoryTree GetAllHistoryTreeBranches GetWorkflowExecutionHistory DeleteWorkflowExecutionHistory
  CreateDomain GetDomain UpdateDomain DeleteDomain DeleteDomainByName ListDomains GetMetadata
  RecordWorkflowExecutionStarted RecordWorkflowExecutionClosed RecordWorkflowExecutionUninitialized
  UpsertWorkflowExecution ListWorkflowExecutions ScanWorkflowExecutions CountWorkflowExecutions
  ListOpenWorkflowExecutions ListOpenWorkflowExecutionsByType ListOpenWorkflowExecutionsByWorkflowID
  ListClosedWorkflowExecutions ListClosedWorkflowExecutionsByType ListClosedWorkflowExecutionsByWorkflowID
  ListClosedWorkflowExecutionsByStatus GetClosedWorkflowExecution DeleteUninitializedWorkflowExecution
  VisibilityDeleteWorkflowExecution
  EnqueueMessage EnqueueMessageToDLQ ReadMessages ReadMessagesFromDLQ DeleteMessagesBefore
  DeleteMessageFromDLQ RangeDeleteMessagesFromDLQ UpdateAckLevel GetAckLevels UpdateDLQAckLevel
  GetDLQAckLevels GetDLQSize
`
  .trim()
  .split(/\s+/);

/** Spellings in the log that do not follow `logSpelling`. */
const irregular = {
  'list-current-execution': 'ListCurrentExecutions',
  'list-concrete-execution': 'ListConcreteExecutions',
  createFailoverMarkerTasks: 'CreateFailoverMarkerTasks',
  'list-open-wf-executions-by-wfID': 'ListOpenWorkflowExecutionsByWorkflowID',
  'list-closed-wf-executions-by-wfID': 'ListClosedWorkflowExecutionsByWorkflowID',
  'vis-delete-wf-execution': 'VisibilityDeleteWorkflowExecution',
};

/** The value of the log's `store-operation`: `UpdateWorkflowExecution` is `update-wf-execution`. */
function logSpelling(name: string): string {
  return name
    .replace(/([a-z])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$&-')
    .toLowerCase()
    .replaceAll('workflow', 'wf');
}

const bySpelling = new Map<string, string>();
for (const name of names) {
  for (const spelling of [name, `Persistence${name}`, logSpelling(name)]) {
    bySpelling.set(spelling, `Persistence${name}`);
  }
}
for (const [spelling, name] of Object.entries(irregular)) bySpelling.set(spelling, `Persistence${name}`);

/** The operation in the catalog's spelling; `other` if the table does not have it. */
export function operationOf(logged: string): string {
  return bySpelling.get(logged) ?? 'other';
}
