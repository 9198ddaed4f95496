import { type IncomingMessage, request } from 'node:http';
import { ProbeError } from '../../probe-error.ts';
import type { Line } from '../look.ts';

export interface Reply {
  status: number;
  contentType: string;
  location?: string;
  body: string;
}

const maxBodyBytes = 65_536;

async function bodyOf(message: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of message as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBodyBytes) {
      throw new ProbeError('too_large', `the answer's body has more than ${maxBodyBytes} bytes`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

async function replyOf(message: IncomingMessage): Promise<Reply> {
  const { statusCode = 0, headers } = message;
  const body = await bodyOf(message);
  return { status: statusCode, contentType: headers['content-type'] ?? '', location: headers.location, body };
}

const isUnreadable = (thrown: unknown): boolean =>
  String((thrown as { code?: unknown } | undefined)?.code).startsWith('HPE_');

/**
 * One GET over an open connection, which is not used again. The step `first_byte` ends with the first byte of the
 * answer, `body` with its last. Rejects with `ProbeError` for more than 64 KiB and for what is no HTTP, else with
 * what befell the connection.
 */
export async function getOver({ socket, trace, credentials }: Line, url: URL): Promise<Reply> {
  trace.enter('first_byte');
  const asked = request({
    createConnection: () => socket,
    path: url.pathname + url.search,
    headers: { host: url.host, accept: 'application/json', 'user-agent': 'svc-agent', ...credentials },
  });
  try {
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      // What goes wrong after the answer has begun is told twice: by the answer, and here.
      asked.on('error', reject);
      asked.on('response', resolve);
      // Not before the parser listens: it would miss what a server says unasked.
      asked.on('socket', () => socket.once('data', () => trace.enter('body')));
      asked.end();
    });
    return await replyOf(message);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    throw new ProbeError('invalid_answer', `the answer is no HTTP: ${(error as Error).message}`, error);
  } finally {
    trace.end();
  }
}
