import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { Socket } from 'node:net';
import { formatAddress } from '../../core/address.ts';
import { errorText, systemCode } from '../../core/errors.ts';
import { fieldsOf } from '../../core/protobuf.ts';
import type { HealthFailureReason } from '../../core/reasons.ts';
import { roleOf } from '../../core/registry/labels.ts';
import type { Trace } from '../connection.ts';
import { excerpt, type Finding, ProbeError } from '../probe.ts';
import {
  checkOver,
  type Dial,
  faultOf,
  type HealthAnswer,
  type HealthDeps,
  type HealthVerdict,
  type OpenConnection,
  reasonOf,
  refusalText,
} from './health-check.ts';

/**
 * Encodes and decodes messages of gRPC over HTTP/2, as far as a health check needs them (github.com/grpc/grpc,
 * doc/PROTOCOL-HTTP2.md).
 */

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

/** The number in field 1 and the text in field 2; 0 and '' if they are missing. Throws `ProbeError`. */
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
interface Method {
  /** Identifies the method in what a probe remembers, across versions. */
  id: 'standard' | 'own';
  /** The path, `package.Service/Method`. */
  path: string;
  request: Buffer;
  /** Reads a response. Throws ProbeError for a message that is not a health response. */
  read(message: Buffer): HealthAnswer;
}

/** The values of `ServingStatus` by number. */
const servingStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];
const serving = 1;

/** The standard health method (github.com/grpc/grpc, doc/health-checking.md); an empty service means the whole server. */
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

/** The service's own method: `HealthResponse{ok, message}` (github.com/uber/cadence-idl, service_meta.proto). */
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
 * The methods to try in order until one is implemented: the one that answered last time, or the standard method and then the
 * service's own. If `service` names the service's own API, only the service's own method is tried.
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

interface CallReply {
  /** The status code of gRPC. */
  status: number;
  message: string;
  /** The response message with its length prefix; empty for most failed calls. */
  body: Buffer;
}

const unimplemented = 12;
const maxBodyBytes = 65_536;

/** The whole response of a call. */
interface Answer {
  head: IncomingHttpHeaders;
  body: Buffer;
  trailers: IncomingHttpHeaders;
}

/**
 * Errors of HTTP/2 itself as ProbeError; errors of the connection are returned unchanged. `isHttp2`: the server sent its
 * settings.
 */
function http2Failure(thrown: unknown, isHttp2: boolean): unknown {
  const code = systemCode(thrown) ?? '';
  if (!code.startsWith('ERR_HTTP2_')) return thrown;
  if (code === 'ERR_HTTP2_ERROR' && !isHttp2) {
    const what =
      'the server does not speak HTTP/2, which gRPC needs; for a health check over HTTP/1 use http://';
    return new ProbeError('invalid_answer', what, thrown);
  }
  const reason = code === 'ERR_HTTP2_ERROR' ? 'invalid_answer' : 'reset';
  return new ProbeError(reason, `HTTP/2: ${errorText(thrown)}`, thrown);
}

function answerOf(
  session: ClientHttp2Session,
  stream: ClientHttp2Stream,
  trace: Trace,
  isHttp2: () => boolean,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let head: IncomingHttpHeaders | undefined;
    let trailers: IncomingHttpHeaders = {};
    const pieces: Buffer[] = [];
    let bytes = 0;
    const fail = (thrown: unknown): void => reject(http2Failure(thrown, isHttp2()));
    session.on('error', fail);
    stream.on('error', fail);
    stream.on('response', (headers) => {
      head = headers;
      trace.enter('body');
    });
    stream.on('trailers', (headers) => {
      trailers = headers;
    });
    stream.on('data', (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > maxBodyBytes) {
        fail(new ProbeError('too_large', `the response has more than ${maxBodyBytes} bytes`));
        stream.destroy();
      } else pieces.push(piece);
    });
    stream.on('close', () => {
      if (head !== undefined) resolve({ head, body: Buffer.concat(pieces), trailers });
      else fail(new ProbeError('reset', 'the call ended without a response'));
    });
  });
}

/** The gRPC status of a call that ended with only an HTTP status, mapped in the same way as gRPC does. */
function httpOutcome({ head }: Answer, isSent: boolean): CallReply {
  const status = Number(head[':status']);
  if (status === 404) return { status: unimplemented, message: 'HTTP status 404', body: Buffer.alloc(0) };
  if (status === 401 || status === 403) {
    throw new ProbeError('credentials', `HTTP ${refusalText(status, isSent)}`);
  }
  if (status !== 200) throw new ProbeError('http_status', `HTTP status ${status} without a gRPC status`);
  const type = JSON.stringify(excerpt(head['content-type'] ?? ''));
  throw new ProbeError('invalid_answer', `the response has no gRPC status; its content type is ${type}`);
}

function replyOf(answer: Answer, resetCode: number, isSent: boolean): CallReply {
  const { head, body, trailers } = answer;
  // A call that fails at once has only headers, which contain the status.
  const [status, message] = ['grpc-status', 'grpc-message'].map((name) => trailers[name] ?? head[name]);
  if (status !== undefined) {
    return { status: Number(status), message: messageOf(String(message ?? '')), body };
  }
  if (resetCode !== 0) throw new ProbeError('reset', 'the call was reset during its response');
  return httpOutcome(answer, isSent);
}

/** A client over an open connection. */
function createCaller(socket: Socket, authority: string, trace: Trace) {
  const session = connect(authority, { createConnection: () => socket, settings: { enablePush: false } });
  let isHttp2 = false;
  session.once('remoteSettings', () => {
    isHttp2 = true;
  });
  return {
    /** A unary call. Throws ProbeError; errors of the connection are thrown as they are. */
    async call(path: string, headers: OutgoingHttpHeaders, message: Buffer): Promise<CallReply> {
      trace.enter('first_byte');
      const stream = session.request({ ':method': 'POST', ':path': `/${path}`, ...headers });
      try {
        const answering = answerOf(session, stream, trace, () => isHttp2);
        stream.end(framed(message));
        return replyOf(await answering, stream.rstCode, 'authorization' in headers);
      } finally {
        trace.end();
      }
    },
    close: () => session.destroy(),
  };
}

interface GrpcTarget {
  /** Where to connect; `protocols` is set here. */
  dial: Dial;
  /** `package.Service` to check. Default: the server as a whole. */
  service?: string;
  /** The role, from which its name inside the product is derived. */
  role: string;
  /** The name inside the product, if it is not the usual one. */
  rpcService?: string;
  /** The timeout, which is sent to the server as its deadline. */
  timeoutMs: number;
}

/** Reasons by gRPC status code; for other codes the message decides. */
const reasons: Readonly<Record<number, HealthFailureReason>> = {
  4: 'too_slow',
  7: 'credentials',
  16: 'credentials',
};

/** The headers of the call: those of gRPC, and those that the product's routing requires. */
function headersOf(
  { service = '', role, rpcService, timeoutMs }: GrpcTarget,
  { credentials }: OpenConnection,
) {
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

function verdictOf({ path, id, read }: Method, { status, message, body }: CallReply): HealthVerdict {
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

async function ask(
  target: GrpcTarget,
  connection: OpenConnection,
  recalled: unknown,
): Promise<HealthVerdict> {
  const { address, tls } = target.dial;
  const authority = `${tls === undefined ? 'http' : 'https'}://${formatAddress(address)}`;
  const headers = headersOf(target, connection);
  const caller = createCaller(connection.socket, authority, connection.trace);
  const missing: string[] = [];
  try {
    const answeredLast = (recalled as { method?: unknown } | null | undefined)?.method;
    for (const method of methodsFor(target.service ?? '', answeredLast)) {
      const reply = await caller.call(method.path, headers, method.request);
      if (reply.status !== unimplemented) return verdictOf(method, reply);
      missing.push(`${method.path} (${excerpt(reply.message) || 'without a message'})`);
    }
  } finally {
    caller.close();
  }
  const msg = `not implemented: ${missing.join(', ')}`;
  return { fault: { reason: 'unimplemented', msg }, msg, details: { protocol: 'grpc' } };
}

/**
 * Checks a server by gRPC: the standard health method, or the service's own method if the server does not implement the standard
 * one. The method that answered is remembered and tried first the next time.
 */
export function checkGrpc(
  target: GrpcTarget,
  deps: HealthDeps,
  signal: AbortSignal,
  recalled?: unknown,
): Promise<Finding> {
  const dial: Dial = { ...target.dial, protocols: ['h2'] };
  return checkOver(dial, deps, signal, (connection) => ask(target, connection, recalled), recalled);
}
