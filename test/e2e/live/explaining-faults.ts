import { critical, type Fault, warning } from './fault.ts';

/** A fault that explains another one, whose alert is inhibited or ends meanwhile; each has its own alert. */
interface ExplainingFault extends Fault {
  hides: string;
}

/** These faults are provoked one by one while all other faults are there. */
export const explainingFaults: readonly ExplainingFault[] = [
  {
    what: 'the agent of the second history host is killed',
    provoke: ({ agents }) => agents.second.kill(),
    undo: ({ agents }) => agents.second.restart(),
    alerts: [
      warning(
        'SvcAgentDown',
        { cluster: 'dc1', job: 'svc-agent', instance: 'second' },
        /^The agent on .* does not answer its scrape: up is 0\./,
      ),
    ],
    hides: 'SvcInstanceDown',
  },
  {
    what: 'nothing listens where dc2 reaches the frontend of dc1',
    provoke: ({ frontends }) => frontends.dc1.shut(),
    undo: ({ frontends }) => frontends.dc1.open(),
    alerts: [
      critical('SvcClusterUnreachable', { cluster: 'dc2', remote_cluster: 'dc1' }, /svc_cluster_up is 0\./),
    ],
    hides: 'SvcReplicationLagUnknown',
  },
];
