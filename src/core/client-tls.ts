import type { ClientTls } from './access.ts';
import { errorText } from './errors.ts';

/** Why the TLS files of a connection cannot be used. The message names the key of the file. */
export class TlsFileError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'TlsFileError';
  }
}

type ReadFile = (path: string) => Promise<Buffer>;

/** `readFile` of `node:fs/promises` and `createSecureContext` of `node:tls`. */
interface TlsAccess<Context> {
  readFile: ReadFile;
  createSecureContext(files: TlsFiles): Context;
}

async function readTlsFile(
  key: 'caFile' | 'certFile' | 'keyFile',
  path: string | undefined,
  read: ReadFile,
): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await read(path);
  } catch (error) {
    throw new TlsFileError(`tls.${key}: cannot be read: ${errorText(error)}`, error);
  }
}

interface TlsFiles {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
}

type Create<Context> = TlsAccess<Context>['createSecureContext'];

/** A whole certificate in PEM (RFC 7468, section 5). */
const certificate =
  /-----BEGIN (X509 |TRUSTED |)CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END \1CERTIFICATE-----/;

/**
 * Whether a file of authorities contains a whole certificate. OpenSSL accepts files of which it can read nothing, and then trusts
 * nobody.
 */
export const hasCertificate = (pem: Buffer): boolean => certificate.test(pem.toString('latin1'));

function contextOf<Context>(files: TlsFiles, create: Create<Context>): Context {
  try {
    return create(files);
  } catch (error) {
    throw new TlsFileError(`${wrongFile(files, create)} (${errorText(error)})`, error);
  }
}

/** What is wrong with the files. OpenSSL does not report which file is at fault. */
function wrongFile({ ca, cert, key }: TlsFiles, create: Create<unknown>): string {
  const isUsable = (files: TlsFiles) => {
    try {
      return create(files) !== undefined;
    } catch {
      return false;
    }
  };
  if (!isUsable({ ca })) return 'tls.caFile: not a certificate in PEM';
  if (!isUsable({ cert })) return 'tls.certFile: not a certificate in PEM';
  if (!isUsable({ key })) return 'tls.keyFile: not a private key in PEM without a passphrase';
  return 'tls.keyFile: not the key of tls.certFile';
}

/**
 * The certificates and the key of a connection. The files are read for each connection, so that renewed certificates are used.
 * Rejects with `TlsFileError` if a file cannot be read or used, or if the key belongs to another certificate: `tls.connect` would
 * throw this error within the connection's callback.
 */
export async function clientContext<Context>(
  { caFile, certFile, keyFile }: ClientTls,
  { readFile, createSecureContext }: TlsAccess<Context>,
): Promise<Context> {
  // The files are read one after the other, so that the message always names the same file if two are missing.
  const ca = await readTlsFile('caFile', caFile, readFile);
  if (ca && !hasCertificate(ca)) throw new TlsFileError('tls.caFile: not a certificate in PEM');
  const cert = await readTlsFile('certFile', certFile, readFile);
  const key = await readTlsFile('keyFile', keyFile, readFile);
  return contextOf({ ca, cert, key }, createSecureContext);
}

/** The options of a connection in the form of Node.js. Rejects like `clientContext`. */
export const connectionTls = async (tls: ClientTls, access: TlsAccess<unknown>): Promise<object> => ({
  secureContext: await clientContext(tls, access),
  servername: tls.serverName,
  rejectUnauthorized: tls.insecure !== true,
});
