import { agentFaults } from './agent-faults.ts';
import { backupFaults } from './backup-faults.ts';
import { clusterFaults } from './cluster-faults.ts';
import type { Fault } from './fault.ts';
import { roleFaults } from './role-faults.ts';
import { storeFaults } from './store-faults.ts';

/** All faults that can exist at the same time. */
export const faults: readonly Fault[] = [
  ...roleFaults,
  ...storeFaults,
  ...backupFaults,
  ...clusterFaults,
  ...agentFaults,
];
