import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Protection } from '../../core/access.ts';
import { formatAddress, parseAddress } from '../../core/address.ts';
import { AgentError, errorText, systemCode } from '../../core/errors.ts';
import { answer, createReply, type Routes } from './http.ts';
import { createSecurity, type Security, type SecurityDeps } from './protection.ts';

/** What a listener puts up with. Times in ms. */
export interface ListenerLimits {
  /** Connections at once; more are closed unheard and counted. */
  connections: number;
  headerBytes: number;
  /** For a TLS handshake; what follows has its own time. */
  handshakeMs: number;
  /** From the connection, or a further request's first byte, to the end of its headers. */
  headerMs: number;
  /** The same to the end of its body. */
  requestMs: number;
  /** How long a connection may rest between two requests. */
  idleMs: number;
  /** From an answer's first byte to its last. */
  writeMs: number;
  /** How long `close` waits for answers under way. */
  closeMs: number;
}

/** An idle connection outlives the usual scrape intervals; an answer gets thrice Prometheus' default timeout. */
export const defaultLimits: ListenerLimits = {
  connections: 128,
  headerBytes: 16_384,
  handshakeMs: 10_000,
  headerMs: 10_000,
  requestMs: 30_000,
  idleMs: 150_000,
  writeMs: 30_000,
  closeMs: 2_000,
};

export interface ListenerOptions {
  /** What it is called in the log and in errors: the place of its address in the configuration. */
  name: string;
  /** `host:port`; port 0 asks for any free one. */
  address: string;
  limits?: Partial<ListenerLimits>;
  /** Who may come in, and how; without it everybody, in the clear. */
  secure?: Protection;
  /** Place of `tls` and `auth` in the configuration; `name` unless told. */
  place?: string;
}

export type ListenerDeps = SecurityDeps;

export interface Listener {
  /** The address it is bound to, with the port it got. */
  readonly address: string;
  /** What it serves; replaced as a whole, and requests under way end as they began. Empty at first. */
  routes: Routes;
  /**
   * Prepares another protection and returns the step that puts it in place. Then connections that came in by
   * other TLS settings are closed; credentials count from the next request. Throws `listen_failed`, with
   * nothing changed, for files that cannot be used.
   */
  protect(secure: Protection): () => void;
  /** Accepts no more, lets answers under way end for `closeMs`, then cuts them off. */
  close(): Promise<void>;
}

function refused(thrown: unknown, { name, address }: ListenerOptions): AgentError {
  const fault = { where: name, got: address };
  if (systemCode(thrown) === 'EADDRINUSE') {
    const allowed = 'choose another port, or end the program that holds this one';
    return new AgentError('address_in_use', { ...fault, what: 'address already in use', allowed }, thrown);
  }
  return new AgentError('listen_failed', { ...fault, what: `cannot listen (${errorText(thrown)})` }, thrown);
}

function notAnAddress({ name, address }: ListenerOptions): AgentError {
  const allowed = 'use host:port, such as 0.0.0.0:9464 or [::1]:9464';
  return new AgentError('config_invalid', { where: name, what: 'not an address', got: address, allowed });
}

function bind(server: Server, options: ListenerOptions): Promise<void> {
  const at = parseAddress(options.address);
  if (!at) throw notAnAddress(options);
  return new Promise((resolve, reject) => {
    server.once('error', (thrown) => reject(refused(thrown, options)));
    server.listen({ ...at, exclusive: true }, resolve);
  });
}

/** A body that nobody asked for is not read to its end only to use the connection again. */
function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function serverFor(limits: ListenerLimits, { drops }: ListenerDeps): Server {
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(1_000, limits.headerMs),
  });
  server.maxConnections = limits.connections;
  server.on('drop', () => {
    drops.count('pull', 'too_many_connections');
    // Whoever only rests makes room for the next who asks.
    server.closeIdleConnections();
  });
  return server;
}

/** Puts `accept` in front of what the server does with a connection, and returns that. */
function interpose(server: Server, accept: (socket: Socket) => void): (socket: Socket) => void {
  const serving = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', accept);
  return (socket) => {
    for (const serve of serving) serve.call(server, socket);
  };
}

/** Leads the server's connections through the protection of the options. */
function secure(
  server: Server,
  options: ListenerOptions,
  limits: ListenerLimits,
  deps: ListenerDeps,
): Security {
  const serve = interpose(server, (socket) => security.accept(socket));
  const { place = options.name } = options;
  const security = createSecurity({ place, handshakeMs: limits.handshakeMs }, { ...deps, serve });
  security.protect(options.secure ?? {})();
  return security;
}

/** Binds, says so in the log, and returns the address it got. */
async function listen(server: Server, options: ListenerOptions, { log }: ListenerDeps): Promise<string> {
  const { name: listener } = options;
  await bind(server, options);
  server.on('error', (error) => log.write('error', 'listener failed', { listener, error }));
  const bound = server.address() as AddressInfo;
  const address = formatAddress({ host: bound.address, port: bound.port });
  log.write('info', 'listening', { listener, address });
  return address;
}

/**
 * An HTTP or HTTPS listener, bound and accepting. Throws `address_in_use` or `listen_failed`, also for TLS files
 * that cannot be used, and `config_invalid` for what is no address.
 */
export async function createListener(options: ListenerOptions, deps: ListenerDeps): Promise<Listener> {
  const limits = { ...defaultLimits, ...options.limits };
  const server = serverFor(limits, deps);
  const security = secure(server, options, limits, deps);
  let routes: Routes = {};
  let closing: Promise<void> | undefined;

  server.on('request', (message: IncomingMessage, response) => {
    // It came in when other rules held.
    if (!security.isCurrent(message.socket)) return void message.socket.destroy();
    if (closing || (message.method !== 'POST' && hasBody(message.headers))) response.shouldKeepAlive = false;
    response.once('finish', () => closing && message.socket.end());
    const reply = createReply(response, limits.writeMs, deps);
    answer(routes, message, reply, { log: deps.log, drops: deps.drops, guard: security.guard });
  });
  const address = await listen(server, options, deps);

  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    security.cutHandshakes();
    const cancel = deps.clock.after(limits.closeMs, () => server.closeAllConnections());
    await closed;
    cancel();
  };

  return {
    address,
    get routes() {
      return routes;
    },
    set routes(next) {
      routes = next;
    },
    protect: security.protect,
    close: () => (closing ??= close()),
  };
}
