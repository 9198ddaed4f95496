import type { Exposition } from '../exposition/page-reader.ts';
import { ScrapeFailure } from '../failure.ts';

/**
 * Text 0.0.4 is asked for first: in OpenMetrics many clients give their counters another name (`_total`), and
 * the catalog's rules count on the names that a role has registered.
 */
export const accept =
  'text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,*/*;q=0.1';

const versions: Readonly<Record<string, { format: Exposition; versions: readonly string[] }>> = {
  'text/plain': { format: 'text', versions: ['0.0.4', '1.0.0'] },
  'application/openmetrics-text': { format: 'openmetrics', versions: ['0.0.1', '1.0.0'] },
};

/**
 * The format that a Content-Type names. One that is missing or blank, or `text/plain` without a version, is
 * text 0.0.4, as old exporters have it. Throws `ScrapeFailure` for any other, such as a page of HTML.
 */
export function expositionOf(contentType: string | undefined): Exposition {
  const [type, ...parameters] = (contentType ?? '').split(';').map((part) => part.trim());
  if (type === '' || type === undefined) return 'text';
  const known = versions[type.toLowerCase()];
  const version = parameters
    .map((parameter) => /^version="?([^"]*)"?$/i.exec(parameter)?.[1])
    .find((value) => value !== undefined);
  if (known === undefined || (version !== undefined && !known.versions.includes(version))) {
    throw new ScrapeFailure('content_type', `the target answers with ${JSON.stringify(contentType)}`);
  }
  return known.format;
}
