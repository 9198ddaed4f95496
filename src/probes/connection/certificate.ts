import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  type DetailedPeerCertificate,
  type SecureContext,
  type TLSSocket,
} from 'node:tls';
import type { ClientTls } from '../../core/access.ts';
import { errorText } from '../../core/errors.ts';
import { type ConnectionReason, excerpt, ProbeError } from '../probe-error.ts';

/**
 * TLS options for a host; reads the files each time. The handshake accepts every certificate, and `certificateFault`
 * verifies it afterwards, so that its expiry is known even if it is refused. Throws ProbeError `credentials`.
 */
export async function tlsOptions(host: string, tls: ClientTls): Promise<ConnectionOptions> {
  const { caFile, certFile, keyFile, serverName } = tls;
  const named = (serverName ?? host).replace(/\.$/, '');
  // One after the other: of two missing files the message always names the same one.
  const ca = await readTlsFile('caFile', caFile);
  const cert = await readTlsFile('certFile', certFile);
  const key = await readTlsFile('keyFile', keyFile);
  return {
    secureContext: contextOf({ ca, cert, key }),
    rejectUnauthorized: false,
    checkServerIdentity: (_, certificate) => checkServerIdentity(named, certificate),
    ...(isIP(named) === 0 && { servername: named }),
  };
}

async function readTlsFile(name: string, path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    throw new ProbeError('credentials', `tls.${name}: cannot be read: ${errorText(error)}`, error);
  }
}

interface TlsFiles {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
}

function contextOf({ ca, cert, key }: TlsFiles): SecureContext {
  try {
    return createSecureContext({ ca, cert, key });
  } catch (error) {
    throw new ProbeError('credentials', `${wrongFile({ ca, cert, key })} (${errorText(error)})`, error);
  }
}

/** OpenSSL does not say which file is wrong. */
function wrongFile({ ca, cert, key }: TlsFiles): string {
  const isUsable = (files: TlsFiles) => {
    try {
      return createSecureContext(files) !== undefined;
    } catch {
      return false;
    }
  };
  if (!isUsable({ ca })) return 'tls.caFile: not a certificate in PEM';
  if (!isUsable({ cert })) return 'tls.certFile: not a certificate in PEM';
  if (!isUsable({ key })) return 'tls.keyFile: not a private key in PEM without a passphrase';
  return 'tls.keyFile: not the key of tls.certFile';
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
  const { subject, subjectaltname, valid_to } = socket.getPeerCertificate();
  const whose = subjectaltname ?? subject?.CN ?? 'nobody';
  const advice: Readonly<Record<string, string>> = {
    CERT_HAS_EXPIRED: `the server’s certificate expired on ${valid_to}; renew it there`,
    ERR_TLS_CERT_ALTNAME_INVALID: `the certificate is for ${whose}; use such a name as the address, or set tls.serverName`,
  };
  const usual = `the certificate, for ${whose}, has no trusted issuer; set tls.caFile to the certificate of its authority`;
  return new ProbeError(reasons[code] ?? 'tls_untrusted', `${advice[code] ?? usual} (${code})`);
}

/** What OpenSSL says when a handshake fails, and what to do about it. */
const handshakeFaults: readonly (readonly [RegExp, string])[] = [
  [
    /wrong version number|packet length too long|http request|record layer/i,
    'the server does not speak TLS on this port; remove tls, or use another port',
  ],
  [
    /certificate required|handshake failure|bad certificate|no certificate/i,
    'the server refused the handshake; if it asks for a client certificate, set tls.certFile and tls.keyFile',
  ],
  [
    /unknown ca/i,
    'the server does not trust the client’s certificate; set tls.certFile to one that it trusts',
  ],
  [/alert certificate expired/i, 'the client’s certificate has expired; renew tls.certFile'],
  [
    /unsupported protocol|protocol version|no protocols/i,
    'the server offers no TLS version that is still safe',
  ],
];

/** A failed handshake in plain words with OpenSSL's in parentheses; undefined for errors of the network. */
export function handshakeFault(thrown: unknown): ProbeError | undefined {
  const { code, library, reason } = (thrown ?? {}) as Record<string, unknown>;
  const isOpenSsl = library !== undefined || /^(?:ERR_SSL_|EPROTO)/.test(String(code));
  if (!isOpenSsl) return undefined;
  const said = typeof reason === 'string' ? reason : excerpt(errorText(thrown));
  const known = handshakeFaults.find(([pattern]) => pattern.test(said));
  const what = known?.[1] ?? 'the TLS handshake failed; check tls and what the server offers';
  return new ProbeError('tls', `${what} (${said})`, thrown);
}
