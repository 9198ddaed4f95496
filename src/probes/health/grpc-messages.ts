import { roleOf } from '../../core/labels.ts';
import { fieldsOf } from '../../core/protobuf-fields.ts';
import { ProbeError } from '../probe-error.ts';
import type { HealthAnswer } from './check.ts';

/** Messages of gRPC over HTTP/2, as far as a health check has them (github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md). */

const headBytes = 5;
const lengthType = 2;

/** A message with its length prefix, not compressed. */
export function framed(message: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The single message of a response. Throws ProbeError for anything else. */
export function unframed(body: Buffer): Buffer {
  const fault = (what: string) => new ProbeError('invalid_answer', `the gRPC response ${what}`);
  if (body.length < headBytes) throw fault('holds no message');
  if (body[0] !== 0) throw fault('is compressed, which was not offered');
  if (body.readUInt32BE(1) !== body.length - headBytes) throw fault('is not one complete message');
  return body.subarray(headBytes);
}

/** A message with one text in field 1; empty for an empty text. */
export function textMessage(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length === 0) return bytes;
  const head = [1 * 8 + lengthType];
  let rest = bytes.length;
  for (; rest > 127; rest >>>= 7) head.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...head, rest]), bytes]);
}

/** The number in field 1 and the text in field 2; 0 and '' where they are missing. Throws `ProbeError`. */
export function numberAndText(message: Buffer): { number: number; text: string } {
  let number = 0;
  let text = '';
  try {
    for (const { field, value, bytes } of fieldsOf(message)) {
      if (field === 1) number = value;
      if (field === 2) text = bytes.toString();
    }
  } catch (error) {
    throw new ProbeError('invalid_answer', 'the gRPC response is not a protobuf message', error);
  }
  return { number, text };
}

/** The text of `grpc-message`, which is percent-encoded. Malformed text is returned as it is. */
export function messageOf(header: string): string {
  try {
    return decodeURIComponent(header);
  } catch {
    return header;
  }
}

/** A duration in the format of `grpc-timeout`: at most eight digits and a unit. */
export function grpcTimeout(timeoutMs: number): string {
  return timeoutMs < 1e8 ? `${Math.ceil(timeoutMs)}m` : `${Math.ceil(timeoutMs / 1000)}S`;
}

/** A health method of gRPC. */
export interface Method {
  /** Identifies the method in what is remembered, across versions. */
  id: 'standard' | 'own';
  /** `package.Service/Method`. */
  path: string;
  request: Buffer;
  /** Throws ProbeError for a message that is not a health response. */
  read(message: Buffer): HealthAnswer;
}

/** `ServingStatus` by number. */
const servingStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const serving = 1;

/** github.com/grpc/grpc, doc/health-checking.md; an empty service means the whole server. */
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
 * The methods to try in order until one is implemented: the one that answered last, or the standard one, then the
 * service's own. If `service` names the service's own API, only that is tried.
 */
export function methodsFor(service: string, answeredLast: unknown): readonly Method[] {
  if (ownService.test(service)) return [own(service)];
  const both = [standard(service), own(usualService)];
  return answeredLast === 'own' ? both.reverse() : both;
}

/** The name of a role inside the product, such as `cadence-frontend`; calls to another name are refused. */
export function usualRpcService(service: string, role: string): string {
  const product = /(?:^|\.)(\w+)\.api\.v\d+\.MetaAPI$/.exec(service)?.[1] ?? 'cadence';
  return `${product}-${roleOf(role, new Set())}`;
}
