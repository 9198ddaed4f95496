import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  type DetailedPeerCertificate,
  type TLSSocket,
} from 'node:tls';
import type { ClientTls } from '../../core/access.ts';
import { errorText } from '../../core/errors.ts';
import { type ConnectionReason, ProbeError } from '../probe-error.ts';

/**
 * TLS options for a host; reads the files each time. The handshake accepts every certificate, and `certificateFault`
 * verifies it afterwards, so that its expiry is known even if it is refused. Throws ProbeError `credentials`.
 */
export async function tlsOptions(host: string, tls: ClientTls): Promise<ConnectionOptions> {
  const { caFile, certFile, keyFile, serverName } = tls;
  const named = (serverName ?? host).replace(/\.$/, '');
  const read = (path: string | undefined) => (path === undefined ? undefined : readFile(path));
  try {
    const [ca, cert, key] = await Promise.all([read(caFile), read(certFile), read(keyFile)]);
    return {
      secureContext: createSecureContext({ ca, cert, key }),
      rejectUnauthorized: false,
      checkServerIdentity: (_, certificate) => checkServerIdentity(named, certificate),
      ...(isIP(named) === 0 && { servername: named }),
    };
  } catch (error) {
    throw new ProbeError('credentials', `the TLS files cannot be used: ${errorText(error)}`, error);
  }
}

/** The earliest expiry in the certificate chain, ms since the epoch; undefined without a certificate. */
export function earliestEndMs(socket: TLSSocket): number | undefined {
  const prints = new Set<string>();
  let earliestMs: number | undefined;
  let certificate: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  // A root certificate is its own issuer.
  while (certificate?.valid_to && !prints.has(certificate.fingerprint256)) {
    prints.add(certificate.fingerprint256);
    const endMs = Date.parse(certificate.valid_to);
    if (!(endMs >= (earliestMs ?? Number.POSITIVE_INFINITY))) earliestMs = endMs;
    certificate = certificate.issuerCertificate;
  }
  return earliestMs;
}

const reasons: Readonly<Record<string, ConnectionReason>> = {
  CERT_HAS_EXPIRED: 'tls_expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_hostname',
};

/** The fault of the certificate after the handshake; undefined for a trusted one. */
export function certificateFault(socket: TLSSocket): ProbeError | undefined {
  if (socket.authorized) return undefined;
  // Typed as an error, but it is a code.
  const code = String(socket.authorizationError);
  const { subject, subjectaltname } = socket.getPeerCertificate();
  const whose = subjectaltname ?? subject?.CN ?? 'nobody';
  return new ProbeError(reasons[code] ?? 'tls_untrusted', `${code}: the certificate is for ${whose}`);
}
