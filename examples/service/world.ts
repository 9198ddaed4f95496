/** The make-believe world: what the service is used for, and the calls its roles make. */

export interface TaskList {
  domain: string;
  name: string;
  workflowType: string;
  activityType: string;
  /** What its workflow ids begin with. */
  idPrefix: string;
  /** Share of all workflows. */
  weight: number;
}

export const taskLists: readonly TaskList[] = [
  {
    domain: 'orders',
    name: 'order-processing',
    workflowType: 'OrderWorkflow',
    activityType: 'ReserveStock',
    idPrefix: 'order',
    weight: 0.6,
  },
  {
    domain: 'orders',
    name: 'order-mail',
    workflowType: 'ReminderWorkflow',
    activityType: 'SendMail',
    idPrefix: 'mail',
    weight: 0.15,
  },
  {
    domain: 'payments',
    name: 'payment-capture',
    workflowType: 'PaymentWorkflow',
    activityType: 'ChargeCard',
    idPrefix: 'payment',
    weight: 0.25,
  },
];

export const domainNames = ['orders', 'payments'] as const;
export type DomainName = (typeof domainNames)[number];

/** A domain of the first cluster only, which cannot fail over. */
export const localDomainName = 'internal';

/** The clusters that replicate to each other; the example service is the first of them. */
export const clusterGroup = {
  failoverVersionIncrement: 10,
  clusters: [
    { name: 'dc1', initialFailoverVersion: 1 },
    { name: 'dc2', initialFailoverVersion: 2 },
  ],
} as const;
export type ClusterName = (typeof clusterGroup.clusters)[number]['name'];

/** What the databases of the store are for, and what they are called and how new their schemas are. */
export const databaseRoles = ['persistence', 'visibility'] as const;
export type DatabaseRole = (typeof databaseRoles)[number];
export const databases: Readonly<Record<DatabaseRole, { name: string; version: string; before: string }>> = {
  persistence: { name: 'svc', version: '0.8', before: '0.7' },
  visibility: { name: 'svc_visibility', version: '0.9', before: '0.8' },
};

/** A kind of call: how many of them a workflow causes, and how long half of them take at most. */
export interface Operation {
  name: string;
  perWorkflow: number;
  medianSeconds: number;
}

const call = (name: string, perWorkflow: number, medianSeconds: number): Operation => ({
  name,
  perWorkflow,
  medianSeconds,
});

/** Persistence operations, with the names the logs have for them. */
export const persistenceOperations = [
  { ...call('PersistenceCreateWorkflowExecution', 1, 0.006), storeOperation: 'create-wf-execution' },
  { ...call('PersistenceUpdateWorkflowExecution', 6, 0.004), storeOperation: 'update-wf-execution' },
  { ...call('PersistenceGetWorkflowExecution', 2, 0.002), storeOperation: 'get-wf-execution' },
  { ...call('PersistenceAppendHistoryEvents', 5, 0.003), storeOperation: undefined },
] as const;
export type PersistenceOperation = (typeof persistenceOperations)[number];

export const frontendOperations = [
  call('StartWorkflowExecution', 1, 0.012),
  call('PollForDecisionTask', 3, 0.04),
  call('PollForActivityTask', 2, 0.04),
  call('RespondDecisionTaskCompleted', 3, 0.009),
];
export const historyOperations = [
  call('StartWorkflowExecution', 1, 0.009),
  call('RecordDecisionTaskStarted', 3, 0.004),
  call('RecordActivityTaskStarted', 2, 0.004),
  call('RespondActivityTaskCompleted', 2, 0.006),
];
export const matchingOperations = [
  call('AddDecisionTask', 3, 0.002),
  call('AddActivityTask', 2, 0.002),
  call('PollForDecisionTask', 3, 0.03),
];

/** Tasks that a workflow puts into its task list. */
export const tasksPerWorkflow = 5;

/** How workflows end, with the metric that counts it. */
export const outcomes = [
  { metric: 'svc_workflow_completed', weight: 0.93 },
  { metric: 'svc_workflow_failed', weight: 0.03 },
  { metric: 'svc_workflow_timeout', weight: 0.01 },
  { metric: 'svc_workflow_canceled', weight: 0.01 },
  { metric: 'svc_workflow_continued_as_new', weight: 0.02 },
];
