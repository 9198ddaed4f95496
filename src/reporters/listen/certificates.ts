import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import files from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { ListenerTls, ServedCertificate } from '../../core/access.ts';
import { AgentError, errorText } from '../../core/errors.ts';
import type { Log } from '../../core/ports.ts';
import { regularFileReaderSync } from '../../core/regular-file.ts';

export interface CertificatesDeps {
  /** The path of the `tls` block in the configuration, for the log and errors. */
  place: string;
  nowMs(): number;
  log: Log;
}

/** The certificate, key and client CAs of a listener. */
interface Certificates {
  readonly context: SecureContextOptions;
  readonly served: ServedCertificate;
  /**
   * Reads the files again if they changed; true if `context` is new. Invalid files are logged once, and the old files stay in use.
   */
  refresh(): boolean;
}

const fileKeys = ['certFile', 'keyFile', 'clientCaFile'] as const;

/** A text that changes when a file is replaced, even through a symbolic link. */
function stampOf(tls: ListenerTls): string {
  return fileKeys
    .map((key) => {
      const file = tls[key];
      const stat = file === undefined ? undefined : files.statSync(file, { throwIfNoEntry: false });
      return stat ? `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}` : '-';
    })
    .join(' ');
}

const readFile = regularFileReaderSync(files);

function readFiles(tls: ListenerTls, place: string): PemFiles {
  const read = (key: (typeof fileKeys)[number], file: string): Buffer => {
    try {
      return readFile(file);
    } catch (cause) {
      const what = `cannot be read (${errorText(cause)})`;
      const fault = { where: `${place}.${key}`, what, got: file, allowed: 'create it, and make it readable' };
      throw new AgentError('listen_failed', fault, cause);
    }
  };
  return {
    certFile: read('certFile', tls.certFile),
    keyFile: read('keyFile', tls.keyFile),
    clientCaFile: tls.clientCaFile === undefined ? undefined : read('clientCaFile', tls.clientCaFile),
  };
}

function settingsOf(tls: ListenerTls): SecureContextOptions {
  const suites = tls.cipherSuites?.map((suite) => cipherSuites[suite]);
  return {
    minVersion: versions[tls.minVersion ?? 'TLS12'],
    maxVersion: versions[tls.maxVersion ?? 'TLS13'],
    honorCipherOrder: tls.preferServerCipherSuites ?? true,
    ...(suites && { ciphers: [...suitesOfTls13, ...suites].join(':') }),
    ...(tls.curvePreferences && { ecdhCurve: tls.curvePreferences.map((curve) => curves[curve]).join(':') }),
  };
}

/** Throws for files that OpenSSL does not accept, such as a broken certificate in a chain. */
function checkContext(options: SecureContextOptions, { certFile }: ListenerTls, place: string): void {
  try {
    createSecureContext(options);
  } catch (cause) {
    const what = `these files cannot be used together (${errorText(cause)})`;
    throw new AgentError('listen_failed', { where: place, what, got: certFile }, cause);
  }
}

function loadContext(
  tls: ListenerTls,
  { place, nowMs, log }: CertificatesDeps,
): { context: SecureContextOptions; served: ServedCertificate } {
  const files = readFiles(tls, place);
  const fault = certificateFilesFault(files);
  if (fault) {
    const { key, ...rest } = fault;
    throw new AgentError('listen_failed', { where: `${place}.${key}`, got: tls[key], ...rest });
  }
  const { certFile: cert, keyFile: key, clientCaFile: ca } = files;
  const context = { ...settingsOf(tls), cert, key, ca };
  checkContext(context, tls, place);
  const endMs = expiredSince(cert, nowMs());
  if (endMs !== undefined) {
    const since = new Date(endMs).toISOString();
    log.write('warn', 'certificate expired', { where: `${place}.certFile`, file: tls.certFile, since });
  }
  return { context, served: { notAfterMs: Date.parse(new X509Certificate(cert).validTo) } };
}

/** Reads a listener's TLS files. Throws `listen_failed` for missing or invalid files. */
export function openCertificates(tls: ListenerTls, deps: CertificatesDeps): Certificates {
  const { place, log } = deps;
  let stamp = stampOf(tls);
  let loaded = loadContext(tls, deps);
  return {
    get context() {
      return loaded.context;
    },
    get served() {
      return loaded.served;
    },
    refresh() {
      const next = stampOf(tls);
      if (next === stamp) return false;
      stamp = next;
      try {
        loaded = loadContext(tls, deps);
      } catch (error) {
        log.write('error', 'cannot use the new certificate; the old one stays in use', { error });
        loaded = { ...loaded, served: { ...loaded.served, refused: errorText(error) } };
        return false;
      }
      log.write('info', 'certificate reloaded', { where: place, file: tls.certFile });
      return true;
    },
  };
}

type FileKey = 'certFile' | 'keyFile' | 'clientCaFile';

/** The contents of the files of a `ListenerTls`. */
type PemFiles = {
  readonly [K in FileKey]: ListenerTls[K] extends string ? Buffer : Buffer | undefined;
};

/** What is wrong with one of the files, and what is allowed. */
interface CertificateFault {
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

/** Why these files cannot be used together; undefined if they can. */
export function certificateFilesFault({
  certFile,
  keyFile,
  clientCaFile,
}: PemFiles): CertificateFault | undefined {
  const certificate = certificateIn(certFile);
  if (!certificate && typeof keyIn(certFile) !== 'string' && certificateIn(keyFile)) {
    const allowed = 'swap certFile and keyFile';
    return { key: 'certFile', what: 'holds the private key, and keyFile the certificate', allowed };
  }
  if (!certificate) {
    return {
      key: 'certFile',
      what: 'contains no certificate',
      allowed: 'use a PEM file, leaf certificate first',
    };
  }
  const key = keyIn(keyFile);
  if (typeof key === 'string') {
    const allowed = 'use a PEM file without a passphrase';
    return { key: 'keyFile', what: `contains no usable private key (${key})`, allowed };
  }
  if (!certificate.checkPrivateKey(key)) {
    const allowed = 'use the key that belongs to the certificate';
    return { key: 'keyFile', what: 'is not the key of the certificate', allowed };
  }
  if (clientCaFile && !certificateIn(clientCaFile)) {
    const allowed = 'use a PEM file of the CAs that sign client certificates';
    return { key: 'clientCaFile', what: 'contains no certificate', allowed };
  }
  return undefined;
}

/** When the certificate expired, ms since the epoch; undefined if it is valid. */
export function expiredSince(certFile: Buffer, nowMs: number): number | undefined {
  const endMs = Date.parse(new X509Certificate(certFile).validTo);
  return endMs < nowMs ? endMs : undefined;
}

/** OpenSSL's names of the TLS 1.2 cipher suites, by Go's names (crypto/tls, CipherSuites). The suites of TLS 1.3 are fixed. */
export const cipherSuites: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
};

/** OpenSSL's names of the TLS 1.3 cipher suites, which must be in the same list. */
const suitesOfTls13 = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
] as const;

/** OpenSSL's names of curves, by Go's names (crypto/tls, CurveID). */
export const curves: Readonly<Record<string, string>> = {
  X25519: 'X25519',
  CurveP256: 'prime256v1',
  CurveP384: 'secp384r1',
  CurveP521: 'secp521r1',
};

const versions = { TLS12: 'TLSv1.2', TLS13: 'TLSv1.3' } as const;
