import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { ListenerTls } from '../../../core/access.ts';
import { errorText } from '../../../core/errors.ts';

type FileKey = 'certFile' | 'keyFile' | 'clientCaFile';

/** What the files of a `ListenerTls` hold. */
export type PemFiles = {
  readonly [K in FileKey]: ListenerTls[K] extends string ? Buffer : Buffer | undefined;
};

/** What is wrong with one of the files, and what would be right. */
export interface CertificateFault {
  readonly key: FileKey;
  readonly what: string;
  readonly allowed: string;
}

function certificateIn(pem: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

function keyIn(pem: Buffer): KeyObject | string {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    return errorText(error);
  }
}

/** Why these files cannot serve TLS together; undefined if they can. */
export function certificateFault({
  certFile,
  keyFile,
  clientCaFile,
}: PemFiles): CertificateFault | undefined {
  const certificate = certificateIn(certFile);
  if (!certificate) {
    return { key: 'certFile', what: 'holds no certificate', allowed: 'use a PEM file, leaf first' };
  }
  const key = keyIn(keyFile);
  if (typeof key === 'string') {
    const allowed = 'use a PEM file without a passphrase';
    return { key: 'keyFile', what: `holds no usable private key (${key})`, allowed };
  }
  if (!certificate.checkPrivateKey(key)) {
    const allowed = 'use the key that the certificate was made for';
    return { key: 'keyFile', what: 'is not the key of the certificate', allowed };
  }
  if (clientCaFile && !certificateIn(clientCaFile)) {
    const allowed = 'use a PEM file of the authorities that sign client certificates';
    return { key: 'clientCaFile', what: 'holds no certificate', allowed };
  }
  return undefined;
}

/** Since when the certificate is of no use any more, ms since the epoch; undefined while it is. */
export function expiredSince(certFile: Buffer, nowMs: number): number | undefined {
  const endMs = Date.parse(new X509Certificate(certFile).validTo);
  return endMs < nowMs ? endMs : undefined;
}
