import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { ListenerTls } from '../../../core/access.ts';
import { AgentError, errorText } from '../../../core/errors.ts';
import type { Log } from '../../../core/ports.ts';
import { certificateFault, expiredSince, type PemFiles } from './certificate-fault.ts';
import { cipherSuites, curves, suitesOfTls13, versions } from './tls-words.ts';

export interface CertificatesDeps {
  /** Place of the `tls` block in the configuration, for the log and errors. */
  place: string;
  nowMs(): number;
  log: Log;
}

/** The certificate, key and authorities of a listener, as they are on disk now. */
export interface Certificates {
  /** What a TLS context is made of. */
  readonly context: SecureContextOptions;
  /** Reads the files again if they changed; true if `context` is new. Files that do not fit are logged once, and what served before stays. */
  refresh(): boolean;
}

const fileKeys = ['certFile', 'keyFile', 'clientCaFile'] as const;

/** Changes with every replacement of a file, links swung round included. */
function stampOf(tls: ListenerTls): string {
  return fileKeys
    .map((key) => {
      const file = tls[key];
      const stat = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
      return stat ? `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}` : '-';
    })
    .join(' ');
}

function readFiles(tls: ListenerTls, place: string): PemFiles {
  const read = (key: (typeof fileKeys)[number], file: string): Buffer => {
    try {
      return readFileSync(file);
    } catch (cause) {
      const what = `cannot be read (${errorText(cause)})`;
      const fault = { where: `${place}.${key}`, what, got: file, allowed: 'put it there' };
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

/** Throws for what OpenSSL does not take, further certificates of a chain above all. */
function checkContext(options: SecureContextOptions, { certFile }: ListenerTls, place: string): void {
  try {
    createSecureContext(options);
  } catch (cause) {
    const what = `these files cannot be used together (${errorText(cause)})`;
    throw new AgentError('listen_failed', { where: place, what, got: certFile }, cause);
  }
}

function loadContext(tls: ListenerTls, { place, nowMs, log }: CertificatesDeps): SecureContextOptions {
  const files = readFiles(tls, place);
  const fault = certificateFault(files);
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
  return context;
}

/** Reads the files of a listener's TLS. Throws `listen_failed` for what is not there or does not fit. */
export function openCertificates(tls: ListenerTls, deps: CertificatesDeps): Certificates {
  const { place, log } = deps;
  let stamp = stampOf(tls);
  let context = loadContext(tls, deps);
  return {
    get context() {
      return context;
    },
    refresh() {
      const next = stampOf(tls);
      if (next === stamp) return false;
      stamp = next;
      try {
        context = loadContext(tls, deps);
      } catch (error) {
        log.write('error', 'certificate not taken, the old one stays', { error });
        return false;
      }
      log.write('info', 'certificate read again', { where: place, file: tls.certFile });
      return true;
    },
  };
}
