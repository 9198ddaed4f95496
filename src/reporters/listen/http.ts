import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock, Drops, Log } from '../../core/ports.ts';
import type { Guard } from './auth.ts';

/** One request: its URL taken apart, and the message for headers and body. */
export interface Request {
  /** The host in it is not the client's and means nothing. */
  readonly url: URL;
  readonly message: IncomingMessage;
}

export interface Route {
  /** Methods it takes; GET and HEAD if left out. GET brings HEAD. */
  methods?: readonly string[];
  /**
   * `open`: answers without credentials even where the listener asks for them. `credentials`: answers only with
   * them, so nobody where the listener asks for none. Left out: as the listener is.
   */
  access?: 'open' | 'credentials';
  /** What it throws is logged, and the client learns only that it failed. */
  handle(request: Request, reply: Reply): void | Promise<void>;
}

/** Routes by exact path; a path that ends with `/*` stands for everything below it. */
export type Routes = Readonly<Record<string, Route>>;

function find(routes: Routes, path: string): Route | undefined {
  if (Object.hasOwn(routes, path)) return routes[path];
  const above = Object.keys(routes).filter((key) => key.endsWith('/*') && path.startsWith(key.slice(0, -1)));
  return routes[above.reduce((longest, key) => (key.length > longest.length ? key : longest), '')];
}

/** Undefined for a request target that is no path, such as `*`. */
function urlOf({ url = '' }: IncomingMessage): URL | undefined {
  const base = 'http://listener';
  // A second slash would otherwise begin a host.
  const target = url.startsWith('/') ? base + url : url;
  return URL.canParse(target) ? new URL(target) : undefined;
}

function notFound(routes: Routes): string {
  return ['Not found. This listener has:', ...Object.keys(routes).sort(), ''].join('\n');
}

function allowedMethods({ methods = ['GET'] }: Route): readonly string[] {
  return methods.includes('GET') ? [...new Set([...methods, 'HEAD'])] : methods;
}

function failed(thrown: unknown, path: string, reply: Reply, log: Log): void {
  log.write('error', 'request failed', { path, error: thrown });
  if (reply.begun) reply.open(500).cut();
  else reply.send(500, 'Internal error.\n');
}

export interface AnswerDeps {
  log: Log;
  drops: Drops;
  /** Undefined where everybody may ask. */
  guard: Guard | undefined;
}

/** Refuses who may not ask, with the reason; true for who may. */
async function admitted(
  route: Route | undefined,
  message: IncomingMessage,
  reply: Reply,
  { drops, guard }: AnswerDeps,
): Promise<boolean> {
  if (route?.access === 'open') return true;
  if (!guard) {
    if (route?.access !== 'credentials') return true;
    reply.send(403, 'Forbidden. This needs credentials, and the listener has no auth.\n');
    return false;
  }
  const verdict = await guard.judge(message.headers.authorization);
  if (verdict === 'right') return true;
  drops.count('pull', 'unauthorized');
  // Whoever guesses pays for a connection each time.
  const headers = { connection: 'close' };
  if (verdict === 'busy')
    reply.send(503, 'Too many passwords to check.\n', { ...headers, 'retry-after': '1' });
  else reply.send(401, 'Unauthorized.\n', { ...headers, 'www-authenticate': guard.challenges });
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
 * Answers one request from `routes`: 400, 401, 403, 404 and 405 by itself, everything else through the route.
 * Without credentials nobody learns which paths there are.
 */
export function answer(routes: Routes, message: IncomingMessage, reply: Reply, deps: AnswerDeps): void {
  const url = urlOf(message);
  if (!url) return void reply.send(400, 'Bad request.\n');
  const route = find(routes, url.pathname);
  const answered = async () => {
    if (await admitted(route, message, reply, deps)) await serve(routes, route, { url, message }, reply);
  };
  answered().catch((thrown: unknown) => failed(thrown, url.pathname, reply, deps.log));
}

/** An answer that leaves in pieces. Pieces wait in memory until the reader takes them. */
export interface Body {
  write(piece: Uint8Array): void;
  end(): void;
  /** Breaks off, so that the reader sees an incomplete answer, never a short one. */
  cut(): void;
  /** True once it was delivered whole or can no longer be. */
  readonly done: boolean;
}

/** The answer to one request; a HEAD request gets the head alone. */
export interface Reply {
  /** Answers at once. */
  send(status: number, body: string | Uint8Array, headers?: OutgoingHttpHeaders): void;
  /** Starts an answer in pieces. */
  open(status: number, headers?: OutgoingHttpHeaders): Body;
  /** True once the head was sent. */
  readonly begun: boolean;
  /** True once nobody waits for the answer any more. */
  readonly gone: boolean;
}

export interface ReplyDeps {
  clock: Clock;
  drops: Drops;
}

const always: OutgoingHttpHeaders = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/**
 * A reply over Node's response. A reader that has not taken everything `writeMs` after the first byte was
 * ready is cut off and counted `slow_reader`, however steadily it drips.
 */
export function createReply(response: ServerResponse, writeMs: number, { clock, drops }: ReplyDeps): Reply {
  let closed = false;
  let cancel = (): void => {};
  response.once('close', () => {
    closed = true;
    cancel();
  });
  // A reader that leaves in the middle is no error of ours; 'close' tells.
  response.on('error', () => {});

  const begin = (status: number, headers: OutgoingHttpHeaders): void => {
    response.writeHead(status, { ...always, ...headers });
    cancel = clock.after(writeMs, () => {
      drops.count('pull', 'slow_reader');
      response.destroy();
    });
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
      return {
        write: (piece) => void (closed || response.write(piece)),
        end: () => void (closed || response.end()),
        cut: () => void response.destroy(),
        get done() {
          return closed;
        },
      };
    },
    get begun() {
      return response.headersSent;
    },
    get gone() {
      return closed;
    },
  };
}
