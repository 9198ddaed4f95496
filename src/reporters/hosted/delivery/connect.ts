import { readFile } from 'node:fs/promises';
import type { buildConnector } from 'undici';
import build from 'undici/lib/core/connect.js';
import type { ClientTls } from '../../../core/access.ts';
import { HostedFailure } from './failure.ts';

async function tlsOptions({ caFile, certFile, keyFile, serverName, insecure }: ClientTls): Promise<object> {
  const read = (path: string | undefined) => (path === undefined ? undefined : readFile(path));
  try {
    const [ca, cert, key] = await Promise.all([read(caFile), read(certFile), read(keyFile)]);
    return { ca, cert, key, servername: serverName, rejectUnauthorized: insecure !== true };
  } catch (error) {
    throw new HostedFailure('credentials', `a TLS file cannot be read: ${String(error)}`, error);
  }
}

/** Opens connections; TLS files are read for each, so that a renewed certificate is taken up. */
export function createConnect(timeoutMs: number, tls: ClientTls | undefined): buildConnector.connector {
  return (target, callback) => {
    const open = (options: object): void =>
      build({ timeout: timeoutMs, ...options } as buildConnector.BuildOptions)(target, callback);
    if (tls === undefined) open({});
    else tlsOptions(tls).then(open, (error: Error) => callback(error, null));
  };
}
