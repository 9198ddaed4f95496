import type { RecoveryProcedure } from '../../core/reasons.ts';
import type { Check, Checks } from './checks.ts';
import { type Commands, type Subject, shellText } from './commands.ts';

/**
 * The spec's recovery procedures as data: each step has its purpose, its preconditions, the commands for this
 * configuration, and the checks after it. Nothing here runs anything.
 */
export interface RecoveryStep {
  id: string;
  title: string;
  text: string;
  /** What must hold before the step. */
  requires?: readonly Check[];
  /** Run one after the other; none for what the operator does by hand. */
  commands?: readonly (readonly string[])[];
  /** What the operator does when there is no command; names the key that would set one. */
  byHand?: string;
  /** What must hold after the step. */
  proves?: readonly Check[];
  /** The step's work is left out when this holds already, as after a run that was killed after its commands. */
  isDone?: Check;
  /** Name that the operator must enter before a step that cannot be undone: a store or a domain. */
  confirm?: string;
}

export interface Situation {
  subject: Subject;
  commands: Commands;
  checks: Checks;
}

export interface Procedure {
  title: string;
  /** Options that must be given. */
  needs: readonly (keyof Subject)[];
  steps(situation: Situation): readonly RecoveryStep[];
}

const oneOf = (command: readonly string[] | undefined) => command && [command];

export const procedures: Readonly<Record<RecoveryProcedure, Procedure>> = {
  'database-corruption': {
    title: 'restore a damaged database from its backup',
    needs: ['store', 'database'],
    steps: databaseCorruption,
  },
  'datacenter-failure': {
    title: 'fail a domain over to another cluster because its active one is lost',
    needs: ['domain', 'to'],
    steps: datacenterFailure,
  },
  failback: {
    title: 'make a recovered cluster active again for a domain',
    needs: ['domain', 'to'],
    steps: failback,
  },
  'cluster-loss': {
    title: 'build a lost cluster again from its backups',
    needs: ['store', 'database'],
    steps: clusterLoss,
  },
};

function stopServices({ commands }: Situation): RecoveryStep {
  return {
    id: 'stop-services',
    title: 'Stop the history service',
    text: 'Nothing may write to the database while it is restored.',
    commands: oneOf(commands.named('stopServices')),
    byHand: 'Scale the history role to zero. Set recovery.commands.stopServices to have it done here.',
  };
}

function startServices({ commands, checks }: Situation): RecoveryStep {
  return {
    id: 'start-services',
    title: 'Start the services',
    text: 'Workers reconnect and resume polling by themselves.',
    commands: oneOf(commands.named('startServices')),
    byHand: 'Scale the history role up again. Set recovery.commands.startServices to have it done here.',
    proves: checks.healthy(),
  };
}

function restoreDatabase({ subject, commands, checks }: Situation): RecoveryStep {
  return {
    id: 'restore',
    title: `Restore ${subject.database} of ${subject.store} from its backup`,
    text: 'What is in the database now is replaced by the backup.',
    requires: [checks.backupVerified(), checks.servicesStopped()],
    commands: commands.named('restore') ? oneOf(commands.named('restore')) : commands.restore(),
    byHand:
      commands.restoreByHand()?.join('\n  ') ??
      `Restore ${subject.backup ?? 'the backup'} with the store’s own tools; svc-agent backup plan prints the commands. --backup FILE restores a dump here.`,
    proves: [checks.storeUp()],
    confirm: subject.store,
  };
}

function verifySchema({ checks }: Situation): RecoveryStep {
  return {
    id: 'verify-schema',
    title: 'Verify the schema version',
    text: 'A backup from before an upgrade has the old schema, which the service refuses or damages.',
    proves: [checks.schema()],
  };
}

function verifyWorkflows({ commands, checks, subject }: Situation): RecoveryStep {
  const listing = commands.client('--domain', subject.domain ?? 'DOMAIN', 'workflow', 'list');
  return {
    id: 'verify-workflows',
    title: 'Verify the workflows',
    text: `Only the service itself can show that it reads what was restored: ${shellText(listing ?? ['<cli>', '--domain', 'DOMAIN', 'workflow', 'list'])}`,
    proves: [checks.workflowsCounted(), checks.workflowsListed(), ...checks.healthy()],
  };
}

function databaseCorruption(situation: Situation): readonly RecoveryStep[] {
  const { checks, subject } = situation;
  return [
    {
      id: 'confirm',
      title: 'Confirm that the database is damaged',
      text: `Workflows that fail to start, persistence errors in the logs and inconsistent state point to it. A restore of ${subject.database} loses what was written since the recovery point.`,
      requires: [checks.backupVerified()],
    },
    stopServices(situation),
    restoreDatabase(situation),
    verifySchema(situation),
    startServices(situation),
    verifyWorkflows(situation),
  ];
}

function updateDomain({ subject, commands, checks }: Situation, requires: readonly Check[]): RecoveryStep {
  const { domain = '', to = '' } = subject;
  return {
    id: 'update-domain',
    title: `Make ${to} the active cluster of ${domain}`,
    text: 'Failover is per domain: other domains stay where they are.',
    requires,
    commands: oneOf(commands.client('--domain', domain, 'domain', 'update', '--active_cluster', to)),
    byHand: `Run: <cli> --domain ${domain} domain update --active_cluster ${to}. Set recovery.client to have it done here.`,
    isDone: checks.activeIn(to),
    proves: [checks.activeIn(to)],
    confirm: domain,
  };
}

function repointTraffic({ commands, subject }: Situation): RecoveryStep {
  return {
    id: 'repoint-traffic',
    title: 'Repoint DNS or the load balancer',
    text: `Clients and workers have to reach ${subject.to}.`,
    commands: oneOf(commands.named('repointTraffic')),
    byHand:
      'Change the DNS record or the load balancer. Set recovery.commands.repointTraffic to have it done here.',
  };
}

function datacenterFailure(situation: Situation): readonly RecoveryStep[] {
  const { checks, subject, commands } = situation;
  return [
    {
      id: 'confirm',
      title: 'Confirm that the active cluster does not answer',
      text: 'A failover while the active cluster is alive splits the domain until replication has caught up.',
      requires: [
        checks.activeClusterDown(),
        ...(commands.named('standbyProbe') ? [checks.standbySeesItDown()] : []),
      ],
      proves: commands.named('standbyProbe') ? [] : [checks.standbySeesItDown()],
    },
    updateDomain(situation, [
      checks.globalDomain(),
      checks.inClusters(subject.to ?? ''),
      checks.clusterReachable(subject.to ?? ''),
    ]),
    repointTraffic(situation),
    {
      id: 'watch-replication',
      title: 'Watch replication',
      text: 'Tasks that the lost cluster had not replicated are missing until it is back.',
      proves: [checks.noDisagreement()],
    },
  ];
}

function failback(situation: Situation): readonly RecoveryStep[] {
  const { checks, subject } = situation;
  const to = subject.to ?? '';
  return [
    {
      id: 'confirm',
      title: `Confirm that ${to} is healthy`,
      text: 'The recovered cluster has to serve the domain again.',
      requires: [checks.globalDomain(), checks.inClusters(to), checks.clusterReachable(to)],
    },
    {
      id: 'caught-up',
      title: 'Wait until replication has caught up',
      text: 'A failback before that loses the progress of workflows that are not replicated yet.',
      requires: [checks.replicationCaughtUp(to), checks.noDisagreement()],
    },
    updateDomain(situation, [checks.replicationCaughtUp(to)]),
    repointTraffic(situation),
  ];
}

function clusterLoss(situation: Situation): readonly RecoveryStep[] {
  const { checks, commands } = situation;
  return [
    {
      id: 'provision',
      title: 'Provision the infrastructure',
      text: 'An empty store of the same kind and version, and the databases’ users.',
      byHand: 'Provision as your cluster’s documentation says.',
      requires: [checks.backupVerified()],
      isDone: checks.serverUp(),
    },
    { ...restoreDatabase(situation), requires: [checks.backupVerified()] },
    verifySchema(situation),
    {
      id: 'deploy',
      title: 'Deploy the services with their restored configuration',
      text: 'Static and dynamic configuration come from the configuration backup. The services need every database: restore each of them first, by this procedure with its --store and --database.',
      requires: checks.otherDatabasesUp(),
      commands: oneOf(commands.named('deploy')),
      byHand:
        'Deploy frontend, history, matching and worker. Set recovery.commands.deploy to have it done here.',
      proves: checks.healthy(),
    },
    verifyWorkflows(situation),
  ];
}
