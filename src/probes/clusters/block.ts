import * as z from 'zod';
import { dialAddress, parsedAs } from '../../core/text-formats.ts';

const frontendAddress = dialAddress('10.0.0.5:7833');

/** The options of one entry of `clusterGroupMetadata.clusterGroup` (spec, Cluster group metadata). */
export interface ClusterOptions {
  name: string;
  enabled: boolean;
  initialFailoverVersion: number;
  /** The version to which the service moves the cluster; both versions are valid during the move. */
  newInitialFailoverVersion?: number;
  rpcName?: string;
  /** host:port of the cluster's frontend. */
  rpcAddress?: string;
  rpcTransport?: string;
}

/** The options of `clusterGroupMetadata`, with the group as a list in the file's order. */
export interface ClusterGroupOptions {
  failoverVersionIncrement: number;
  primaryClusterName: string;
  currentClusterName: string;
  clusters: readonly ClusterOptions[];
}

/** The schema of `clusterGroupMetadata` (spec, Cluster group metadata). */
export const clusterGroupBlock = () =>
  z
    .strictObject({
      failoverVersionIncrement: z.int().min(1).describe('Step between two failover versions of a cluster.'),
      primaryClusterName: z.string().min(1).describe('Cluster that registers domains.'),
      currentClusterName: z.string().min(1).describe('Cluster that this agent runs in.'),
      clusterGroup: z
        .record(
          z.string(),
          z.strictObject({
            enabled: z.boolean().default(true).describe('Whether the cluster is part of the group.'),
            initialFailoverVersion: z.int().min(0).describe('First failover version of the cluster.'),
            newInitialFailoverVersion: z
              .int()
              .min(0)
              .optional()
              .describe('Version that the service moves the cluster to; both are valid during the move.'),
            rpcName: z.string().min(1).optional().describe('Name of the service in RPC.'),
            rpcAddress: z
              .string(frontendAddress.fault)
              .transform(parsedAs(frontendAddress))
              .optional()
              .describe('host:port of the cluster’s frontend.'),
            rpcTransport: z.string().min(1).optional().describe('grpc or tchannel.'),
          }),
        )
        .describe('Clusters by name.'),
    })
    .describe('The clusters that replicate to each other.');
