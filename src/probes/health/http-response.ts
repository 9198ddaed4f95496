import type { Socket } from 'node:net';
import { excerpt, ProbeError } from '../probe.ts';

/**
 * Reads the one response of a health check (RFC 9112) from a socket. Node's HTTP client is not used: with its objects for a request,
 * a response and their streams, a check takes a sixth more CPU time (`npm run bench -- health`).
 */

/** A whole response, as far as a health check reads it. */
export interface HttpReply {
  status: number;
  contentType: string;
  location?: string;
  body: string;
}

const maxHeadBytes = 16_384;
const maxBodyBytes = 65_536;

const unreadable = (what: string) => new ProbeError('invalid_answer', `the response is not HTTP: ${what}`);
const quoted = (text: string) => JSON.stringify(excerpt(text, 40));

interface Head {
  status: number;
  /** The values by name in lower case. If a header was sent twice, the first value counts. */
  headers: ReadonlyMap<string, string>;
}

const statusLine = /^HTTP\/\d\.\d ([1-9]\d\d)(?: [^\r]*)?$/;
const headerLine = /^([\w!#$%&'*+.^`|~-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;

/** Parses a head without the empty line at its end. Throws ProbeError. */
function headOf(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n');
  const status = statusLine.exec(first)?.[1];
  if (status === undefined) throw unreadable(`it begins with ${quoted(first)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = headerLine.exec(line) ?? [];
    if (name === undefined) throw unreadable(`it has the header ${quoted(line)}`);
    const key = name.toLowerCase();
    if (key === 'content-length' && headers.has(key)) throw unreadable('it states its length twice');
    if (!headers.has(key)) headers.set(key, value!);
  }
  return { status: Number(status), headers };
}

/** What every head begins with. */
const protocolName = 'HTTP/';
const bareLineFeed = /(?:^|[^\r])\n/;

/** Throws ProbeError if this cannot begin a head, so that another protocol is recognized without waiting for more. */
function checkBeginning(text: string): void {
  if (!text.startsWith(protocolName.slice(0, text.length)) || bareLineFeed.test(text))
    throw unreadable(`it begins with ${quoted(text.slice(0, 80))}`);
  if (text.length > maxHeadBytes) throw unreadable(`its head has more than ${maxHeadBytes} bytes`);
}

/** Takes the bytes after a head, and returns whether the body is complete. Throws ProbeError. */
type TakeBody = (bytes: Buffer) => boolean;

const [lineFeed, carriageReturn] = [10, 13];

/** Takes a body in chunks, and passes their content to `add`. */
function takeChunks(add: (bytes: Buffer) => void): TakeBody {
  let state: 'size' | 'data' | 'end of data' | 'trailer' = 'size';
  let rest: Buffer = Buffer.alloc(0);
  let dataBytes = 0;

  /** Takes a line outside the data; returns whether it is the last one. */
  const takeLine = (line: string): boolean => {
    if (state === 'trailer') return line === '';
    if (state === 'end of data') {
      if (line !== '') throw unreadable('a chunk is longer than its size');
      state = 'size';
      return false;
    }
    const size = /^0*([\da-f]{1,8})[ \t]*(?:;|$)/i.exec(line)?.[1];
    if (size === undefined) throw unreadable(`${quoted(line)} is not the size of a chunk`);
    dataBytes = Number.parseInt(size, 16);
    state = dataBytes > 0 ? 'data' : 'trailer';
    return false;
  };
  return (bytes) => {
    rest = rest.length > 0 ? Buffer.concat([rest, bytes]) : bytes;
    for (;;) {
      if (state === 'data') {
        const data = rest.subarray(0, dataBytes);
        add(data);
        dataBytes -= data.length;
        rest = rest.subarray(data.length);
        if (dataBytes > 0) return false;
        state = 'end of data';
      }
      const end = rest.indexOf(lineFeed);
      if (end < 0 && rest.length > maxHeadBytes) throw unreadable('a line of its chunks has no end');
      if (end < 0) return false;
      if (rest[end - 1] !== carriageReturn) throw unreadable('a line of its chunks ends without CR');
      const line = rest.toString('latin1', 0, end - 1);
      rest = rest.subarray(end + 1);
      if (takeLine(line)) return true;
    }
  };
}

/** How to take the body after a head; `ends`: whether it ends with the connection. Throws ProbeError. */
function bodyAfter(
  { status, headers }: Head,
  add: (bytes: Buffer) => void,
): { take: TakeBody; ends: boolean } {
  if (status === 101 || status === 204 || status === 304) return { take: () => true, ends: false };
  const length = headers.get('content-length');
  const encoding = headers.get('transfer-encoding');
  if (encoding !== undefined) {
    if (length !== undefined) throw unreadable('it states its length and a transfer encoding');
    if (/(?:^|[ \t,])chunked$/i.test(encoding)) return { take: takeChunks(add), ends: false };
  }
  if (length === undefined) {
    const take = (bytes: Buffer) => {
      add(bytes);
      return false;
    };
    return { take, ends: true };
  }
  if (!/^\d{1,15}$/.test(length)) throw unreadable(`its length is ${quoted(length)}`);
  let left = Number(length);
  const take = (bytes: Buffer) => {
    const data = bytes.subarray(0, left);
    add(data);
    left -= data.length;
    return left === 0;
  };
  return { take, ends: false };
}

/** Reads a response from its bytes as they come. Both functions throw ProbeError. */
export function createResponseReader() {
  let start: Buffer | undefined;
  let head: Head | undefined;
  let body: ReturnType<typeof bodyAfter> | undefined;
  const pieces: Buffer[] = [];
  let bodyBytes = 0;

  const add = (bytes: Buffer) => {
    bodyBytes += bytes.length;
    if (bodyBytes > maxBodyBytes)
      throw new ProbeError('too_large', `the response body has more than ${maxBodyBytes} bytes`);
    pieces.push(bytes);
  };
  const reply = ({ status, headers }: Head): HttpReply => ({
    status,
    contentType: headers.get('content-type') ?? '',
    location: headers.get('location'),
    body: Buffer.concat(pieces).toString(),
  });
  /** Takes the head, and returns the bytes after it; undefined if it is not complete. */
  const takeHead = (bytes: Buffer): Buffer | undefined => {
    let rest = start ? Buffer.concat([start, bytes]) : bytes;
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      const text = rest.toString('latin1', 0, end < 0 ? rest.length : end);
      checkBeginning(text);
      start = rest;
      if (end < 0) return undefined;
      const found = headOf(text);
      rest = rest.subarray(end + 4);
      const isInterim = found.status < 200 && found.status !== 101;
      if (!isInterim) {
        head = found;
        body = bodyAfter(found, add);
        return rest;
      }
    }
  };
  return {
    /** Takes the next bytes; returns the response when it is complete. */
    take(bytes: Buffer): HttpReply | undefined {
      const rest = head ? bytes : takeHead(bytes);
      return head && rest && body!.take(rest) ? reply(head) : undefined;
    },
    /** The response if the end of the connection completes it. */
    end(): HttpReply {
      if (head && body!.ends) return reply(head);
      const part = head ? 'within its response' : 'without a response';
      throw new ProbeError('reset', `the connection was closed ${part}`);
    },
  };
}

/**
 * Sends a request and reads the response; the caller then destroys the socket. `begins` is called at the first byte. Throws
 * ProbeError, and errors of the socket as they are.
 */
export function responseOver(socket: Socket, request: string, begins: () => void): Promise<HttpReply> {
  const reader = createResponseReader();
  return new Promise((resolve, reject) => {
    const settle = (read: () => HttpReply | undefined) => {
      try {
        const reply = read();
        if (reply) resolve(reply);
      } catch (thrown) {
        reject(thrown);
      }
    };
    socket.once('data', begins);
    socket.on('data', (bytes: Buffer) => settle(() => reader.take(bytes)));
    socket.once('end', () => settle(reader.end));
    socket.once('error', reject);
    // A socket that was destroyed before has no further event.
    if (socket.destroyed) reject(socket.errored ?? new ProbeError('reset', 'the connection was closed'));
    else socket.write(request, 'latin1');
  });
}
