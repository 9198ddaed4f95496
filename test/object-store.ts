import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { ReadSecret } from '../src/core/access.ts';
import { AgentError } from '../src/core/errors.ts';
import type { Clock, Log } from '../src/core/ports.ts';
import { planArchives } from '../src/probes/archival/plan.ts';
import type { Finding, ProbeRow } from '../src/probes/probe.ts';
import { manualClock } from './clock.ts';
import { listening } from './ports.ts';
import { type Keys, refusalCode } from './sigv4.ts';

export const keys: Keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'a+secret/of=test' };

export interface ObjectStoreServer {
  readonly url: string;
  readonly port: number;
  /** Key and time of the objects in the bucket `archive`. */
  readonly objects: Map<string, string>;
  /** The paths with queries, in the order of the requests. */
  readonly asked: string[];
  /** The content of the objects that were put, by key, one character for each byte. */
  readonly contents: Map<string, string>;
  /** Methods and keys of the requests for single objects. */
  readonly changed: string[];
  /** From now on, lets `handler` answer. */
  answer(handler: (request: IncomingMessage, response: ServerResponse) => void): void;
  close(): Promise<void>;
}

interface ObjectStoreServerOptions {
  keys?: Keys;
  region?: string;
  clock?: Pick<Clock, 'nowMs'>;
  pageSize?: number;
  /** The certificate and key, if the store is served over TLS. */
  tls?: { cert: string; key: string };
  /** Whether the store refuses to put objects. */
  isReadOnly?: boolean;
  /** Whether the store encodes keys as requested; old stores do not. */
  encodes?: boolean;
}

const escaped = (text: string): string =>
  text.replace(/[<>&"']/g, (sign) => `&#${sign.charCodeAt(0)};`).replace('&#38;', '&amp;');
/** Encodes a text as an HTML form does. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1);

/** The document with which a store refuses a request. */
export const errorDocument = (code: string, message = 'no'): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message><RequestId>1</RequestId></Error>`;

const statuses: Readonly<Record<string, number>> = {
  AuthorizationHeaderMalformed: 400,
  XAmzContentSHA256Mismatch: 400,
  InvalidToken: 400,
};

/** The page of a list that a query requests, in the form of ListObjectsV2. */
function listDocument(
  objects: ReadonlyMap<string, string>,
  { sizeOf, md5Of }: { sizeOf(key: string): number; md5Of(key: string): string },
  query: URLSearchParams,
  { pageSize = 1000, encodes = true }: ObjectStoreServerOptions,
): string {
  const after = query.get('continuation-token')?.slice('after '.length) ?? query.get('start-after') ?? '';
  const bytes = (key: string) => Buffer.from(key);
  const wanted = [...objects.keys()]
    .filter((key) => key.startsWith(query.get('prefix') ?? ''))
    .filter((key) => bytes(key).compare(bytes(after)) > 0)
    .sort((one, other) => bytes(one).compare(bytes(other)));
  const page = wanted.slice(0, pageSize);
  const isEncoded = encodes && query.get('encoding-type') === 'url';
  const shown = (key: string) => escaped(isEncoded ? formEncoded(key) : key);
  const contents = page.map(
    (key) =>
      `<Contents><Key>${shown(key)}</Key><LastModified>${objects.get(key)}</LastModified>` +
      `<ETag>&quot;${md5Of(key)}&quot;</ETag><Size>${sizeOf(key)}</Size></Contents>`,
  );
  const more = wanted.length > page.length;
  const next = more
    ? `<NextContinuationToken>${escaped(`after ${page.at(-1)}`)}</NextContinuationToken>`
    : '';
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
    `<Name>archive</Name><KeyCount>${page.length}</KeyCount><IsTruncated>${more}</IsTruncated>${next}`,
    isEncoded ? '<EncodingType>url</EncodingType>' : '',
    ...contents,
    '</ListBucketResult>',
  ].join('\n');
}

/** An object store on loopback with one bucket, `archive`, which refuses requests that are not signed correctly. */
export async function openObjectStore(options: ObjectStoreServerOptions = {}): Promise<ObjectStoreServer> {
  const { region = 'eu-west-1', clock = manualClock(), tls } = options;
  const objects = new Map<string, string>();
  const asked: string[] = [];
  const contents = new Map<string, string>();
  const changed: string[] = [];
  const modified = new Map<string, string>();
  const md5 = (body: Buffer) => createHash('md5').update(body).digest('hex');
  const etagOf = (body: Buffer) => `"${md5(body)}"`;
  const md5Of = (key: string): string => md5(Buffer.from(contents.get(key) ?? '', 'latin1'));
  const refuse = (response: ServerResponse, code: string, status = statuses[code] ?? 403): void => {
    response.writeHead(status, { 'content-type': 'application/xml' }).end(errorDocument(code));
  };
  const sizeOf = (key: string): number => contents.get(key)?.length ?? (key.endsWith('/') ? 0 : 7);
  const list = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://store');
    if (pathname.startsWith('/archive/')) serveObject(request, response, pathname.slice('/archive/'.length));
    else if (pathname !== '/archive') refuse(response, 'NoSuchBucket', 404);
    // A user who may only write objects must not create the bucket.
    else if (request.method !== 'GET') refuse(response, 'AccessDenied');
    // rclone lists one level by the first version of the request, whose answer is the same if it is not split.
    else if (searchParams.get('list-type') !== '2' && searchParams.get('delimiter') !== '/')
      refuse(response, 'NotImplemented', 501);
    else {
      response.writeHead(200, { 'content-type': 'application/xml' });
      response.end(listDocument(objects, { sizeOf, md5Of }, searchParams, options));
    }
  };
  const serveObject = (request: IncomingMessage, response: ServerResponse, path: string): void => {
    const key = decodeURIComponent(path);
    changed.push(`${request.method} ${key}`);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const hash = request.headers['x-amz-content-sha256'];
      const isHashed =
        hash === 'UNSIGNED-PAYLOAD' || hash === createHash('sha256').update(body).digest('hex');
      if (!isHashed) return refuse(response, 'XAmzContentSHA256Mismatch');
      if (request.method === 'PUT') {
        if (options.isReadOnly) return refuse(response, 'AccessDenied', 403);
        const md5 = request.headers['content-md5'];
        if (md5 && md5 !== createHash('md5').update(body).digest('base64'))
          return refuse(response, 'BadDigest', 400);
        contents.set(key, body.toString('latin1'));
        modified.set(key, String(request.headers['x-amz-meta-mtime'] ?? ''));
        objects.set(key, new Date(clock.nowMs()).toISOString());
        return response.writeHead(200, { etag: etagOf(body) }).end();
      }
      const content = contents.get(key);
      if (request.method === 'HEAD') {
        if (content === undefined) return response.writeHead(404).end();
        const head = {
          'content-length': content.length,
          etag: etagOf(Buffer.from(content, 'latin1')),
          'last-modified': new Date(objects.get(key)!).toUTCString(),
          'x-amz-meta-mtime': modified.get(key),
        };
        return response.writeHead(200, head).end();
      }
      if (content === undefined) return refuse(response, 'NoSuchKey', 404);
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
      if (request.method === 'GET' && last !== undefined) {
        const part = content.slice(Number(first), Number(last) + 1);
        if (part === '') return refuse(response, 'InvalidRange', 416);
        return response.writeHead(206).end(part, 'latin1');
      }
      if (request.method === 'GET') return response.end(content, 'latin1');
      contents.delete(key);
      objects.delete(key);
      response.writeHead(204).end();
    });
  };
  let answer = (request: IncomingMessage, response: ServerResponse): void => {
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, [value].flat().join(',')]),
    );
    const signed = { method: request.method ?? '', target: request.url ?? '', headers };
    const code = refusalCode(signed, { keys: options.keys ?? keys, region, nowMs: clock.nowMs() });
    if (code === undefined) list(request, response);
    else refuse(response, code);
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    asked.push(request.url ?? '');
    answer(request, response);
  };
  const server: Server = tls ? createSecureServer(tls, listener) : createServer(listener);
  const { port, close } = await listening(server);
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    objects,
    asked,
    contents,
    changed,
    answer(handler) {
      answer = handler;
    },
    close,
  };
}

/** Reads the secrets of an environment and of files that exist only here. */
export function secretsOf(
  env: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): ReadSecret {
  return async (secret) => {
    if (typeof secret === 'string') return secret;
    const text = 'env' in secret ? env[secret.env] : files[secret.file];
    if (text !== undefined) return text;
    const cause = Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
    throw new AgentError('config_invalid', { where: 'secret', what: 'not there' }, cause);
  };
}

/** Makes these the only variables with credentials; the SDK reads them from the process. */
export function useEnvironment(env: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
  Object.assign(process.env, { AWS_EC2_METADATA_DISABLED: 'true', HOME: '/nowhere' }, env);
}

/** The variables for a pair of keys, in a home without files. */
export const environmentOf = ({ accessKeyId, secretAccessKey, sessionToken }: Keys) => ({
  HOME: '/nowhere',
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  ...(sessionToken === undefined ? {} : { AWS_SESSION_TOKEN: sessionToken }),
});

const silent: Log = { write() {}, named: () => silent };

interface OpenedArchive {
  row: ProbeRow;
  /** Makes one check. By default nothing is remembered. */
  check(signal?: AbortSignal, recalled?: unknown): Promise<Finding>;
  close(): Promise<void>;
}

export interface ArchiveSetting {
  uri: string;
  endpoint?: string;
  region?: string;
  status?: 'enabled' | 'paused' | 'disabled';
  writeCheck?: boolean;
  readCheck?: boolean;
  fileMode?: string;
  dirMode?: string;
  env?: Readonly<Record<string, string>>;
  files?: Readonly<Record<string, string>>;
  clock?: Clock;
}

/** Opens the probe of a history archive with a configuration. */
export async function openArchive(setting: ArchiveSetting): Promise<OpenedArchive> {
  const {
    uri,
    endpoint,
    region = 'eu-west-1',
    status = 'enabled',
    writeCheck,
    readCheck,
    fileMode,
    dirMode,
    env = environmentOf(keys),
  } = setting;
  const providers = [
    { kind: 'objectstore', region, endpoint },
    { kind: 'filestore', fileMode, dirMode },
  ];
  const [row] = planArchives({
    archival: { history: { status, enableRead: true, writeCheck, readCheck, providers } },
    domainDefaults: { archival: { history: { status, uri } } },
  });
  const probe = await row!.open({
    readSecret: secretsOf(env, setting.files),
    readings: { values: () => [] },
    clock: setting.clock ?? manualClock(),
    log: silent,
  });
  return {
    row: row!,
    check(signal = new AbortController().signal, recalled) {
      useEnvironment(env);
      return probe.check(signal, recalled);
    },
    close: async () => probe.close?.(),
  };
}
