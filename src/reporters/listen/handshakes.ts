import type { X509Certificate } from 'node:crypto';
import { isIPv6, type Socket } from 'node:net';
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls';
import type { ClientAuthType, ListenerTls } from '../../core/access.ts';
import { type CertificatesDeps, openCertificates } from './certificates.ts';

export interface HandshakesOptions {
  tls: ListenerTls;
  /** How long a handshake may take, ms. */
  handshakeMs: number;
  /** Protocols to agree on (RFC 7301), such as `http/1.1`. */
  protocols?: string[];
}

export interface HandshakesDeps extends CertificatesDeps {
  /** A client is in: its certificate, if one is asked for, is right. */
  onSecure(socket: TLSSocket): void;
  /** A connection came to nothing: no TLS, too slow, or a client that may not come in. It is closed. */
  onFailure(reason: string): void;
}

/** Turns connections that any server of `node:net` has accepted into ones that speak TLS. */
export interface Handshakes {
  /** Takes over an accepted connection of which nothing was read. */
  begin(socket: Socket): void;
  /** Closes the connections whose handshakes are under way. */
  cut(): void;
}

const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** A server of TLS that listens nowhere: connections are handed to it. */
function serverFor(
  { tls, handshakeMs, protocols }: HandshakesOptions,
  context: SecureContextOptions,
): Server {
  return createServer({
    ...context,
    handshakeTimeout: handshakeMs,
    requestCert: clientAuthOf(tls) !== 'NoClientCert',
    // `admitsClient` decides: Node would close what it does not verify without a word.
    rejectUnauthorized: false,
    ...(protocols && { ALPNProtocols: protocols }),
  });
}

/**
 * TLS for accepted connections. Before each handshake it looks whether the files changed, so that a renewed
 * certificate serves the next client; connections that are open stay. Throws as `openCertificates` does.
 */
export function createHandshakes(options: HandshakesOptions, deps: HandshakesDeps): Handshakes {
  const { onSecure, onFailure } = deps;
  const certificates = openCertificates(options.tls, deps);
  const server = serverFor(options, certificates.context);
  const underWay = new Map<string, Socket>();

  server.on('secureConnection', (socket) => {
    underWay.delete(keyOf(socket));
    if (admitsClient(options.tls, socket)) return void onSecure(socket);
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
      underWay.set(key, socket);
      // A client that leaves in the middle shows as a failed handshake, or to whoever speaks over it.
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        if (underWay.get(key) === socket) underWay.delete(key);
      });
      // An HTTP server leaves its half open when a client has said all, but a handshake has nothing to say then.
      socket.allowHalfOpen = false;
      server.emit('connection', socket);
    },
    cut() {
      for (const socket of underWay.values()) socket.destroy();
    },
  };
}

/** The policy of a listener. */
export function clientAuthOf({ clientAuthType, clientCaFile }: ListenerTls): ClientAuthType {
  return clientAuthType ?? (clientCaFile === undefined ? 'NoClientCert' : 'RequireAndVerifyClientCert');
}

/** Addresses are compared in their short form. */
const short = (name: string): string =>
  isIPv6(name) ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;

const nameKinds: ReadonlySet<string> = new Set(['DNS', 'IP Address', 'email', 'URI']);

/** Values of DNS names, addresses, e-mails and URIs; Node quotes those that hold a separator. */
export function namesOf({ subjectAltName = '' }: Pick<X509Certificate, 'subjectAltName'>): string[] {
  // Each begins where the one before ended: what stands inside a value is never taken for another.
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

/** Whether a client that has shaken hands may go on; `authorized` is what OpenSSL found against `clientCaFile`. */
export function admitsClient(tls: ListenerTls, socket: TLSSocket): boolean {
  const certificate = socket.getPeerX509Certificate();
  if (!fitsPolicy(clientAuthOf(tls), certificate !== undefined, socket.authorized)) return false;
  const { clientAllowedSans } = tls;
  if (!certificate || !clientAllowedSans) return true;
  const allowed = new Set(clientAllowedSans.map(short));
  return namesOf(certificate).some((name) => allowed.has(name));
}
