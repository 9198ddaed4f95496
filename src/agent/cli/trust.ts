import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';

/** Which certificate an asked listener may show. */
export interface Trust {
  /** Any. */
  insecure?: boolean | undefined;
  /** PEM file of the authorities to trust instead of the usual ones. */
  caFile?: string | undefined;
  /** PEM file of the very certificate it must show, whatever its name and issuer. */
  certFile?: string | undefined;
}

/**
 * A TLS connection to a listener that may be trusted, nothing sent yet; `ended` breaks it off. Rejects with what
 * keeps it from being one.
 */
export async function connectTrusted(url: URL, trust: Trust, ended: AbortSignal): Promise<TLSSocket> {
  const { insecure, caFile, certFile } = trust;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const socket = connect({
    host,
    port: Number(url.port || 443),
    rejectUnauthorized: insecure !== true && certFile === undefined,
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    ...(/[a-z]/i.test(host) && !host.includes(':') && { servername: host }),
  });
  try {
    await once(socket, 'secureConnect', { signal: ended });
    const shown = socket.getPeerX509Certificate()?.fingerprint256;
    if (certFile !== undefined && shown !== new X509Certificate(readFileSync(certFile)).fingerprint256) {
      throw new Error(`the certificate is not that of ${certFile}`);
    }
    return socket;
  } catch (error) {
    socket.on('error', () => {}).destroy();
    throw error;
  }
}
