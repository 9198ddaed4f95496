import type { ClientAuth, ReadSecret, Secret } from '../../../core/access.ts';
import { authorizationOf } from '../../../core/authorization.ts';
import { HostedFailure } from './failure.ts';

/** What the protocols decide; the configuration cannot. */
const reserved: ReadonlySet<string> = new Set([
  'content-type',
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'connection',
  'host',
  'user-agent',
  'x-prometheus-remote-write-version',
]);

/**
 * What the configuration adds to each request; secrets are read anew each time. Rejects with `HostedFailure`
 * (`credentials`) when one is not there.
 */
export async function configuredHeaders(
  { headers, auth }: { headers: Readonly<Record<string, Secret>>; auth?: ClientAuth },
  readSecret: ReadSecret,
): Promise<Record<string, string>> {
  const read: Record<string, string> = {};
  try {
    for (const [name, secret] of Object.entries(headers)) {
      const lower = name.toLowerCase();
      if (!reserved.has(lower)) read[lower] = (await readSecret(secret)).trim();
    }
    const credentials = await authorizationOf(auth, readSecret);
    if (credentials !== undefined) read.authorization = credentials;
  } catch (error) {
    throw new HostedFailure('credentials', 'the credentials of the hosted platform cannot be read', error);
  }
  return read;
}
