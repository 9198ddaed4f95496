import type { Address } from '../../core/address.ts';
import { grpcHealth } from '../health/grpc/grpc.ts';
import { tcpHealth } from '../health/tcp.ts';
import type { Finding, Probe, ProbeDeps } from '../probe.ts';

export interface PeerOptions {
  name: string;
  address: Address;
  rpcName?: string;
  rpcTransport?: string;
  /** Told to the peer. */
  timeoutMs: number;
}

type PeerDeps = Pick<ProbeDeps, 'clock' | 'readSecret' | 'log'>;
type Look = (peer: PeerOptions, deps: PeerDeps, signal: AbortSignal, recalled: unknown) => Promise<Finding>;

/** How a frontend is asked, by `rpcTransport`; any other is only connected to. */
const transports: Readonly<Record<string, Look>> = { grpc: lookByGrpc };

/** Whether the frontend of another cluster answers. */
export function createPeerProbe(peer: PeerOptions, deps: PeerDeps): Probe {
  const { name, rpcTransport = '' } = peer;
  if (Object.hasOwn(transports, rpcTransport)) {
    const look = transports[rpcTransport]!;
    return { check: (signal, recalled) => look(peer, deps, signal, recalled) };
  }
  const transport = rpcTransport === '' ? 'without rpcTransport' : `with rpcTransport ${rpcTransport}`;
  const warning = `${transport}, a frontend is only connected to, not asked; rpcTransport: grpc asks it`;
  deps.log.write('warn', `cluster ${name}: ${warning}`, { cluster: name, rpcTransport });
  return {
    async check(signal) {
      const finding = await tcpHealth({ address: peer.address }, deps, signal);
      return { ...finding, details: { ...finding.details, warning } };
    },
  };
}

/** gRPC's codes by which a proxy says that it did not reach the frontend: deadline exceeded, unavailable. */
const unreached: ReadonlySet<unknown> = new Set([4, 14]);

/** A frontend that answers by gRPC is reached, whatever it says to the call, unless it says that it is not well. */
async function lookByGrpc(
  { address, rpcName, timeoutMs }: PeerOptions,
  deps: PeerDeps,
  signal: AbortSignal,
  recalled: unknown,
): Promise<Finding> {
  const asked = { dial: { address }, role: 'frontend', rpcService: rpcName, timeoutMs };
  const finding = await grpcHealth(asked, deps, signal, recalled);
  const status = finding.details?.grpcStatus;
  const refused = typeof status === 'number' && status !== 0 && !unreached.has(status);
  if (!refused && finding.reason !== 'unimplemented') return finding;
  return { ...finding, reason: undefined, msg: `reached, but did not say how it is: ${finding.msg}` };
}
