import * as z from 'zod';
import { dialAddress, parsedAs } from '../../core/text-formats.ts';

/** One entry of `clusterGroupMetadata.clusterGroup` (spec, Cluster group metadata). */
export interface ClusterOptions {
  name: string;
  enabled: boolean;
  initialFailoverVersion: number;
  /** The version that the service moves the cluster to; both are valid during the move. */
  newInitialFailoverVersion?: number;
  rpcName?: string;
  /** host:port of the cluster's frontend. */
  rpcAddress?: string;
  rpcTransport?: string;
}

/** `clusterGroupMetadata`, the group as a list in the file's order. */
export interface ClusterGroupOptions {
  failoverVersionIncrement: number;
  primaryClusterName: string;
  currentClusterName: string;
  clusters: readonly ClusterOptions[];
}

/** `clusterGroupMetadata` (spec, Cluster group metadata). */
export const clusterGroupBlock = () =>
  z
    .strictObject({
      failoverVersionIncrement: z.int().min(1),
      primaryClusterName: z.string().min(1),
      currentClusterName: z.string().min(1),
      clusterGroup: z.record(
        z.string(),
        z.strictObject({
          enabled: z.boolean().default(true),
          initialFailoverVersion: z.int().min(0),
          newInitialFailoverVersion: z.int().min(0).optional(),
          rpcName: z.string().min(1).optional(),
          rpcAddress: z.string(dialAddress.fault).transform(parsedAs(dialAddress)).optional(),
          rpcTransport: z.string().min(1).optional(),
        }),
      ),
    })
    .describe('The clusters that replicate to each other.');

type VersionRules = Pick<ClusterGroupOptions, 'failoverVersionIncrement' | 'clusters'>;

const initialVersions = ({ initialFailoverVersion, newInitialFailoverVersion }: ClusterOptions): number[] => [
  initialFailoverVersion,
  ...(newInitialFailoverVersion === undefined ? [] : [newInitialFailoverVersion]),
];

/**
 * The cluster that a failover version belongs to: the one whose initial version, or new initial version, it is modulo
 * the increment. Undefined for a version of no cluster, and for a negative one, which stands for none.
 */
export function clusterOfVersion(
  version: number,
  { failoverVersionIncrement, clusters }: VersionRules,
): ClusterOptions | undefined {
  if (version < 0) return undefined;
  const initial = version % failoverVersionIncrement;
  return clusters.find((cluster) => initialVersions(cluster).includes(initial));
}

/** More failovers than this between two polls is another numbering, not failovers. */
const mostFailovers = 100;

/**
 * The least number of failovers that lead from one failover version to another. A failover to a cluster takes the next
 * version that belongs to it, so that the version rises by less than the increment each time: back to the same cluster
 * takes two. With two clusters the number is exact. 1 for versions that failovers of this group do not produce.
 */
export function failoversBetween(
  from: number,
  to: number,
  { failoverVersionIncrement, clusters }: VersionRules,
): number {
  const initials = new Set(clusters.flatMap(initialVersions));
  const isOfGroup = (version: number) => version >= 0 && initials.has(version % failoverVersionIncrement);
  if (to <= from) return 0;
  if (!isOfGroup(from) || !isOfGroup(to) || to - from > mostFailovers * failoverVersionIncrement) return 1;
  let failovers = 0;
  for (let version = from; version < to; failovers++) {
    // One failover reaches at most the last version of the group before the increment is full.
    const most = Math.min(to, version + failoverVersionIncrement - 1);
    const next = Math.max(...[...initials].map((initial) => lastVersionUpTo(most, initial)));
    if (next <= version) return 1;
    version = next;
  }
  return failovers;

  function lastVersionUpTo(most: number, initial: number): number {
    return (
      most -
      ((((most - initial) % failoverVersionIncrement) + failoverVersionIncrement) % failoverVersionIncrement)
    );
  }
}
