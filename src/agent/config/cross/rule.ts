import type { PlacedFault } from '../loaded.ts';
import type { MapNode } from '../tree.ts';

/** What a rule over the whole configuration may look at. */
export interface Whole {
  /** `agent.yaml` with what was discovered under it; half-wrong parts included. */
  tree: MapNode;
  /** The services that are watched. */
  roles: readonly string[];
  /** Addresses of the machine, for what a wildcard covers. */
  localHosts: ReadonlySet<string>;
  /** Addresses at which watched roles listen by the service's own files, with their place for the message. */
  serviceListeners: readonly { role: string; address: string }[];
}

/** Finds faults between parts that are each right; passes over parts that are wrong by themselves. */
export type Rule = (whole: Whole) => PlacedFault[];
