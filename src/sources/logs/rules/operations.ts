/** What the service asks of its store, as the catalog's `operation` tag spells it, less `Persistence`. */
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

/** Log spellings that no rule makes from a name. */
const irregular = {
  'list-current-execution': 'ListCurrentExecutions',
  'list-concrete-execution': 'ListConcreteExecutions',
  createFailoverMarkerTasks: 'CreateFailoverMarkerTasks',
  'list-open-wf-executions-by-wfID': 'ListOpenWorkflowExecutionsByWorkflowID',
  'list-closed-wf-executions-by-wfID': 'ListClosedWorkflowExecutionsByWorkflowID',
  'vis-delete-wf-execution': 'VisibilityDeleteWorkflowExecution',
};

/** `UpdateWorkflowExecution` as the log's `store-operation` has it: `update-wf-execution`. */
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

/** An operation in the catalog's spelling; `other` for one that is not in the table. */
export function operationOf(logged: string): string {
  return bySpelling.get(logged) ?? 'other';
}
