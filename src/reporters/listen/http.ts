import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock, Drops, Log } from '../../core/ports.ts';
import type { Authenticator } from './auth.ts';

/** A request: its parsed URL, and the message with headers and body. */
export interface Request {
  /** The parsed URL; its host is a placeholder. */
  readonly url: URL;
  readonly message: IncomingMessage;
}

export interface Route {
  /** The allowed methods; GET and HEAD by default. GET implies HEAD. */
  methods?: readonly string[];
  /**
   * Who may use the route. `open`: it needs no credentials, even if the listener has `auth`. `credentials`: it always needs them,
   * so it is forbidden if the listener has no `auth`. Default: as the listener is configured.
   */
  access?: 'open' | 'credentials';
  /** Handles a request. Errors are logged; the client gets status 500 without details. */
  handle(request: Request, reply: Reply): void | Promise<void>;
}

/** Routes by exact path; a path that ends with `/*` matches all paths below it. */
export type Routes = Readonly<Record<string, Route>>;

function find(routes: Routes, path: string): Route | undefined {
  if (Object.hasOwn(routes, path)) return routes[path];
  const above = Object.keys(routes).filter((key) => key.endsWith('/*') && path.startsWith(key.slice(0, -1)));
  return routes[above.reduce((longest, key) => (key.length > longest.length ? key : longest), '')];
}

/** The URL of a request; undefined for a request target that is not a path, such as `*`. */
function urlOf({ url = '' }: IncomingMessage): URL | undefined {
  const base = 'http://listener';
  // A target that begins with two slashes would be parsed as a host.
  const target = url.startsWith('/') ? base + url : url;
  return URL.canParse(target) ? new URL(target) : undefined;
}

function notFound(routes: Routes): string {
  return ['Not found. Paths of this listener:', ...Object.keys(routes).sort(), ''].join('\n');
}

function allowedMethods({ methods = ['GET'] }: Route): readonly string[] {
  return methods.includes('GET') ? [...new Set([...methods, 'HEAD'])] : methods;
}

function failed(thrown: unknown, path: string, reply: Reply, log: Log): void {
  log.write('error', 'request failed', { path, error: thrown });
  if (reply.begun) reply.open(500).cut();
  else reply.send(500, 'Internal error.\n');
}

interface AnswerDeps {
  log: Log;
  drops: Drops;
  auth: Authenticator | undefined;
}

const isRead = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';

/** Whether a request is authorized. Answers an unauthorized request. */
async function isAuthorized(
  route: Route | undefined,
  message: IncomingMessage,
  reply: Reply,
  { drops, auth }: AnswerDeps,
): Promise<boolean> {
  if (route?.access === 'open') return true;
  if (!auth) {
    if (route?.access !== 'credentials') return true;
    reply.send(403, 'Forbidden. This path needs credentials; configure auth for the listener.\n');
    return false;
  }
  const result = await auth.authenticate(message.headers.authorization, isRead(message));
  if (result === 'accepted') return true;
  drops.count('pull', 'unauthorized');
  // The connection is closed, so that each guess costs a connection.
  const headers = { connection: 'close' };
  if (result === 'busy')
    reply.send(503, 'Too many passwords to check.\n', { ...headers, 'retry-after': '1' });
  else reply.send(401, 'Unauthorized.\n', { ...headers, 'www-authenticate': auth.challenges });
  return false;
}

async function serve(
  routes: Routes,
  route: Route | undefined,
  request: Request,
  reply: Reply,
): Promise<void> {
  const allowed = route ? allowedMethods(route) : [];
  if (!route) {
    reply.send(404, notFound(routes));
  } else if (!allowed.includes(request.message.method ?? '')) {
    reply.send(405, 'Method not allowed.\n', { allow: allowed.join(', ') });
  } else {
    await route.handle(request, reply);
  }
}

/**
 * Answers a request from `routes`, and by itself with 400, 401, 403, 404 and 405. Authentication comes first, so
 * that the paths are not revealed without credentials.
 */
export function answer(routes: Routes, message: IncomingMessage, reply: Reply, deps: AnswerDeps): void {
  const url = urlOf(message);
  // If there are two Host headers, a proxy may have checked the other header (RFC 9112, 3.2).
  const hosts = message.rawHeaders.filter((name, n) => n % 2 === 0 && name.toLowerCase() === 'host').length;
  if (!url || hosts > 1) return void reply.send(400, 'Bad request.\n');
  const route = find(routes, url.pathname);
  const answered = async () => {
    if (await isAuthorized(route, message, reply, deps)) await serve(routes, route, { url, message }, reply);
  };
  answered().catch((thrown: unknown) => failed(thrown, url.pathname, reply, deps.log));
}

/** A response body that is written in pieces. Pieces are buffered in memory until the client reads them. */
export interface Body {
  write(piece: Uint8Array): void;
  end(): void;
  /** Aborts the response, so that the client sees that it is incomplete. */
  cut(): void;
  /** True once the response is complete or was aborted. */
  readonly done: boolean;
}

/** A body without an end, such as a stream of events. Its writer must disconnect clients that do not read. */
export interface StreamBody extends Body {
  /** The number of bytes that the client has not read yet. */
  readonly waiting: number;
}

/** The response to one request. A HEAD request gets only the headers. */
export interface Reply {
  /** Sends a complete response. */
  send(status: number, body: string | Uint8Array, headers?: OutgoingHttpHeaders): void;
  /** Starts a response in pieces. */
  open(status: number, headers?: OutgoingHttpHeaders): Body;
  /** Starts a response of status 200 that has no deadline; the writer bounds its time and its memory. */
  stream(headers: OutgoingHttpHeaders): StreamBody;
  /** Calls `call` once the connection is closed or the response complete. */
  closed(call: () => void): void;
  /** True once the headers were sent. */
  readonly begun: boolean;
  /** True once the connection is closed or the response complete. */
  readonly gone: boolean;
}

interface ReplyDeps {
  clock: Clock;
  drops: Drops;
}

const defaultHeaders: OutgoingHttpHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/**
 * A reply over Node's response. A client that has not read the whole response `writeMs` after its start is
 * disconnected and counted as `slow_reader`, even if it reads steadily.
 */
export function createReply(response: ServerResponse, writeMs: number, { clock, drops }: ReplyDeps): Reply {
  let closed = false;
  let cancel = (): void => {};
  const { socket } = response.req;
  // If a connection closes, Node tells only the response that it sends, not the responses that wait behind it.
  const onLost = (): void => void (closed || response.emit('close'));
  socket.once('close', onLost);
  response.once('close', () => {
    closed = true;
    cancel();
    socket.off('close', onLost);
  });
  // A client that disconnects is not an error; 'close' follows.
  response.on('error', () => {});

  const begin = (status: number, headers: OutgoingHttpHeaders): void => {
    response.writeHead(status, { ...defaultHeaders, ...headers });
    cancel = clock.after(writeMs, () => {
      drops.count('pull', 'slow_reader');
      response.destroy();
    });
  };
  const body: StreamBody = {
    write: (piece) => void (closed || response.write(piece)),
    end: () => void (closed || response.end()),
    cut: () => void response.destroy(),
    get done() {
      return closed;
    },
    get waiting() {
      return response.writableLength;
    },
  };

  return {
    send(status, body, headers) {
      if (closed) return;
      const text = { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(body) };
      begin(status, { ...text, ...headers });
      response.end(body);
    },
    open(status, headers = {}) {
      if (!closed) begin(status, headers);
      return body;
    },
    stream(headers) {
      if (!closed) response.writeHead(200, { ...defaultHeaders, ...headers });
      return body;
    },
    closed: (call) => void response.once('close', call),
    get begun() {
      return response.headersSent;
    },
    get gone() {
      return closed;
    },
  };
}
