import { errorText, systemCode } from './errors.ts';
import { excerpt } from './text-formats.ts';

/** OpenSSL's messages for a failed handshake, with advice for each. */
const handshakes: readonly (readonly [RegExp, string])[] = [
  [
    /wrong version number|packet length too long|http request|record layer/i,
    'the server does not speak TLS on this port; remove tls, or use another port',
  ],
  [
    /certificate required|handshake failure|bad certificate|no certificate/i,
    'the server refused the handshake; if it requires a client certificate, set tls.certFile and tls.keyFile',
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

/** A failed handshake in plain words, with OpenSSL's words in parentheses; undefined for errors of the network. */
export function handshakeText(thrown: unknown): string | undefined {
  const { code, library, reason } = (thrown ?? {}) as Record<string, unknown>;
  const isOpenSsl = library !== undefined || /^(?:ERR_SSL_|EPROTO)/.test(String(code));
  if (!isOpenSsl) return undefined;
  const text = typeof reason === 'string' ? reason : excerpt(errorText(thrown));
  const known = handshakes.find(([pattern]) => pattern.test(text));
  const what = known?.[1] ?? 'the TLS handshake failed; check tls and what the server offers';
  return `${what} (${text})`;
}

/** The text of an error of the network. Node has a text of its own for a connection that ends during the TLS handshake. */
export function networkText(thrown: unknown): string {
  const text = errorText(thrown);
  return text.startsWith('Client network socket disconnected before secure TLS')
    ? 'the server closed the connection during the TLS handshake'
    : text;
}

/** What is known about a server's certificate. */
interface PeerCertificate {
  subject?: { CN?: string | string[] };
  subjectaltname?: string;
  valid_to?: string;
}

/** Why a server's certificate is not trusted, by the code of the verification, with advice and the code. */
export function certificateText(
  code: string,
  { subject, subjectaltname, valid_to }: PeerCertificate = {},
): string {
  const whose = subjectaltname ?? subject?.CN;
  const isFor = whose === undefined ? '' : `, for ${whose},`;
  const expiry = valid_to === undefined ? 'has expired' : `expired on ${valid_to}`;
  const advice: Readonly<Record<string, string>> = {
    CERT_HAS_EXPIRED: `the server’s certificate ${expiry}; renew it there`,
    CERT_NOT_YET_VALID: `the server’s certificate${isFor} is not valid yet; check the clocks of both hosts`,
    ERR_TLS_CERT_ALTNAME_INVALID: `the certificate is for ${whose ?? 'another name'}; use such a name as the address, or set tls.serverName`,
  };
  const usual = `the certificate${isFor} has no trusted issuer; set tls.caFile to the certificate of its authority`;
  return `${advice[code] ?? usual} (${code})`;
}

const certificateCode =
  /^(?:CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_MISMATCH|ERR_TLS_CERT_ALTNAME)/;

/** The TLS error of a client that verifies in the handshake, in plain words; undefined for any other error. */
export function tlsFaultText(thrown: unknown): string | undefined {
  const code = systemCode(thrown) ?? '';
  if (!certificateCode.test(code)) return handshakeText(thrown);
  return certificateText(code, (thrown as { cert?: PeerCertificate }).cert);
}

/** The text for a server that closes a TLS connection: it may require a certificate, and refuses a client without one silently. */
export const closedByServer = (text: string): string =>
  `the server closed the TLS connection without an answer; if it requires a client certificate, set tls.certFile and tls.keyFile (${text})`;
