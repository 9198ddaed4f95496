import type { MapNode } from '../config/tree.ts';
import type { Scope } from '../config/types.ts';
import { discoverCluster } from './cluster.ts';
import { createGraft, type Graft } from './graft.ts';
import { discoverHost } from './host.ts';

export interface DiscoveryRequest {
  /** The service's files as one. */
  service: MapNode;
  agent: MapNode;
  scope: Scope;
  /** Only these of its services are watched. */
  roles: readonly string[];
  localHosts: ReadonlySet<string>;
}

/** What the service's files give within a scope (CONTRACT, Discovery). */
export function discover({ service, agent, scope, roles, localHosts }: DiscoveryRequest): Graft {
  const graft = createGraft(service.place);
  if (scope !== 'cluster') discoverHost(service, roles, localHosts, graft);
  if (scope !== 'host') discoverCluster(service, agent, graft);
  return graft;
}
