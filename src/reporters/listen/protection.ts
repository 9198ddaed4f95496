import type { X509Certificate } from 'node:crypto';
import { isIPv6, type Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type {
  ClientAuthType,
  ListenerTls,
  Protection as ProtectionSettings,
  ReadSecret,
  ServedCertificate,
} from '../../core/access.ts';
import type { Clock, Drops, Log } from '../../core/ports.ts';
import { type Authenticator, createAuthenticator } from './auth.ts';
import { type CertificatesDeps, openCertificates } from './certificates.ts';

interface HandshakesOptions {
  tls: ListenerTls;
  handshakeMs: number;
  /** The ALPN protocols (RFC 7301), such as `http/1.1`. */
  protocols?: string[];
}

interface HandshakesDeps extends CertificatesDeps {
  /** Called when the handshake succeeded, and the client certificate, if required, was accepted. */
  onSecure(socket: TLSSocket): void;
  /** Called when the handshake failed or timed out, or the client certificate was refused. The connection is closed. */
  onFailure(reason: string): void;
}

/** TLS for connections that a `node:net` server has accepted. */
interface Handshakes {
  /** Begins the handshake of an accepted connection, of which nothing was read. */
  begin(socket: Socket): void;
  /** The certificate that the next client gets. */
  certificate(): ServedCertificate;
  /** Closes connections that are in a handshake. */
  cut(): void;
}

const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** A TLS server that does not listen; connections are passed to it. */
function serverFor(
  { tls, handshakeMs, protocols }: HandshakesOptions,
  context: SecureContextOptions,
): Server {
  return createServer({
    ...context,
    handshakeTimeout: handshakeMs,
    requestCert: clientAuthOf(tls) !== 'NoClientCert',
    // `acceptsClient` decides instead: Node would close the connection without a reason.
    rejectUnauthorized: false,
    ...(protocols && { ALPNProtocols: protocols }),
  });
}

/**
 * TLS for accepted connections. Before each handshake it checks whether the files changed, so that the next client
 * gets a renewed certificate; open connections stay open. Throws like `openCertificates`.
 */
export function createHandshakes(options: HandshakesOptions, deps: HandshakesDeps): Handshakes {
  const { onSecure, onFailure } = deps;
  const certificates = openCertificates(options.tls, deps);
  const server = serverFor(options, certificates.context);
  const inHandshake = new Map<string, Socket>();

  server.on('secureConnection', (socket) => {
    inHandshake.delete(keyOf(socket));
    if (acceptsClient(options.tls, socket)) return void onSecure(socket);
    socket.on('error', () => {});
    socket.destroy();
    onFailure('client certificate refused');
  });
  server.on('tlsClientError', (error, socket) => {
    socket.destroy();
    onFailure(error.message);
  });

  const refresh = () => {
    if (certificates.refresh()) server.setSecureContext(certificates.context);
  };
  return {
    certificate() {
      refresh();
      return certificates.served;
    },
    begin(socket) {
      refresh();
      const key = keyOf(socket);
      inHandshake.set(key, socket);
      // A disconnect is reported as a failed handshake, or on the TLS socket.
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        if (inHandshake.get(key) === socket) inHandshake.delete(key);
      });
      // An HTTP server accepts half-open connections. A handshake needs both directions.
      socket.allowHalfOpen = false;
      server.emit('connection', socket);
    },
    cut() {
      for (const socket of inHandshake.values()) socket.destroy();
    },
  };
}

/** The client certificate policy of a listener. */
function clientAuthOf({ clientAuthType, clientCaFile }: ListenerTls): ClientAuthType {
  return clientAuthType ?? (clientCaFile === undefined ? 'NoClientCert' : 'RequireAndVerifyClientCert');
}

/** The shortest form of an IPv6 address, for comparison; other names are unchanged. */
const short = (name: string): string =>
  isIPv6(name) ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;

const nameKinds: ReadonlySet<string> = new Set(['DNS', 'IP Address', 'email', 'URI']);

/** DNS names, addresses, e-mail addresses and URIs of a certificate. Node quotes values that contain a separator. */
export function namesOf({ subjectAltName = '' }: Pick<X509Certificate, 'subjectAltName'>): string[] {
  // Matches are contiguous, so that text inside a value never counts as another name.
  const item = /(?:^|, )([^:,"]+):("(?:[^"\\]|\\.)*"|[^,]*)/gy;
  return [...subjectAltName.matchAll(item)]
    .filter(([, kind = '']) => nameKinds.has(kind))
    .map(([, , value = '']) => short(value.startsWith('"') ? (JSON.parse(value) as string) : value));
}

function fitsPolicy(policy: ClientAuthType, isGiven: boolean, isVerified: boolean): boolean {
  switch (policy) {
    case 'NoClientCert':
    case 'RequestClientCert':
      return true;
    case 'RequireAnyClientCert':
      return isGiven;
    case 'VerifyClientCertIfGiven':
      return !isGiven || isVerified;
    case 'RequireAndVerifyClientCert':
      return isGiven && isVerified;
  }
}

/** Whether a client is accepted after its handshake; `authorized` is OpenSSL's verification against `clientCaFile`. */
function acceptsClient(tls: ListenerTls, socket: TLSSocket): boolean {
  const certificate = socket.getPeerX509Certificate();
  if (!fitsPolicy(clientAuthOf(tls), certificate !== undefined, socket.authorized)) return false;
  const { clientAllowedSans } = tls;
  if (!certificate || !clientAllowedSans) return true;
  const allowed = new Set(clientAllowedSans.map(short));
  return namesOf(certificate).some((name) => allowed.has(name));
}

export interface ProtectionDeps {
  clock: Clock;
  drops: Drops;
  log: Log;
  readSecret: ReadSecret;
}

/** TLS and authentication of an HTTP listener. Both can change while it listens. */
export interface ListenerProtection {
  readonly auth: Authenticator | undefined;
  /** Passes a connection to `serve`, after a TLS handshake if TLS is on. */
  accept(socket: Socket): void;
  /** Whether the connection was accepted with the current TLS settings. */
  isCurrent(socket: Socket): boolean;
  /** See `Listener.protect`. */
  protect(next: ProtectionSettings): () => void;
  /** The certificate of the current TLS settings; undefined without TLS. */
  certificate(): ServedCertificate | undefined;
  /** Closes connections that are in a handshake. */
  cutHandshakes(): void;
}

/** The TLS settings in use; equal keys are equal settings. */
interface TlsState {
  readonly key: string;
  readonly handshakes: Handshakes | undefined;
}

const settingsKey = (settings: object | undefined): string => JSON.stringify(settings ?? null);

interface ProtectionOptions {
  /** The configuration path of `tls` and `auth`. */
  place: string;
  handshakeMs: number;
}

/** The open connections and the TLS settings with which they were accepted. */
function createAccepted(serve: (socket: Socket) => void) {
  const accepted = new Map<Socket, TlsState>();
  return {
    accept(socket: Socket, state: TlsState): void {
      accepted.set(socket, state);
      socket.once('close', () => accepted.delete(socket));
      serve(socket);
    },
    has: (socket: Socket, state: TlsState): boolean => accepted.get(socket) === state,
    closeOthers(current: TlsState): void {
      for (const [socket, state] of accepted) if (state !== current) socket.destroy();
    },
  };
}

function createTlsState(
  tls: ListenerTls | undefined,
  { place, handshakeMs }: ProtectionOptions,
  { clock, drops, log, accept }: ProtectionDeps & { accept(socket: Socket, state: TlsState): void },
): TlsState {
  const key = settingsKey(tls);
  if (!tls) return { key, handshakes: undefined };
  const options = { tls, handshakeMs, protocols: ['http/1.1'] };
  const handshakes = createHandshakes(options, {
    place: `${place}.tls`,
    nowMs: clock.nowMs,
    log,
    onSecure: (socket) => accept(socket, state),
    onFailure(reason) {
      drops.count('pull', 'handshake_failed');
      log.write('debug', 'TLS handshake failed', { listener: place, reason });
    },
  });
  const state: TlsState = { key, handshakes };
  return state;
}

/**
 * Creates the protection. `serve` is called with each connection that may speak HTTP: the accepted socket, or the TLS socket over
 * it.
 */
export function createProtection(
  options: ProtectionOptions,
  deps: ProtectionDeps & { serve(socket: Socket): void },
): ListenerProtection {
  const { accept, has, closeOthers } = createAccepted(deps.serve);
  let state = createTlsState(undefined, options, { ...deps, accept });
  let auth: Authenticator | undefined;
  let authKey = settingsKey(undefined);

  return {
    get auth() {
      return auth;
    },
    accept(socket) {
      if (state.handshakes) state.handshakes.begin(socket);
      else accept(socket, state);
    },
    isCurrent: (socket) => has(socket, state),
    protect({ tls, auth: settings }) {
      const isSame = settingsKey(tls) === state.key;
      const nextState = isSame ? state : createTlsState(tls, options, { ...deps, accept });
      const nextKey = settingsKey(settings);
      const nextAuth = nextKey === authKey ? auth : settings && createAuthenticator(settings, deps);
      return () => {
        auth = nextAuth;
        authKey = nextKey;
        if (nextState === state) return;
        state.handshakes?.cut();
        state = nextState;
        closeOthers(state);
      };
    },
    certificate: () => state.handshakes?.certificate(),
    cutHandshakes: () => state.handshakes?.cut(),
  };
}
