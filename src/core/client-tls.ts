import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls';
import type { ClientTls } from './access.ts';
import { errorText } from './errors.ts';

/** Why the TLS files of a connection cannot be used. The message names the key of the file. */
export class TlsFileError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'TlsFileError';
  }
}

type ReadFile = (path: string) => Promise<Buffer>;

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

function contextOf(files: TlsFiles): SecureContext {
  try {
    return createSecureContext(files);
  } catch (error) {
    throw new TlsFileError(`${wrongFile(files)} (${errorText(error)})`, error);
  }
}

/** The names of the files that may be wrong: OpenSSL does not report which one is. */
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

/**
 * The certificates and the key of a connection. `read` reads a file; it is called for each connection, so that renewed
 * certificates are used. Rejects with `TlsFileError` if a file cannot be read or used, or if the key is of another certificate:
 * `tls.connect` would throw that within the connection's callback.
 */
export async function clientContext(
  { caFile, certFile, keyFile }: ClientTls,
  read: ReadFile,
): Promise<SecureContext> {
  // The files are read one after the other, so that of two missing files the message always names the same one.
  const ca = await readTlsFile('caFile', caFile, read);
  const cert = await readTlsFile('certFile', certFile, read);
  const key = await readTlsFile('keyFile', keyFile, read);
  return contextOf({ ca, cert, key });
}

/** The options of a connection in the form of Node.js. Rejects like `clientContext`. */
export const connectionTls = async (tls: ClientTls, read: ReadFile): Promise<ConnectionOptions> => ({
  secureContext: await clientContext(tls, read),
  servername: tls.serverName,
  rejectUnauthorized: tls.insecure !== true,
});
