import { agentMetric } from '../../../core/agent-metrics.ts';
import { hashBytes } from '../../../core/hashes.ts';
import type { Counter, Intake } from '../../../core/model.ts';
import {
  type BytePattern,
  createPattern,
  escapedText,
  type Fields,
  isPatternAt,
  plainText,
  type Slots,
  textOf,
  viewOf,
} from '../lines/fields.ts';
import type { FileState } from '../lines/line-classifier.ts';

/**
 * Counts `svc_log_persistence_errors_total` of one service (docs/how-to/collect.md, Logs).
 *
 * A failed call can leave two entries. The service's persistence client logs an unavailable store or an internal
 * error (`clientMessages`). The code that made the call may log the same error again (`callerMessages`), and it
 * also logs errors that the client does not log, such as time-outs. Therefore an entry of the caller counts only if
 * the client did not log an error with the same text shortly before in this file.
 */
interface PersistenceErrors {
  /** The caller passes entries of level error and fatal only. */
  count(fields: Fields, file: FileState): void;
}

export const persistenceFamily = agentMetric('svc_log_persistence_errors_total');
/** The fields of an entry that this metric reads. */
export const persistenceFields = ['msg', 'error', 'operation', 'store-operation'] as const;

export function createPersistenceErrors(intake: Intake, slots: Slots): PersistenceErrors {
  const [msg, error, operation, storeOperation] = persistenceFields.map((name) => slots.of(name)) as [
    number,
    number,
    number,
    number,
  ];
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
    count(fields, { clientErrors }) {
      const message = messageOf(fields, msg);
      if (message === 'none') return;
      if (message !== 'phrase') {
        const hash = hashOf(fields, error);
        const isLogged = hash !== undefined && clientErrors.includes(hash);
        if (message === 'caller' && isLogged) return;
        if (message === 'client' && hash !== undefined && !isLogged) {
          if (clientErrors.length === maxClientErrors) clientErrors.shift();
          clientErrors.push(hash);
        }
      }
      const logged =
        textOf(fields, operation) || textOf(fields, storeOperation) || operationIn(textOf(fields, error));
      counterOf(logged ? operationOf(logged) : '').add(1);
    },
  };
}

const maxClientErrors = 16;

/** A stable hash of a string field; undefined for any other value. */
function hashOf({ kind, from, to, bytes }: Fields, slot: number): number | undefined {
  if (kind[slot] !== plainText && kind[slot] !== escapedText) return undefined;
  return hashBytes(0x811c9dc5, bytes, from[slot]!, to[slot]!);
}

/** The operation at the start of an error text: `UpdateTaskList operation failed. …`, `GetShard timed out. …`. */
function operationIn(error: string | undefined): string | undefined {
  return /^(\w+) (?:operation failed|failed|timed out)\./.exec(error ?? '')?.[1];
}

const patterns = (texts: readonly string[]) => texts.map((text) => createPattern(Buffer.from(text)));
const clientMessages = patterns(['Operation failed with internal error.', 'DBUnavailable Error:']);
const callerMessages = patterns(['Persistent store operation failure', 'Persistent fetch operation failure']);
const phrase = Buffer.from('persistence error');

const foldCase = (byte: number) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte);

/** Whether `bytes[from, to)` contains `phrase`; case does not matter. */
function containsPhrase(bytes: Buffer, from: number, to: number): boolean {
  const last = to - phrase.length;
  for (let at = from; at <= last; at++) {
    let i = 0;
    while (i < phrase.length && foldCase(bytes[at + i]!) === phrase[i]) i++;
    if (i === phrase.length) return true;
  }
  return false;
}

function isOneOf(
  messages: readonly BytePattern[],
  bytes: Buffer,
  view: DataView,
  from: number,
  to: number,
): boolean {
  for (const text of messages)
    if (text.length === to - from && isPatternAt(text, bytes, view, from)) return true;
  return false;
}

/** The component that reports a store failure in an entry's `msg`: see `PersistenceErrors`. */
type Message = 'client' | 'caller' | 'phrase' | 'none';

function messageIn(bytes: Buffer, view: DataView, from: number, to: number): Message {
  if (isOneOf(clientMessages, bytes, view, from, to)) return 'client';
  if (isOneOf(callerMessages, bytes, view, from, to)) return 'caller';
  return containsPhrase(bytes, from, to) ? 'phrase' : 'none';
}

function messageOf(fields: Fields, msg: number): Message {
  if (fields.kind[msg] === plainText) {
    return messageIn(fields.bytes, fields.view, fields.from[msg]!, fields.to[msg]!);
  }
  if (fields.kind[msg] !== escapedText) return 'none';
  const text = Buffer.from(textOf(fields, msg) as string);
  return messageIn(text, viewOf(text), 0, text.length);
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

/** Spells an operation as the log's `store-operation` does: `UpdateWorkflowExecution` becomes `update-wf-execution`. */
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
