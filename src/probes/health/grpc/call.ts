import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { Socket } from 'node:net';
import { errorText, systemCode } from '../../../core/errors.ts';
import type { Trace } from '../../connection/connect.ts';
import { excerpt, ProbeError } from '../../probe-error.ts';
import { framed, messageOf } from './wire.ts';

/** What a call ended with. */
export interface CallReply {
  /** gRPC's status code. */
  status: number;
  message: string;
  /** The answer's message with its head; empty for most of what failed. */
  body: Buffer;
}

export const unimplemented = 12;
const maxBodyBytes = 65_536;

/** All of a call's answer. */
interface Answer {
  head: IncomingHttpHeaders;
  body: Buffer;
  trailers: IncomingHttpHeaders;
}

/** HTTP/2's own errors by code; what befell the connection is left as it is. */
function http2Failure(thrown: unknown): unknown {
  const code = systemCode(thrown) ?? '';
  if (!code.startsWith('ERR_HTTP2_')) return thrown;
  const reason = code === 'ERR_HTTP2_ERROR' ? 'invalid_answer' : 'reset';
  return new ProbeError(reason, `HTTP/2: ${errorText(thrown)}`, thrown);
}

function answerOf(session: ClientHttp2Session, stream: ClientHttp2Stream, trace: Trace): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let head: IncomingHttpHeaders | undefined;
    let trailers: IncomingHttpHeaders = {};
    const pieces: Buffer[] = [];
    let bytes = 0;
    const fail = (thrown: unknown): void => reject(http2Failure(thrown));
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
        fail(new ProbeError('too_large', `the answer has more than ${maxBodyBytes} bytes`));
        stream.destroy();
      } else pieces.push(piece);
    });
    stream.on('close', () => {
      if (head !== undefined) resolve({ head, body: Buffer.concat(pieces), trailers });
      else fail(new ProbeError('reset', 'the call was ended without an answer'));
    });
  });
}

/** The status of a call that ended on the level of HTTP, as gRPC translates it. */
function httpOutcome({ head }: Answer): CallReply {
  const status = Number(head[':status']);
  if (status === 404) return { status: unimplemented, message: 'HTTP status 404', body: Buffer.alloc(0) };
  if (status === 401 || status === 403) {
    throw new ProbeError('credentials', `HTTP status ${status}: the credentials are missing or refused`);
  }
  if (status !== 200) throw new ProbeError('http_status', `HTTP status ${status} without a gRPC status`);
  const type = JSON.stringify(excerpt(head['content-type'] ?? ''));
  throw new ProbeError('invalid_answer', `the answer has no gRPC status; its content type is ${type}`);
}

function replyOf(answer: Answer, resetCode: number): CallReply {
  const { head, body, trailers } = answer;
  // A call that fails at once has its status in the only headers there are.
  const [status, message] = ['grpc-status', 'grpc-message'].map((name) => trailers[name] ?? head[name]);
  if (status !== undefined) {
    return { status: Number(status), message: messageOf(String(message ?? '')), body };
  }
  if (resetCode !== 0) throw new ProbeError('reset', 'the call was broken off within its answer');
  return httpOutcome(answer);
}

/** A client over an open connection; it ends with the connection. */
export function createCaller(socket: Socket, authority: string, trace: Trace) {
  const session = connect(authority, { createConnection: () => socket, settings: { enablePush: false } });
  return {
    /** One message there, one back. Rejects with `ProbeError`, else with what befell the connection. */
    async call(path: string, headers: OutgoingHttpHeaders, message: Buffer): Promise<CallReply> {
      trace.enter('first_byte');
      const stream = session.request({ ':method': 'POST', ':path': `/${path}`, ...headers });
      try {
        const answering = answerOf(session, stream, trace);
        stream.end(framed(message));
        return replyOf(await answering, stream.rstCode);
      } finally {
        trace.end();
      }
    },
    close: () => session.destroy(),
  };
}
