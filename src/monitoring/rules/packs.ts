import type { Alert, Pack, PackName } from './alert.ts';
import { agent } from './alerts/agent.ts';
import { archival } from './alerts/archival.ts';
import { availability } from './alerts/availability.ts';
import { backups } from './alerts/backups.ts';
import { persistence } from './alerts/persistence.ts';
import { processes } from './alerts/process.ts';
import { replication } from './alerts/replication.ts';
import { requests } from './alerts/requests.ts';
import { specAlerts } from './alerts/spec.ts';
import { stores } from './alerts/stores.ts';
import { tasks } from './alerts/tasks.ts';
import { recordings } from './recordings.ts';
import { slos } from './slo.ts';

const recommended = [
  ...[availability, processes, persistence, tasks, requests],
  ...[backups, stores, replication, archival, agent],
];

const byName: Readonly<Record<PackName, Pack>> = {
  spec: { name: 'spec', groups: specAlerts },
  recommended: { name: 'recommended', groups: recommended },
  recording: { name: 'recording', groups: recordings },
  slo: { name: 'slo', groups: slos },
};

/** Everything that is shipped (CONTRACT, Rules and dashboards). Load `spec` or `recommended`, not both. */
export const packs: readonly Pack[] = Object.values(byName);

export function pack(name: PackName): Pack {
  return byName[name];
}

export function alertsOf(of: Pack): readonly Alert[] {
  return of.groups.flatMap(({ alerts = [] }) => alerts);
}
