import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { folder as runFolder } from '../../run-folder.ts';

const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'pipe' });

/** The files of a certificate. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A folder of certificates that `openssl` creates. */
export interface Certificates {
  readonly folder: string;
  authority(name: string, days?: number): Certificate;
  /** A certificate that `by` signs; it ends `days` from now, or that many days ago if negative. */
  signed(name: string, by: Certificate, options?: { sans?: string; days?: number }): Certificate;
}

/** Creates the folder, which is removed with the run. */
export function makeCertificates(): Certificates {
  const { path: folder } = runFolder();
  const files = (name: string): Certificate => ({
    cert: join(folder, `${name}.pem`),
    key: join(folder, `${name}.key`),
  });
  const newKey = ({ key }: Certificate) =>
    openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', key);
  return {
    folder,
    authority(name, days = 2) {
      const made = files(name);
      newKey(made);
      const subject = ['-days', String(days), '-subj', `/CN=${name}`];
      openssl('req', '-x509', '-new', '-key', made.key, '-out', made.cert, ...subject);
      return made;
    },
    signed(name, by, { sans = 'DNS:localhost,IP:127.0.0.1', days = 2 } = {}) {
      const made = files(name);
      newKey(made);
      const request = join(folder, `${name}.csr`);
      openssl('req', '-new', '-key', made.key, '-subj', `/CN=${name}`, '-out', request);
      const extensions = join(folder, `${name}.ext`);
      writeFileSync(extensions, `subjectAltName=${sans}\n`);
      const ca = ['-CA', by.cert, '-CAkey', by.key, '-CAcreateserial', '-extfile', extensions];
      openssl('x509', '-req', '-in', request, '-out', made.cert, '-days', String(days), ...ca);
      return made;
    },
  };
}
