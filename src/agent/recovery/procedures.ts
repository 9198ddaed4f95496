import type { RecoveryProcedure } from '../../core/reasons.ts';
import type { Check } from './check.ts';
import type { Checks } from './checks.ts';
import { type Commands, type Subject, shellText } from './commands.ts';
import type { Guard } from './guard.ts';
import type { Restore } from './restore.ts';
import { programsThere, type RestoreChecks } from './restore-checks.ts';

/**
 * The spec's recovery procedures as tables of steps. The rest is derived from the tables: what is refused before anything is
 * changed, the journal, the text for a run that ended early, and the plan. Nothing here runs anything.
 */
export interface RecoveryStep {
  id: string;
  title: string;
  text: string;
  /** Conditions that can be checked before the run changes anything, so that the run is not refused in the middle. */
  needs?: readonly Check[];
  /** Conditions that must hold at the moment of the step. */
  requires?: readonly Check[];
  /** A condition that must hold all the time while the step is done. */
  watches?: Check;
  /** Commands that run one after the other; none for a step that the operator does by hand. */
  commands?: readonly (readonly string[])[];
  /** What the operator does if there is no command. It names the key that would set one. */
  byHand?: string;
  /** Conditions that must hold after the step. */
  proves?: readonly Check[];
  /** If this condition holds already, the step's work is left out, for example after a run that was killed after its commands. */
  isDone?: Check;
  /** The name of a store or a domain that the operator must enter before a step that cannot be undone. */
  confirm?: string;
  /** What a run that ends after the start of this step leaves behind, until a step that clears it is done. */
  leaves?: Leaves;
  /** What is missing until this step is done, once the run has changed anything. */
  owes?: Leaves;
  /** Ids of the steps that leave nothing behind any more once this step is done. */
  clears?: readonly string[];
}

export interface Leaves {
  /** What is down or unfinished, as a sentence. */
  what: string;
  /** How to undo it: a command, or what to do by hand. */
  undo: string;
}

export interface Situation {
  subject: Subject;
  commands: Commands;
  checks: Checks;
  guard: Guard;
  restore: Restore;
  restoreChecks: RestoreChecks;
  /** The time that the restore reaches, for people. */
  reaches: string;
  /** Whether the content of the database is copied before it is overwritten. */
  copiesFirst: boolean;
  path: string | undefined;
}

interface Procedure {
  title: string;
  /** Options that are required. */
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
    title: 'rebuild a lost cluster from its backups',
    needs: ['store', 'database'],
    steps: clusterLoss,
  },
};

const programsOf = (id: string, commands: RecoveryStep['commands'], { path }: Situation): readonly Check[] =>
  commands ? [programsThere(id, commands, path)] : [];

const startText = ({ commands }: Situation): string => {
  const start = commands.named('startServices');
  return start ? `$ ${shellText(start)}` : 'start the roles of the service by hand';
};

function stopServices(situation: Situation): RecoveryStep {
  const commands = oneOf(situation.commands.named('stopServices'));
  return {
    id: 'stop-services',
    title: 'Stop the services',
    text: 'Nothing may write to the database while it is restored: the history role and every other role with a session in it.',
    needs: [...situation.guard.canBeShown(), ...programsOf('stop', commands, situation)],
    commands,
    byHand: 'Scale the roles to zero. Set recovery.commands.stopServices to let svc-agent do it.',
    leaves: { what: 'The services are stopped.', undo: `To start them: ${startText(situation)}` },
  };
}

function startServices(situation: Situation): RecoveryStep {
  const { commands: named, checks } = situation;
  const commands = oneOf(named.named('startServices'));
  return {
    id: 'start-services',
    title: 'Start the services',
    text: 'Workers reconnect and resume polling by themselves.',
    needs: programsOf('start', commands, situation),
    commands,
    byHand: 'Scale the roles up again. Set recovery.commands.startServices to let svc-agent do it.',
    proves: checks.healthy(),
    leaves: {
      what: 'The services may be down: nothing has shown yet that they started.',
      undo: `To start them: ${startText(situation)}`,
    },
    clears: ['stop-services', 'start-services'],
  };
}

/**
 * The step that makes a safety copy. It is left out if the restore itself preserves what was there, and with `--no-safety-copy`.
 */
function safetyCopy(situation: Situation): readonly RecoveryStep[] {
  const { subject, commands: named, restore, restoreChecks, guard, copiesFirst } = situation;
  if (!copiesFirst || restore.byHand) return [];
  const own = named.named('safetyCopy');
  const commands = own ? [own] : restore.safetyCopy?.commands;
  return [
    {
      id: 'safety-copy',
      title: `Copy the current content of ${subject.database} of ${subject.store}`,
      text: `The restore overwrites it. The copy is ${own ? 'made by recovery.commands.safetyCopy' : (restore.safetyCopy?.name ?? 'made by hand')}; remove it once the restore is proved. --no-safety-copy leaves this step out.`,
      needs: own ? programsOf('safety_copy', [own], situation) : restoreChecks.copyNeeds(),
      requires: guard.isDown(),
      commands,
      byHand:
        'Copy the files or the tables of the database. Set recovery.commands.safetyCopy to let svc-agent do it.',
      isDone: restoreChecks.nothingToCopy(),
    },
  ];
}

function restoreDatabase(situation: Situation): RecoveryStep {
  const { subject, commands: named, checks, guard, restore, restoreChecks, reaches } = situation;
  const own = oneOf(named.named('restore'));
  const commands = own ?? restore.commands;
  return {
    id: 'restore',
    title: `Restore ${subject.database} of ${subject.store} from its backup`,
    text: reaches,
    needs: [
      checks.backupVerified(),
      ...restoreChecks.reaches(),
      ...(own ? programsOf('restore', own, situation) : restoreChecks.needs()),
    ],
    requires: guard.isDown(),
    watches: guard.staysDown(),
    commands,
    byHand:
      restore.byHand?.join('\n  ') ??
      `Restore ${subject.backup ?? 'the backup'} with the store’s own tools; svc-agent backup plan prints the commands. --backup FILE restores a dump here.`,
    proves: [checks.storeUp()],
    confirm: subject.store,
    leaves: {
      what: `${subject.database} of ${subject.store} may be restored in part.`,
      undo: 'Run the same command again before the services start: it resumes.',
    },
  };
}

function verifyData({ checks, guard }: Situation): RecoveryStep {
  return {
    id: 'verify-data',
    title: 'Verify what was restored, before the services start',
    text: 'A backup from before an upgrade has the old schema, which the service refuses or damages.',
    requires: guard.isDown(),
    proves: [checks.schema(), checks.workflowsCounted(), checks.newestRow()],
    clears: ['restore'],
  };
}

function verifyWorkflows({ commands, checks, subject }: Situation): RecoveryStep {
  const listing = commands.client('--domain', subject.domain ?? 'DOMAIN', 'workflow', 'list');
  return {
    id: 'verify-workflows',
    title: 'Verify the workflows',
    text: `Only the service itself can show that it can read the restored data: ${shellText(listing ?? ['<cli>', '--domain', 'DOMAIN', 'workflow', 'list'])}`,
    proves: [...checks.healthy(), checks.pollersBack(), checks.workflowsListed()],
  };
}

function databaseCorruption(situation: Situation): readonly RecoveryStep[] {
  const { subject } = situation;
  return [
    {
      id: 'confirm',
      title: 'Confirm that the database is damaged',
      text: `Workflows that fail to start, persistence errors in the logs and inconsistent workflow state are signs of corruption. A restore of ${subject.database} loses what was written since the recovery point.`,
    },
    stopServices(situation),
    ...safetyCopy(situation),
    restoreDatabase(situation),
    verifyData(situation),
    startServices(situation),
    verifyWorkflows(situation),
  ];
}

function updateDomain(
  { subject, commands, checks }: Situation,
  conditions: Pick<RecoveryStep, 'needs' | 'requires'>,
): RecoveryStep {
  const { domain = '', to = '' } = subject;
  return {
    id: 'update-domain',
    title: `Make ${to} the active cluster of ${domain}`,
    text: 'Failover is per domain: other domains stay where they are.',
    ...conditions,
    commands: oneOf(commands.client('--domain', domain, 'domain', 'update', '--active_cluster', to)),
    byHand: `Run: <cli> --domain ${domain} domain update --active_cluster ${to}. Set recovery.client to let svc-agent do it.`,
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
      'Change the DNS record or the load balancer. Set recovery.commands.repointTraffic to let svc-agent do it.',
    owes: {
      what: `Clients and workers are not repointed to ${subject.to}.`,
      undo: 'Run the same command again: it resumes.',
    },
  };
}

function datacenterFailure(situation: Situation): readonly RecoveryStep[] {
  const { checks, subject, commands } = situation;
  return [
    {
      id: 'confirm',
      title: 'Confirm that the active cluster does not answer',
      text: 'A failover while the active cluster is alive splits the domain until replication has caught up.',
      needs: [
        checks.activeClusterDown(),
        ...(commands.named('standbyProbe') ? [checks.standbySeesItDown()] : []),
      ],
      proves: commands.named('standbyProbe') ? [] : [checks.standbySeesItDown()],
    },
    updateDomain(situation, {
      needs: [
        checks.globalDomain(),
        checks.inClusters(subject.to ?? ''),
        checks.clusterReachable(subject.to ?? ''),
      ],
    }),
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
      needs: [checks.globalDomain(), checks.inClusters(to), checks.clusterReachable(to)],
    },
    {
      id: 'caught-up',
      title: 'Wait until replication has caught up',
      text: 'A failback before that loses the progress of workflows that are not replicated yet.',
      requires: [checks.replicationCaughtUp(to), checks.noDisagreement()],
    },
    updateDomain(situation, { requires: [checks.replicationCaughtUp(to)] }),
    repointTraffic(situation),
  ];
}

function clusterLoss(situation: Situation): readonly RecoveryStep[] {
  const { checks, commands, guard } = situation;
  const deploy = oneOf(commands.named('deploy'));
  return [
    {
      id: 'provision',
      title: 'Provision the infrastructure',
      text: 'The restore needs an empty store of the same kind and version, and the users of the databases.',
      byHand: 'Provision them as the documentation of your cluster describes.',
      needs: guard.canBeShown(),
      isDone: checks.serverUp(),
    },
    ...safetyCopy(situation),
    restoreDatabase(situation),
    verifyData(situation),
    {
      id: 'deploy',
      title: 'Deploy the services with their restored configuration',
      text: 'Static and dynamic configuration come from the configuration backup. The services need every database: restore each of them first, by this procedure with its --store and --database.',
      needs: programsOf('deploy', deploy, situation),
      requires: checks.otherDatabasesUp(),
      commands: deploy,
      byHand:
        'Deploy frontend, history, matching and worker. Set recovery.commands.deploy to let svc-agent do it.',
      proves: checks.healthy(),
      owes: {
        what: 'The services are not deployed.',
        undo: 'Run the same command again: it resumes, and deploys them.',
      },
    },
    verifyWorkflows(situation),
  ];
}
