import { createHash } from 'node:crypto';
import type { buildConnector, Client, Dispatcher } from 'undici';
import { errorText } from '../../core/errors.ts';
import type { Clock, Tracing } from '../../core/ports.ts';
import type { ArchiveFailureReason } from '../../core/reasons.ts';
import type { ObjectStoreAddress } from '../../core/text-formats.ts';
import { connectTo, type Trace, untilAborted } from '../connection.ts';
import { connectionFault, excerpt, ProbeError } from '../probe.ts';
import { type ObjectPage, type ObjectStoreAnswer, readPage, refusalOf } from './answers.ts';

/** A pair of keys, with the token of temporary keys. */
interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

interface CredentialSource {
  /**
   * The credentials of the AWS SDK's default chain: environment, shared files (`~/.aws`), web identity, container and instance
   * metadata. Temporary credentials are cached until shortly before they expire, others are read again each time. Undefined if
   * none are configured. Throws ProbeError: `credentials` if configured credentials cannot be used, `too_slow` when the signal
   * aborts.
   */
  read(signal: AbortSignal): Promise<Credentials | undefined>;
}

/** The places from which credentials come, for messages. */
export const credentialPlaces =
  'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a shared credentials file, a web identity or an instance role';

/** Variables that request credentials: if one of them is set, finding none is a fault. */
const configuredBy = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_PROFILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
];

/** The times for requests to the token service; by default, a request to instance metadata has one second. */
const requestTimes = { connectionTimeout: 3000, requestTimeout: 10_000 };

type Provider = () => Promise<Credentials & { expiration?: Date }>;

/**
 * Creates the source, which loads the SDK's chain at the first use. `region` is that of the token service, if the environment has
 * none.
 */
export function createCredentialSource(region: string): CredentialSource {
  let provider: Provider | undefined;
  const open = async (): Promise<Provider> => {
    // Without this, the SDK would print on standard error, which is the agent's log, that it drops support for the oldest Node.
    process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
    const { defaultProvider } = await import('./credential-chain.ts');
    const clientConfig = { region: process.env.AWS_REGION ?? region, requestHandler: requestTimes };
    return defaultProvider({ ignoreCache: true, clientConfig });
  };
  return {
    async read(signal) {
      try {
        provider ??= await open();
        const found = await untilAborted(provider(), signal);
        if (found.expiration === undefined) provider = undefined;
        const { accessKeyId, secretAccessKey, sessionToken } = found;
        return { accessKeyId, secretAccessKey, sessionToken };
      } catch (error) {
        provider = undefined;
        if (signal.aborted) throw new ProbeError('too_slow', 'the credentials were not read in time', error);
        const asked = configuredBy.filter((name) => process.env[name]);
        if (asked.length === 0 && isNoneFound(error)) return undefined;
        const where = asked.length === 0 ? '' : ` (${asked.join(', ')} is set)`;
        throw new ProbeError('credentials', `no credentials: ${excerpt(errorText(error))}${where}`, error);
      }
    },
  };
}

/** Whether no provider of the chain is configured; any other error is from a configured provider. */
const isNoneFound = (error: unknown): boolean =>
  error instanceof Error && error.name === 'CredentialsProviderError';

interface SignedRequest {
  method: 'GET' | 'PUT' | 'DELETE';
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: Buffer;
}

/** One connection to one origin, reused by every request; reopened after the server closes it. */
interface ObjectStoreConnection {
  /** Sends a request; follows no redirect. Throws ProbeError, also soon after the signal aborts. */
  send(request: SignedRequest): Promise<ObjectStoreAnswer>;
  close(): Promise<void>;
}

interface ConnectionOptions {
  /** Scheme, host and port. */
  origin: string;
  /** File with the certificates to trust instead of the system's. */
  caFile?: string;
  /** The maximum size of a response body. */
  maxBytes: number;
}

interface ConnectionDeps {
  /** Records the phases. */
  trace: Trace;
  /** Ends every request. */
  signal: AbortSignal;
}

/** Loads the HTTP client. It connects at the first request. */
async function openConnection(
  options: ConnectionOptions,
  deps: ConnectionDeps,
): Promise<ObjectStoreConnection> {
  const { default: HttpClient } = await import('undici/lib/dispatcher/client.js');
  const client = new HttpClient(options.origin, {
    pipelining: 1,
    // The signal bounds the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: dialling(options, deps),
  });
  return {
    send: (request) => exchange(client, { ...request }, options.maxBytes, deps),
    close: () => client.destroy(null),
  };
}

function dialling({ origin, caFile }: ConnectionOptions, deps: ConnectionDeps): buildConnector.connector {
  const { protocol, hostname, port } = new URL(origin);
  const tls = protocol === 'https:' ? { caFile } : undefined;
  const host = hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: Number(port) || (tls ? 443 : 80) };
  return (_, callback) => {
    connectTo(address, { tls, protocols: tls && ['http/1.1'], trace: deps.trace }, deps.signal).then(
      ({ socket }) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

function exchange(
  client: Client,
  request: Dispatcher.DispatchOptions,
  maxBytes: number,
  { trace, signal }: ConnectionDeps,
): Promise<ObjectStoreAnswer> {
  const late = new ProbeError('too_slow', 'the object store did not answer in time');
  if (signal.aborted) return Promise.reject(late);
  let controller: Dispatcher.DispatchController | undefined;
  // Before there is a connection, connecting itself fails, and its error names the phase.
  const abort = (): void => controller?.abort(late);
  signal.addEventListener('abort', abort, { once: true });
  const answer = new Promise<ObjectStoreAnswer>((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let head: Pick<ObjectStoreAnswer, 'status' | 'header'>;
    client.dispatch(request, {
      onRequestStart(started) {
        controller = started;
        trace.enter('first_byte');
        if (signal.aborted) started.abort(late);
      },
      onResponseStart(_, status, headers) {
        trace.enter('body');
        head = { status, header: (name) => [headers[name] ?? []].flat()[0] };
      },
      onResponseData(flow, chunk) {
        size += chunk.length;
        if (size <= maxBytes) chunks.push(chunk);
        else flow.abort(new ProbeError('too_large', `the response has more than ${maxBytes} bytes`));
      },
      onResponseEnd: () => resolve({ ...head, body: Buffer.concat(chunks) }),
      onResponseError: (_, error) => reject(signal.aborted && controller ? late : objectStoreFailure(error)),
    });
  });
  return answer.finally(() => {
    signal.removeEventListener('abort', abort);
    trace.end();
  });
}

/** A ProbeError for whatever was thrown during a request. */
export function objectStoreFailure(thrown: unknown): ProbeError<ArchiveFailureReason> {
  if (thrown instanceof ProbeError) return thrown;
  const { reason, msg } = connectionFault(thrown);
  if (thrown instanceof Error && thrown.name === 'HTTPParserError') {
    return new ProbeError('invalid_answer', `the response is not HTTP: ${msg}`, thrown);
  }
  return new ProbeError(reason, msg.trim(), thrown);
}

interface BucketOptions {
  endpoint: ObjectStoreAddress;
  region: string;
  bucket: string;
  /** The keys; without them requests are not signed. */
  credentials?: Credentials;
  /** File with the certificates to trust instead of the system's. */
  caFile?: string;
}

interface ListRequest {
  prefix: string;
  /** Only keys after this one. */
  startAfter?: string;
  /** The token from the page before. */
  continuation?: string;
}

interface BucketDeps {
  /** The clock that dates the signatures. */
  clock: Clock;
  /** Records the phases and the expiry of the server's certificate. */
  trace: Trace;
  /** Ends every request. */
  signal: AbortSignal;
  tracing?: Tracing;
}

/** Sends a request within a span. Keys of archived objects name workflows, so they are not in the span. */
function traced(
  tracing: Tracing | undefined,
  method: string,
  request: () => Promise<ObjectStoreAnswer>,
): Promise<ObjectStoreAnswer> {
  if (!tracing) return request();
  return tracing.span('object_store', { 'http.request.method': method }, async (found) => {
    const answer = await request();
    const fault = answer.status < 400 ? undefined : refusalOf(answer).message;
    found({ 'http.response.status_code': answer.status }, fault);
    return answer;
  });
}

/** One bucket of an object store with the S3 API, path-style. Every call throws ProbeError, also soon after the signal aborts. */
export interface Bucket {
  /** One page of at most 1000 objects. */
  list(request: ListRequest): Promise<ObjectPage>;
  put(key: string, body: Buffer): Promise<void>;
  /** Reads the object, or its first bytes. */
  get(key: string, firstBytes?: number): Promise<Buffer>;
  /** Deletes the object; also succeeds if there is none. */
  delete(key: string): Promise<void>;
  close(): Promise<void>;
}

/** The size of a full page with the longest keys, each of their characters percent-encoded. */
const maxBytes = 8 << 20;

/** Creates the bucket, which loads the HTTP client and connects with the first call. */
export function createBucket(options: BucketOptions, { clock, trace, signal, tracing }: BucketDeps): Bucket {
  const { endpoint, caFile } = options;
  let connection: ObjectStoreConnection | undefined;
  const send = async (
    method: SignedRequest['method'],
    path: string,
    body?: Buffer,
    firstBytes?: number,
  ): Promise<ObjectStoreAnswer> => {
    connection ??= await openConnection({ origin: endpoint.origin, caFile, maxBytes }, { trace, signal });
    const signed = await signedHeaders(options, { method, path, body }, clock.nowMs());
    const range = firstBytes && { range: `bytes=0-${firstBytes - 1}` };
    const { send } = connection;
    const answer = await traced(tracing, method, () =>
      send({ method, path, headers: { ...signed, ...range, ...tracing?.headers() }, body }),
    );
    // An empty object has no first byte.
    if (answer.status === 416 && firstBytes) return { ...answer, body: Buffer.alloc(0) };
    const isPart = answer.status === 206 && firstBytes !== undefined;
    if (answer.status !== 200 && !isPart && !(method === 'DELETE' && answer.status === 204))
      throw refusalOf(answer);
    return answer;
  };
  return {
    async list(request) {
      const page = readPage((await send('GET', listPath(options, request))).body);
      if (page.continuation !== undefined && page.continuation === request.continuation) {
        throw new ProbeError('invalid_answer', 'the object store continues with the page just requested');
      }
      return page;
    },
    async put(key, body) {
      await send('PUT', objectPath(options, key), body);
    },
    get: async (key, firstBytes) => (await send('GET', objectPath(options, key), undefined, firstBytes)).body,
    async delete(key) {
      await send('DELETE', objectPath(options, key));
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

const objectPath = ({ endpoint, bucket }: BucketOptions, key: string): string =>
  [endpoint.basePath, bucket, ...key.split('/')]
    .map((part, i) => (i === 0 ? part : strictlyEncoded(part)))
    .join('/');

/** A text, percent-encoded as in the signature (RFC 3986), so that no proxy rewrites it. */
function strictlyEncoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The headers of a request, with an AWS Signature Version 4 if there are credentials. */
async function signedHeaders(
  { endpoint, region, credentials }: BucketOptions,
  { method, path, body }: Omit<SignedRequest, 'headers'>,
  nowMs: number,
): Promise<Record<string, string>> {
  const headers = { 'user-agent': 'svc-agent' };
  if (credentials === undefined) return headers;
  const { AwsV4Signer } = await import('aws4fetch');
  const signed = await new AwsV4Signer({
    ...credentials,
    method,
    url: endpoint.origin + path,
    headers: {
      ...headers,
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    },
    service: 's3',
    region,
    datetime: new Date(nowMs).toISOString().replace(/[:-]|\.\d{3}/g, ''),
  }).sign();
  return Object.fromEntries(signed.headers);
}
