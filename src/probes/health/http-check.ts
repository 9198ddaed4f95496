import { type IncomingMessage, request } from 'node:http';
import { excerpt, type Finding, ProbeError } from '../probe.ts';
import {
  answerIn,
  checkOver,
  type Dial,
  faultOf,
  type HealthAnswer,
  type HealthDeps,
  type HealthFault,
  type HealthVerdict,
  type OpenConnection,
} from './health-check.ts';

export interface HttpReply {
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
      throw new ProbeError('too_large', `the response body has more than ${maxBodyBytes} bytes`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

async function replyOf(message: IncomingMessage): Promise<HttpReply> {
  const { statusCode = 0, headers } = message;
  const body = await bodyOf(message);
  return { status: statusCode, contentType: headers['content-type'] ?? '', location: headers.location, body };
}

const isUnreadable = (thrown: unknown): boolean =>
  String((thrown as { code?: unknown } | undefined)?.code).startsWith('HPE_');

/**
 * One GET over an open connection, which is not used again. Phase `first_byte` ends with the first byte of the
 * response, `body` with the last. Throws ProbeError for more than 64 KiB and for a response that is not HTTP; errors of
 * the connection are thrown as they are.
 */
export async function getOver({ socket, trace, credentials }: OpenConnection, url: URL): Promise<HttpReply> {
  trace.enter('first_byte');
  const asked = request({
    createConnection: () => socket,
    path: url.pathname + url.search,
    headers: { host: url.host, accept: 'application/json', 'user-agent': 'svc-agent', ...credentials },
  });
  try {
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      // An error after the start of the response is emitted twice: by the response, and here.
      asked.on('error', reject);
      asked.on('response', resolve);
      // Only after the parser listens: it would miss data that the server sends before the request.
      asked.on('socket', () => socket.once('data', () => trace.enter('body')));
      asked.end();
    });
    return await replyOf(message);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    throw new ProbeError('invalid_answer', `the response is not HTTP: ${(error as Error).message}`, error);
  } finally {
    trace.end();
  }
}

const excerptLength = 80;

const isGood = (status: number): boolean => status >= 200 && status < 300;

/** The fault in a response that does not have the spec's shape. */
function shapeFault({ status, contentType, location, body }: HttpReply): HealthFault {
  if (location !== undefined && status >= 300 && status < 400) {
    return { reason: 'http_status', msg: `status ${status}: redirects are not followed` };
  }
  const shown = `${excerpt(contentType) || 'no content type'}, ${JSON.stringify(excerpt(body, excerptLength))}`;
  return isGood(status)
    ? { reason: 'invalid_answer', msg: `not a JSON object with ok and msg: ${shown}` }
    : { reason: 'http_status', msg: `status ${status}: ${shown}` };
}

/**
 * The fault in a response. The spec does not say which status a failing role answers with: `ok: false` counts with any
 * status, `ok: true` only with 2xx, because load balancers and orchestrators go by the status.
 */
function faultIn(reply: HttpReply, answer: HealthAnswer | undefined): HealthFault | undefined {
  const { status } = reply;
  if (status === 401 || status === 403) {
    return { reason: 'credentials', msg: `status ${status}: the credentials are missing or refused` };
  }
  if (answer === undefined) return shapeFault(reply);
  if (answer.ok && !isGood(status)) {
    return { reason: 'http_status', msg: `status ${status}, although it says ok: ${excerpt(answer.msg)}` };
  }
  return faultOf(answer);
}

export function verdictOf(reply: HttpReply): HealthVerdict {
  const answer = answerIn(reply.body);
  return {
    fault: faultIn(reply, answer),
    msg: excerpt(answer?.msg ?? '') || 'ok',
    details: { protocol: 'http', httpStatus: reply.status },
  };
}

/** Checks a role by the spec's `GET /health`. Redirects are not followed. */
export function checkHttp(
  { dial, url }: { dial: Dial; url: URL },
  deps: HealthDeps,
  signal: AbortSignal,
): Promise<Finding> {
  return checkOver(dial, deps, signal, async (connection) => verdictOf(await getOver(connection, url)));
}
