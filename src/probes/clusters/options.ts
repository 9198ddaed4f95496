/** One entry of `clusterGroupMetadata.clusterGroup` (spec, Cluster group metadata). */
export interface ClusterOptions {
  name: string;
  enabled: boolean;
  initialFailoverVersion: number;
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
