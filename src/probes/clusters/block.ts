import * as z from 'zod';
import { dialAddress, parsedAs } from '../../core/text-formats.ts';

const cluster = z.strictObject({
  enabled: z.boolean().default(true),
  initialFailoverVersion: z.int().min(0),
  rpcName: z.string().min(1).optional(),
  rpcAddress: z.string(dialAddress.fault).transform(parsedAs(dialAddress)).optional(),
  rpcTransport: z.string().min(1).optional(),
});

/** `clusterGroupMetadata` (spec, Cluster group metadata). */
export const clusterGroupBlock = () =>
  z
    .strictObject({
      failoverVersionIncrement: z.int().min(1),
      primaryClusterName: z.string().min(1),
      currentClusterName: z.string().min(1),
      clusterGroup: z.record(z.string(), cluster),
    })
    .describe('The clusters that replicate to each other.');
