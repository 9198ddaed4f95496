import { systemCode } from './errors.ts';

/** What befell a connection, as far as the code of what was thrown tells. */
export type NetworkFault = 'resolve' | 'refused' | 'unreachable' | 'reset' | 'tls' | 'too_slow';

const faults: Readonly<Record<string, NetworkFault>> = {
  ENOTFOUND: 'resolve',
  EAI_AGAIN: 'resolve',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'too_slow',
  UND_ERR_CONNECT_TIMEOUT: 'too_slow',
  UND_ERR_HEADERS_TIMEOUT: 'too_slow',
  UND_ERR_BODY_TIMEOUT: 'too_slow',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'reset',
  EPROTO: 'tls',
};
const tlsCode =
  /^(?:ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(?:GET|VERIFY)|HOSTNAME_MISMATCH)/;

/** The fault behind a system's, an HTTP client's or a TLS library's code; undefined for any other. */
export function networkFault(thrown: unknown): NetworkFault | undefined {
  const code = systemCode(thrown) ?? '';
  if (Object.hasOwn(faults, code)) return faults[code];
  return tlsCode.test(code) ? 'tls' : undefined;
}
