import { roleOf } from '../../../core/labels.ts';
import type { HealthAnswer } from '../answer.ts';
import { numberAndText, textMessage } from './wire.ts';

/** A way to ask by gRPC how somebody is. */
export interface Method {
  /** What is remembered of it, across versions. */
  id: 'standard' | 'own';
  /** `package.Service/Method`. */
  path: string;
  request: Buffer;
  /** Throws `ProbeError` for what is no answer. */
  read(message: Buffer): HealthAnswer;
}

/** `ServingStatus` of the standard by its numbers. */
const servingStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const serving = 1;

/** github.com/grpc/grpc, doc/health-checking.md; an empty service asks for the server as a whole. */
const standard = (service: string): Method => ({
  id: 'standard',
  path: 'grpc.health.v1.Health/Check',
  request: textMessage(service),
  read(message) {
    const { number } = numberAndText(message);
    return { ok: number === serving, msg: servingStatuses[number] ?? `status ${number}` };
  },
});

const usualService = 'uber.cadence.api.v1.MetaAPI';
const ownService = /(?:^|\.)MetaAPI$/;

/** The service's own: `HealthResponse{ok, message}` (github.com/uber/cadence-idl, service_meta.proto). */
const own = (service: string): Method => ({
  id: 'own',
  path: `${service}/Health`,
  request: Buffer.alloc(0),
  read(message) {
    const { number, text } = numberAndText(message);
    return { ok: number === 1, msg: text };
  },
});

/**
 * The methods to try, in their order, until one is implemented: the one that answered last, else the standard one,
 * then the service's own. A `service` that is named as the service's own is only asked by that.
 */
export function methodsFor(service: string, answeredLast: unknown): readonly Method[] {
  if (ownService.test(service)) return [own(service)];
  const both = [standard(service), own(usualService)];
  return answeredLast === 'own' ? both.reverse() : both;
}

/** The name by which a role is called inside the product, which refuses calls to any other: `cadence-frontend`. */
export function usualRpcService(service: string, role: string): string {
  const product = /(?:^|\.)(\w+)\.api\.v\d+\.MetaAPI$/.exec(service)?.[1] ?? 'cadence';
  return `${product}-${roleOf(role, new Set())}`;
}
