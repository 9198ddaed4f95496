import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Protection as ProtectionSettings, ServedCertificate } from '../../core/access.ts';
import { addressesConflict, addressOf, formatAddress, parseAddress } from '../../core/address.ts';
import { AgentError, listenError } from '../../core/errors.ts';
import { noteArrival } from '../../core/slices.ts';
import { type ConnectionLimits, createConnections } from './connections.ts';
import { answer, createReply, type Routes } from './http.ts';
import { createProtection, type ListenerProtection, type ProtectionDeps } from './protection.ts';

/** The limits of a listener. Times are in ms. */
export interface ListenerLimits extends ConnectionLimits {
  headerBytes: number;
  /** The time for a TLS handshake. */
  handshakeMs: number;
  /** The time from the connection, or the first byte of a further request, to the end of the headers. */
  headerMs: number;
  /** The time from the same moment to the end of the body. */
  requestMs: number;
  /** The idle time between two requests. */
  idleMs: number;
  /** The time from the first byte of a response to the last. */
  writeMs: number;
  /** How long `close` waits for responses in progress. */
  closeMs: number;
}

/** `idleMs` is longer than usual scrape intervals; `writeMs` is three times Prometheus' default scrape timeout. */
const defaultLimits: ListenerLimits = {
  connections: 128,
  connectionsPerAddress: 64,
  reservedConnections: 32,
  headerBytes: 16_384,
  handshakeMs: 10_000,
  headerMs: 10_000,
  requestMs: 30_000,
  idleMs: 150_000,
  writeMs: 30_000,
  closeMs: 2_000,
};

export interface ListenerOptions {
  /** The name of the listener in the log and in errors. */
  name: string;
  /** The configuration key of the address; `name` by default. */
  key?: string;
  /** `host:port`; port 0 selects a free port. */
  address: string;
  limits?: Partial<ListenerLimits>;
  /** TLS and authentication; without them the listener is open and unencrypted. */
  secure?: ProtectionSettings;
  /** The configuration path of `tls` and `auth`; `name` by default. */
  place?: string;
}

export type ListenerDeps = ProtectionDeps;

export interface Listener {
  /** The address to which the listener is bound, with the actual port. */
  readonly address: string;
  /** The routes, which are replaced as a whole; requests in progress continue with the earlier routes. Empty at first. */
  routes: Routes;
  /**
   * Prepares new TLS and authentication settings and returns the step that applies them. Connections that were
   * accepted with other TLS settings are then closed; credentials apply from the next request on. Throws
   * `listen_failed`, and changes nothing, if files cannot be used.
   */
  protect(secure: ProtectionSettings): () => void;
  /** The certificate that the next client gets; undefined without TLS. */
  certificate(): ServedCertificate | undefined;
  /** Stops accepting, waits up to `closeMs` for responses in progress, then closes all connections. */
  close(): Promise<void>;
}

function bind(server: Server, options: ListenerOptions): Promise<void> {
  const at = addressOf(options.name, options.address, '0.0.0.0:9464 or [::1]:9464');
  return new Promise((resolve, reject) => {
    server.once('error', (thrown) =>
      reject(listenError(options.key ?? options.name, options.address, thrown)),
    );
    server.listen({ ...at, exclusive: true }, resolve);
  });
}

/** Whether a request has a body. An unexpected body is not read to its end only to reuse the connection. */
function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function createHttpServer(limits: ListenerLimits): Server {
  return createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    // Node checks also while there is no connection. A slow client has up to one and a half times its limit.
    connectionsCheckingInterval: limits.headerMs / 2,
  });
}

/** Puts `accept` before the server's own handling of connections, which it returns. */
function interpose(server: Server, accept: (socket: Socket) => void): (socket: Socket) => void {
  const handlers = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', accept);
  return (socket) => {
    for (const handler of handlers) handler.call(server, socket);
  };
}

/** Binds, logs the address and returns it. */
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
 * Starts an HTTP or HTTPS listener. Throws `address_in_use`, `listen_failed` (also for TLS files that cannot be
 * used), and `config_invalid` for an invalid address.
 */
export async function createListener(options: ListenerOptions, deps: ListenerDeps): Promise<Listener> {
  const { drops, log, clock } = deps;
  const limits = { ...defaultLimits, ...options.limits };
  const server = createHttpServer(limits);
  const connections = createConnections(limits, drops);
  const serve = interpose(server, (socket) => {
    noteArrival();
    if (connections.admit(socket)) protection.accept(socket);
  });
  const { place = options.name, secure = {} } = options;
  const protection: ListenerProtection = createProtection(
    { place, handshakeMs: limits.handshakeMs },
    { ...deps, serve },
  );
  protection.protect(secure)();
  let routes: Routes = {};
  let closing: Promise<void> | undefined;

  server.on('request', (message: IncomingMessage, response) => {
    const { socket } = message;
    // The connection was accepted with other TLS settings.
    if (!protection.isCurrent(socket)) return void socket.destroy();
    if (!connections.requestStarted(socket)) return;
    response.once('close', () =>
      connections.requestEnded(socket, response.writableFinished && response.statusCode < 400),
    );
    if (closing || (message.method !== 'POST' && hasBody(message.headers))) response.shouldKeepAlive = false;
    response.once('finish', () => closing && socket.end());
    const reply = createReply(response, limits.writeMs, deps);
    answer(routes, message, reply, { log, drops, auth: protection.auth });
  });
  const address = await listen(server, options, deps);

  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    protection.cutHandshakes();
    const cancel = clock.after(limits.closeMs, () => server.closeAllConnections());
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
    protect: protection.protect,
    certificate: protection.certificate,
    close: () => (closing ??= close()),
  };
}

/** Shares listeners between configurations, so that a reload does not have to unbind and rebind an address. */
export interface Listeners {
  /** The listener on this address, which the first call binds. It is closed when its last holder calls `close`. */
  hold(options: ListenerOptions): Promise<Listener>;
}

interface Held {
  readonly listener: Promise<Listener>;
  holders: number;
}

/** Whether one address covers the other on the machine: only a wildcard covers others. */
function isCovering(one: string, other: string): boolean {
  const [first, second] = [parseAddress(one), parseAddress(other)];
  if (!first || !second || first.host === second.host) return false;
  return addressesConflict(first, second, new Set([first.host, second.host]));
}

/**
 * The error of a bind. If the agent itself holds an address that covers this one, or is covered by it, no other program is at
 * fault; the two cannot be bound at the same time, so that a reload cannot change from one to the other.
 */
function bindError(
  thrown: unknown,
  { key, name, address }: ListenerOptions,
  held: Iterable<string>,
): unknown {
  if (!(thrown instanceof AgentError) || thrown.code !== 'address_in_use') return thrown;
  const own = [...held].find((other) => isCovering(address, other));
  if (own === undefined) return thrown;
  const fault = {
    where: key ?? name,
    what: `a reload cannot change from ${own}, on which the agent itself listens`,
    got: address,
    allowed: 'restart the agent, or use another port',
  };
  return new AgentError('address_in_use', fault, thrown.cause);
}

/**
 * Creates the listeners. `bind` is `createListener` with its deps. Listeners are shared by address; on port 0, by name and
 * address. The routes and the protection that were set last apply, with the limits of the first holder.
 */
export function createListeners(bind: (options: ListenerOptions) => Promise<Listener>): Listeners {
  const byKey = new Map<string, Held>();

  const drop = async (key: string, held: Held): Promise<void> => {
    held.holders -= 1;
    if (held.holders > 0) return;
    if (byKey.get(key) === held) byKey.delete(key);
    await (await held.listener).close();
  };

  return {
    async hold(options) {
      const key = options.address.endsWith(':0') ? `${options.name} ${options.address}` : options.address;
      const held = byKey.get(key) ?? { listener: bind(options), holders: 0 };
      byKey.set(key, held);
      held.holders += 1;
      const listener = await held.listener.catch((thrown: unknown) => {
        if (byKey.get(key) === held) byKey.delete(key);
        throw bindError(thrown, options, byKey.keys());
      });
      let dropped: Promise<void> | undefined;
      return {
        address: listener.address,
        get routes() {
          return listener.routes;
        },
        set routes(next) {
          listener.routes = next;
        },
        protect: listener.protect,
        certificate: listener.certificate,
        close: () => (dropped ??= drop(key, held)),
      };
    },
  };
}
