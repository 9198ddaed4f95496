import type { X509Certificate } from 'node:crypto';
import { isIPv6 } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ClientAuthType, ListenerTls } from '../../../core/access.ts';

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
