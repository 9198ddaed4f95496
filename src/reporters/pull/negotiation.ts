import type { Format } from './exposition.ts';

interface Range {
  /** A `type/subtype` or an encoding, in lower case. */
  readonly name: string;
  readonly version: string | undefined;
  readonly q: number;
}

/** Parses `Accept` and `Accept-Encoding` (RFC 9110, 12.5); an invalid q counts as 0. */
function ranges(header: string | undefined): Range[] {
  return (header ?? '')
    .split(',')
    .map((item) => item.split(';').map((word) => word.trim().toLowerCase()))
    .filter(([name]) => name)
    .map(([name = '', ...words]) => {
      const parameters = new Map(
        words.map((word): [string, string] => {
          const [key = '', value = ''] = word.split(/\s*=\s*/, 2);
          return [key, value];
        }),
      );
      const q = Number(parameters.get('q') ?? '1');
      const version = parameters.get('version')?.replaceAll('"', '');
      return { name, version, q: q >= 0 && q <= 1 ? q : 0 };
    });
}

/** The q in the header of the most specific of `names`; undefined if the header names none of `names`. */
function quality(wanted: readonly Range[], names: readonly string[], version?: string): number | undefined {
  for (const name of names) {
    const found = wanted.filter(
      (range) => range.name === name && (!range.version || !version || range.version === version),
    );
    if (found.length > 0) return Math.max(...found.map(({ q }) => q));
  }
  return undefined;
}

/**
 * The format for an `Accept` header: OpenMetrics if `openMetrics` allows it and the client prefers version 1.0.0 (or no version)
 * at least as much as text; otherwise text, even for a client that accepts neither.
 */
export function chooseFormat(accept: string | undefined, openMetrics: boolean): Format {
  if (!openMetrics) return 'text';
  const wanted = ranges(accept);
  const structured = quality(wanted, ['application/openmetrics-text', 'application/*'], '1.0.0') ?? 0;
  const plain = quality(wanted, ['text/plain', 'text/*', '*/*'], '0.0.4') ?? 0;
  return structured > 0 && structured >= plain ? 'openmetrics' : 'text';
}

/** Whether an `Accept-Encoding` header prefers gzip at least as much as no compression. */
export function wantsGzip(acceptEncoding: string | undefined): boolean {
  const wanted = ranges(acceptEncoding);
  const gzip = quality(wanted, ['gzip', 'x-gzip', '*']) ?? 0;
  return gzip > 0 && gzip >= (quality(wanted, ['identity']) ?? 0);
}
