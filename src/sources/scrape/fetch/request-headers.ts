import { authorizationOf, type ClientAuth, type ReadSecret, scrapeMarkHeader } from '../../../core/access.ts';
import { isLoopback } from '../../../core/address.ts';
import { ScrapeFailure } from '../failure.ts';
import type { ScrapeOptions } from '../options.ts';
import { accept } from './content.ts';

async function authorization(
  auth: ClientAuth | undefined,
  readSecret: ReadSecret,
): Promise<string | undefined> {
  try {
    return await authorizationOf(auth, readSecret);
  } catch (error) {
    throw new ScrapeFailure('credentials', 'the credentials of the scrape cannot be read', error);
  }
}

/** The headers of a request for a page. Rejects with `ScrapeFailure` when a credential is not there. */
export async function requestHeaders(
  { url, timeoutMs, auth }: ScrapeOptions,
  { mark, readSecret }: { mark: string; readSecret: ReadSecret },
): Promise<Record<string, string>> {
  const headers: Record<string, string> = {
    accept,
    'user-agent': 'svc-agent',
    'x-prometheus-scrape-timeout-seconds': String(timeoutMs / 1000),
    [scrapeMarkHeader]: mark,
  };
  // On the same machine packing costs both ends more than the bytes it saves.
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  if (!isLoopback(host)) headers['accept-encoding'] = 'gzip';
  const credentials = await authorization(auth, readSecret);
  if (credentials !== undefined) headers.authorization = credentials;
  return headers;
}
