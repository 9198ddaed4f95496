import type { Clock } from '../../core/ports.ts';
import type { Trace } from '../connection/connect.ts';
import { ProbeError } from '../probe-error.ts';
import { type Connection, openConnection } from './connection.ts';
import type { Credentials } from './credentials.ts';
import type { Endpoint } from './endpoint.ts';
import { type ObjectPage, readPage } from './listing.ts';
import { refusalOf } from './refusal.ts';

export interface BucketOptions {
  endpoint: Endpoint;
  region: string;
  bucket: string;
  /** Without them requests are not signed. */
  credentials?: Credentials;
  /** File of certificates to trust instead of the usual ones. */
  caFile?: string;
}

export interface ListRequest {
  /** Beginning of all keys that are wanted. */
  prefix: string;
  /** Only keys after this one. */
  startAfter?: string;
  /** Goes on where the page that it is from ended. */
  continuation?: string;
}

export interface BucketDeps {
  /** The wall clock dates the signatures. */
  clock: Clock;
  /** Is told of each step, and of the end of the server's certificate. */
  trace: Trace;
  /** Ends all of it. */
  signal: AbortSignal;
}

/** One bucket of an object store that speaks the S3 API, path-style. */
export interface Bucket {
  /** One page of at most 1000 objects. Throws ProbeError, soon after the signal aborts too. */
  list(request: ListRequest): Promise<ObjectPage>;
  close(): Promise<void>;
}

/** A full page with the longest keys, each character of them encoded in three. */
const maxBytes = 8 << 20;
/** SHA-256 of a request without body. */
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** Loads what it needs and connects with the first list. */
export function createBucket(options: BucketOptions, { clock, trace, signal }: BucketDeps): Bucket {
  const { endpoint, caFile } = options;
  let connection: Connection | undefined;
  return {
    async list(request) {
      connection ??= await openConnection({ origin: endpoint.origin, caFile, maxBytes }, { trace, signal });
      const path = listPath(options, request);
      const answer = await connection.get(path, await headersOf(options, path, clock.nowMs()));
      if (answer.status !== 200) throw refusalOf(answer);
      const page = readPage(answer.body);
      if (page.continuation !== undefined && page.continuation === request.continuation) {
        throw new ProbeError('invalid_answer', 'the object store goes on with the page just asked for');
      }
      return page;
    },
    async close() {
      await connection?.close();
    },
  };
}

function listPath({ endpoint, bucket }: BucketOptions, request: ListRequest): string {
  const { prefix, startAfter, continuation } = request;
  const parameters: Record<string, string | undefined> = {
    'list-type': '2',
    'max-keys': '1000',
    'encoding-type': 'url',
    prefix: prefix || undefined,
    'start-after': continuation === undefined ? startAfter : undefined,
    'continuation-token': continuation,
  };
  const query = Object.entries(parameters)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .map((entry) => entry.map(strictlyEncoded).join('='));
  return `${endpoint.basePath}/${strictlyEncoded(bucket)}?${query.join('&')}`;
}

/** As the signature has it (RFC 3986), so that no proxy on the way has anything to rewrite. */
function strictlyEncoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The headers of a request, signed by AWS Signature Version 4. */
async function headersOf(
  { endpoint, region, credentials }: BucketOptions,
  path: string,
  nowMs: number,
): Promise<Record<string, string>> {
  const headers = { 'user-agent': 'svc-agent' };
  if (credentials === undefined) return headers;
  const { AwsV4Signer } = await import('aws4fetch');
  const signed = await new AwsV4Signer({
    ...credentials,
    url: endpoint.origin + path,
    headers: { ...headers, 'x-amz-content-sha256': emptyHash },
    service: 's3',
    region,
    datetime: new Date(nowMs).toISOString().replace(/[:-]|\.\d{3}/g, ''),
  }).sign();
  return Object.fromEntries(signed.headers);
}
