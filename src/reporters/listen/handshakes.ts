import type { X509Certificate } from 'node:crypto';
import { isIPv6, type Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { ClientAuthType, ListenerTls } from '../../core/access.ts';
import { type CertificatesDeps, openCertificates } from './certificates.ts';

export interface HandshakesOptions {
  tls: ListenerTls;
  /** Timeout of a handshake, ms. */
  handshakeMs: number;
  /** ALPN protocols (RFC 7301), such as `http/1.1`. */
  protocols?: string[];
}

export interface HandshakesDeps extends CertificatesDeps {
  /** The handshake succeeded, and the client certificate, if required, was accepted. */
  onSecure(socket: TLSSocket): void;
  /** The handshake failed, timed out, or the client certificate was refused. The connection is closed. */
  onFailure(reason: string): void;
}

/** TLS for connections that a `node:net` server has accepted. */
export interface Handshakes {
  /** Takes over an accepted connection, of which nothing was read. */
  begin(socket: Socket): void;
  /** Closes connections in a handshake. */
  cut(): void;
}

const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** A TLS server that does not listen: connections are passed to it. */
function serverFor(
  { tls, handshakeMs, protocols }: HandshakesOptions,
  context: SecureContextOptions,
): Server {
  return createServer({
    ...context,
    handshakeTimeout: handshakeMs,
    requestCert: clientAuthOf(tls) !== 'NoClientCert',
    // `acceptsClient` decides: Node would close the connection without a reason.
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

  return {
    begin(socket) {
      if (certificates.refresh()) server.setSecureContext(certificates.context);
      const key = keyOf(socket);
      inHandshake.set(key, socket);
      // A disconnect is reported as a failed handshake, or on the TLS socket.
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        if (inHandshake.get(key) === socket) inHandshake.delete(key);
      });
      // An HTTP server accepts half-open connections, but a handshake cannot continue on one.
      socket.allowHalfOpen = false;
      server.emit('connection', socket);
    },
    cut() {
      for (const socket of inHandshake.values()) socket.destroy();
    },
  };
}

/** The client certificate policy of a listener. */
export function clientAuthOf({ clientAuthType, clientCaFile }: ListenerTls): ClientAuthType {
  return clientAuthType ?? (clientCaFile === undefined ? 'NoClientCert' : 'RequireAndVerifyClientCert');
}

/** IPv6 addresses are compared in their shortest form. */
const short = (name: string): string =>
  isIPv6(name) ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;

const nameKinds: ReadonlySet<string> = new Set(['DNS', 'IP Address', 'email', 'URI']);

/** DNS names, addresses, e-mail addresses and URIs of a certificate. Node quotes values that contain a separator. */
export function namesOf({ subjectAltName = '' }: Pick<X509Certificate, 'subjectAltName'>): string[] {
  // Matches are contiguous, so that text inside a value is never taken for another name.
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
export function acceptsClient(tls: ListenerTls, socket: TLSSocket): boolean {
  const certificate = socket.getPeerX509Certificate();
  if (!fitsPolicy(clientAuthOf(tls), certificate !== undefined, socket.authorized)) return false;
  const { clientAllowedSans } = tls;
  if (!certificate || !clientAllowedSans) return true;
  const allowed = new Set(clientAllowedSans.map(short));
  return namesOf(certificate).some((name) => allowed.has(name));
}
