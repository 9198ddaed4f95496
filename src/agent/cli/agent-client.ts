import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import files from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { resolve } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import type { ListenerAuth, ListenerTls } from '../../core/access.ts';
import { systemCode, usageError } from '../../core/errors.ts';
import { withoutUrlSecrets } from '../../core/redacted.ts';
import { regularFileReaderSync } from '../../core/regular-file.ts';
import { findConfig } from '../config/environment.ts';
import { type AdminConfig, defaultAdminAddress } from '../config/types.ts';
import { createReadSecret } from '../read-secret.ts';
import { type ConfigurationValues, configurationOptions, configured } from './arguments.ts';
import type { Io } from './io.ts';

/** Which certificates of the listener are accepted. */
interface Trust {
  /** Accepts any certificate. */
  insecure?: boolean | undefined;
  /** PEM file of the authorities to trust instead of the usual ones. */
  caFile?: string | undefined;
  /** PEM file of the exact certificate that the listener must show, whatever its name and issuer. */
  certFile?: string | undefined;
}

const readFile = regularFileReaderSync(files);

/**
 * A TLS connection to a trusted listener, on which nothing is sent yet; `ended` aborts it. Rejects with the error of the
 * connection or of the certificate.
 */
async function connectTrusted(url: URL, trust: Trust, ended: AbortSignal): Promise<TLSSocket> {
  const { insecure, caFile, certFile } = trust;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const socket = connect({
    host,
    port: Number(url.port || 443),
    rejectUnauthorized: insecure !== true && certFile === undefined,
    ...(caFile !== undefined && { ca: readFile(caFile) }),
    ...(/[a-z]/i.test(host) && !host.includes(':') && { servername: host }),
  });
  try {
    await once(socket, 'secureConnect', { signal: ended });
    const shown = socket.getPeerX509Certificate()?.fingerprint256;
    if (certFile !== undefined && shown !== new X509Certificate(readFile(certFile)).fingerprint256) {
      throw new Error(`the certificate is not that of ${certFile}`);
    }
    return socket;
  } catch (error) {
    socket.on('error', () => {}).destroy();
    throw error;
  }
}

const timeoutMs = 5000;
const maxAnswerBytes = 16 << 20;

/** Address of a running agent, and how to connect. */
export interface AgentTarget extends Trust {
  url: string;
  /** Credentials as the value of the header; default: the credentials of the URL. */
  authorization?: string | undefined;
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response) {
    text += piece as string;
    if (text.length > maxAnswerBytes) throw new Error(`the answer has more than ${maxAnswerBytes} bytes`);
  }
  return text;
}

async function jsonOf(response: IncomingMessage): Promise<unknown> {
  const text = await textOf(response);
  if (response.statusCode === 401) throw new Error('HTTP 401, the listener requires credentials');
  if (response.statusCode === 503 && response.headers['retry-after'] !== undefined)
    throw new Error('HTTP 503, the agent is starting or busy; try again in a second');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`HTTP ${response.statusCode} is not JSON`, { cause });
  }
}

/** The response to a GET, or to a POST of `body`, over `socket` if TLS is already established. */
function requested(
  url: URL,
  authorization: string | undefined,
  socket: TLSSocket | undefined,
  signal: AbortSignal,
  body?: string,
): Promise<IncomingMessage> {
  // Node uses a ready connection only if there is no HTTP agent at all.
  const through = socket ? { createConnection: () => socket } : { agent: false as const };
  const plain = new URL(url);
  plain.protocol = 'http:';
  return new Promise((resolve, reject) => {
    const headers = { host: url.host, ...(authorization !== undefined && { authorization }) };
    const method = body === undefined ? 'GET' : 'POST';
    request(plain, { method, signal, headers, ...through }, resolve)
      .on('error', reject)
      .end(body);
  });
}

/**
 * Sends a request to the target, with `body` by POST, and returns what `read` makes of the response. Rejects if no response comes
 * within 5 s.
 */
async function exchanged<T>(
  target: AgentTarget,
  read: (response: IncomingMessage) => Promise<T>,
  body?: string,
): Promise<T> {
  const url = new URL(target.url);
  const ended = AbortSignal.timeout(timeoutMs);
  let socket: TLSSocket | undefined;
  try {
    if (url.protocol === 'https:') socket = await connectTrusted(url, target, ended);
    return await read(await requested(url, target.authorization, socket, ended, body));
  } catch (error) {
    if (ended.aborted) throw new Error(`no answer within ${timeoutMs / 1000} s`, { cause: error });
    throw error;
  } finally {
    socket?.destroy();
  }
}

/**
 * Sends a GET and returns the JSON response of a running agent, whatever its status but 401. Rejects if no response arrives
 * within 5 s, or if it is not JSON.
 */
export const ask = (target: AgentTarget): Promise<unknown> => exchanged(target, jsonOf);

/** Sends JSON to a running agent by POST. Rejects if no response arrives within 5 s. */
export const tell = (target: AgentTarget, body: unknown): Promise<{ status: number; text: string }> =>
  exchanged(
    target,
    async (response) => ({ status: response.statusCode ?? 0, text: await textOf(response) }),
    JSON.stringify(body),
  );

/** A URL for messages, without credentials. */
export function targetText(text: string): string {
  if (!URL.canParse(text)) return text.replace(/[^/@]*@/, '');
  const url = new URL(text);
  url.username = '';
  url.password = '';
  return withoutUrlSecrets(url.href);
}

/** The options of every command that queries a running agent. */
export const targetOptions = {
  ...configurationOptions,
  url: { type: 'string' },
  ca: { type: 'string' },
  insecure: { type: 'boolean' },
} as const;

export const targetUsage = `      --url URL   address of the agent, instead of the configured admin listener, with or without a path, such as
                  127.0.0.1:9465; may contain user:password@. Without a configuration: 127.0.0.1:9465
      --ca FILE   certificate authorities to trust for https
      --insecure  accept any certificate
`;

interface TargetValues extends ConfigurationValues {
  url?: string | undefined;
  ca?: string | undefined;
  insecure?: boolean | undefined;
}

async function authorizationOf({ bearer, basic }: ListenerAuth, io: Io): Promise<string | undefined> {
  const readSecret = createReadSecret(io.env);
  if (bearer !== undefined) return `Bearer ${(await readSecret(bearer)).trim()}`;
  if (basic === undefined) return undefined;
  const password = (await readSecret(basic.password)).trim();
  return `Basic ${Buffer.from(`${basic.username}:${password}`).toString('base64')}`;
}

const dialled = (address: string): string => address.replace(/^(0\.0\.0\.0|\[::\]|):/, '127.0.0.1:');

async function configuredTarget(values: TargetValues, path: string, io: Io): Promise<AgentTarget> {
  const isNamed = values.config !== undefined || values['service-config'] !== undefined;
  if (!isNamed && findConfig(io.cwd) === undefined) return { url: `http://${defaultAdminAddress}${path}` };
  const { config } = await configured(values, io);
  const admin: AdminConfig | undefined = config.admin;
  if (!admin?.listenAddress) {
    const allowed = 'set admin.listenAddress, or give --url';
    throw usageError('admin', 'turned off, so nothing answers', undefined, allowed);
  }
  // This listener serves clients without a certificate, without TLS.
  if (/^\/(?:health|ready)$/.test(path) && admin.health)
    return { url: `http://${dialled(admin.health)}${path}` };
  return listenerTarget(admin, path, io);
}

/** What a client has to know about the admin listener. */
export interface KnownListener extends Pick<AdminConfig, 'listenAddress' | 'auth'> {
  tls?: Pick<ListenerTls, 'certFile'>;
}

/** A path of an admin listener, with its certificate and credentials. Throws `usage` if its port is not known. */
export async function listenerTarget(
  { listenAddress, tls, auth }: KnownListener,
  path: string,
  io: Io,
): Promise<AgentTarget> {
  if (listenAddress.endsWith(':0')) {
    const what = 'the system chose the port, which the log line "listening" shows';
    throw usageError('admin.listenAddress', what, undefined, 'give --url');
  }
  const authorization = auth && path === '/api/status' ? await authorizationOf(auth, io) : undefined;
  const url = `${tls ? 'https' : 'http'}://${dialled(listenAddress)}${path}`;
  return { url, authorization, certFile: tls?.certFile };
}

/**
 * The URL of a path of the running agent: from --url, else from the configuration with its certificate and credentials; a
 * wildcard address becomes loopback. Throws `usage` if admin is off.
 */
export async function targetOf(values: TargetValues, path: string, io: Io): Promise<AgentTarget> {
  const { url, ca, insecure } = values;
  const trust = ca !== undefined ? '--ca' : '--insecure';
  if (ca !== undefined && insecure) throw usageError('--ca', 'with --insecure', undefined, 'use one of them');
  if (url === undefined && (ca !== undefined || insecure))
    throw usageError(trust, 'without --url', undefined, 'add --url, or leave it out');
  if (url === undefined) return configuredTarget(values, path, io);
  const named = namedUrl(url, path);
  const caFile = ca === undefined ? undefined : checkedAuthorities(resolve(io.cwd, ca));
  if (named) return { url: named, caFile, insecure };
  const allowed = 'use the form http://127.0.0.1:9465 or 127.0.0.1:9465';
  throw usageError('--url', 'not an address of http or https', targetText(url), allowed);
}

/** The file of --ca. Throws `usage` if it cannot be read or has no certificate. */
function checkedAuthorities(file: string): string {
  try {
    new X509Certificate(readFile(file));
    return file;
  } catch (cause) {
    const code = systemCode(cause);
    const isUnread = code !== undefined && !code.startsWith('ERR_');
    const what = isUnread ? `cannot be read (${code})` : 'no certificate in it';
    throw usageError('--ca', what, file, 'name a PEM file with the certificates of the authorities', cause);
  }
}

/** The address in --url: plain HTTP by default. `path` is appended to an address that ends with a slash or with the host. */
function namedUrl(text: string, path: string): string | undefined {
  const full = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(full)) return undefined;
  const url = new URL(full);
  if (!/^https?:$/.test(url.protocol)) return undefined;
  if (url.pathname.endsWith('/')) url.pathname = url.pathname.slice(0, -1) + path;
  return url.href;
}
