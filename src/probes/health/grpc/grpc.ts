import { formatAddress } from '../../../core/address.ts';
import type { HealthFailureReason } from '../../../core/reasons.ts';
import type { Finding } from '../../probe.ts';
import { excerpt } from '../../probe-error.ts';
import { faultOf, reasonOf } from '../answer.ts';
import { type Dial, type HealthDeps, type Heard, type Line, lookOver } from '../look.ts';
import { type CallReply, createCaller, unimplemented } from './call.ts';
import { type Method, methodsFor, usualRpcService } from './methods.ts';
import { grpcTimeout, unframed } from './wire.ts';

export interface GrpcAsked {
  /** Its `protocols` are set here. */
  dial: Dial;
  /** `package.Service` that is asked about; the server as a whole unless given. */
  service?: string;
  /** Which role is there, for its name inside the product. */
  role: string;
  /** The name inside the product, where that is another than the usual one. */
  rpcService?: string;
  /** Told to the server. */
  timeoutMs: number;
}

/** gRPC's codes that say more than that the call failed. */
const reasons: Readonly<Record<number, HealthFailureReason>> = {
  4: 'too_slow',
  7: 'credentials',
  16: 'credentials',
};

/** Headers of the call: gRPC's own, then those that the product's routing wants, without which it refuses. */
function headersOf({ service = '', role, rpcService, timeoutMs }: GrpcAsked, { credentials }: Line) {
  return {
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-timeout': grpcTimeout(timeoutMs),
    'user-agent': 'svc-agent',
    'rpc-caller': 'svc-agent',
    'rpc-service': rpcService ?? usualRpcService(service, role),
    'rpc-encoding': 'proto',
    'context-ttl-ms': String(Math.ceil(timeoutMs)),
    ...credentials,
  };
}

function verdictOf({ path, id, read }: Method, { status, message, body }: CallReply): Heard {
  const details = { protocol: 'grpc', method: path, grpcStatus: status };
  const remember = { method: id };
  if (status !== 0) {
    const reason = reasons[status] ?? reasonOf(message);
    const msg = `gRPC status ${status}: ${excerpt(message) || 'without a message'}`;
    return { fault: { reason, msg }, msg, details, remember };
  }
  const answer = read(unframed(body));
  return { fault: faultOf(answer), msg: excerpt(answer.msg) || 'ok', details, remember };
}

async function ask(asked: GrpcAsked, line: Line, recalled: unknown): Promise<Heard> {
  const { address, tls } = asked.dial;
  const authority = `${tls === undefined ? 'http' : 'https'}://${formatAddress(address)}`;
  const headers = headersOf(asked, line);
  const caller = createCaller(line.socket, authority, line.trace);
  const missing: string[] = [];
  try {
    const answeredLast = (recalled as { method?: unknown } | null | undefined)?.method;
    for (const method of methodsFor(asked.service ?? '', answeredLast)) {
      const reply = await caller.call(method.path, headers, method.request);
      if (reply.status !== unimplemented) return verdictOf(method, reply);
      missing.push(`${method.path} (${excerpt(reply.message) || 'without a message'})`);
    }
  } finally {
    caller.close();
  }
  const msg = `not implemented there: ${missing.join(', ')}`;
  return { fault: { reason: 'unimplemented', msg }, msg, details: { protocol: 'grpc' } };
}

/**
 * Asks by gRPC how a server is: by the standard method, by the service's own where that is not implemented. Which
 * one answered is remembered, and asked first the next time.
 */
export function grpcHealth(
  asked: GrpcAsked,
  deps: HealthDeps,
  signal: AbortSignal,
  recalled?: unknown,
): Promise<Finding> {
  const dial: Dial = { ...asked.dial, protocols: ['h2'] };
  return lookOver(dial, deps, signal, (line) => ask(asked, line, recalled), recalled);
}
