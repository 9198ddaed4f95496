/** Authentication and TLS settings in the form of the configuration. Files are read again at each use. */

/** A secret: an environment variable or a file, so that the configuration does not contain the secret; or the secret itself. */
export type Secret = { readonly env: string } | { readonly file: string } | string;

/** TLS settings of connections that the agent opens. */
export interface ClientTls {
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  serverName?: string;
  /** Accepts any certificate. */
  insecure?: boolean;
}

/** Credentials that are sent with each request: a bearer token or basic authentication, not both. */
export interface ClientAuth {
  bearer?: Secret;
  basic?: { username: string; password: Secret };
}

/** Go's policies for client certificates, as the Prometheus web configuration names them. */
export const clientAuthTypes = [
  'NoClientCert',
  'RequestClientCert',
  'RequireAnyClientCert',
  'VerifyClientCertIfGiven',
  'RequireAndVerifyClientCert',
] as const;
export type ClientAuthType = (typeof clientAuthTypes)[number];

export const tlsVersions = ['TLS12', 'TLS13'] as const;
type TlsVersion = (typeof tlsVersions)[number];

/** The certificate that a listener presents. */
export interface ServedCertificate {
  /** When it expires, ms since the epoch. */
  notAfterMs: number;
  /** Why newer files are not used; undefined if the current files are in use. */
  refused?: string;
}

/**
 * TLS settings of the agent's own listeners, with the keys of `tls_server_config` in the Prometheus web configuration
 * (github.com/prometheus/exporter-toolkit, docs/web-configuration.md).
 */
export interface ListenerTls {
  certFile: string;
  keyFile: string;
  /** Authorities that sign client certificates. */
  clientCaFile?: string;
  /** Default: with `clientCaFile`, only clients with a certificate of these authorities are accepted; without it, all clients. */
  clientAuthType?: ClientAuthType;
  /** A verified client certificate must have one of these texts as a DNS name, address, e-mail or URI. */
  clientAllowedSans?: readonly string[];
  minVersion?: TlsVersion;
  maxVersion?: TlsVersion;
  /** The cipher suites for TLS 1.2, with Go's names. */
  cipherSuites?: readonly string[];
  preferServerCipherSuites?: boolean;
  /** The curves with Go's names, in order of preference. */
  curvePreferences?: readonly string[];
}

/** Credentials that one of the agent's own listeners accepts; at least one is set. */
export interface ListenerAuth {
  bearer?: Secret;
  basic?: { username: string; password: Secret };
  /** bcrypt hashes of passwords by user. */
  basicAuthUsers?: Readonly<Record<string, string>>;
}

/** TLS and authentication of one of the agent's own listeners. */
export interface Protection {
  tls?: ListenerTls;
  auth?: ListenerAuth;
}

/** Callbacks for the result of a TLS handshake. After a failure the connection is closed. */
interface HandshakeOutcome<Connection> {
  onSecure(connection: Connection): void;
  onFailure(reason: string): void;
}

/**
 * TLS for a listener that accepts its connections itself. The returned function takes over an accepted connection of
 * which nothing has been read. Throws `listen_failed` if a file is missing or does not match the others.
 */
export type OpenHandshakes<Connection> = (
  outcome: HandshakeOutcome<Connection>,
) => (accepted: Connection) => void;

/** Reads a secret again at each call; rejects if it does not exist. */
export type ReadSecret = (secret: Secret) => Promise<string>;

/**
 * The value of an `authorization` header, or undefined without credentials. Reads secrets again at each call and
 * rejects if `readSecret` does.
 */
export async function authorizationOf(
  auth: ClientAuth | undefined,
  readSecret: ReadSecret,
): Promise<string | undefined> {
  const { bearer, basic } = auth ?? {};
  if (bearer !== undefined) return `Bearer ${(await readSecret(bearer)).trim()}`;
  if (basic === undefined) return undefined;
  const pair = `${basic.username}:${(await readSecret(basic.password)).trim()}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

/**
 * Header of every scrape request; its value identifies the scraping agent. A listener that receives its own agent's
 * value answers 508, so that an agent never scrapes itself.
 */
export const scrapeMarkHeader = 'x-svc-agent-scrape';

/**
 * Names of variables and paths in their usual spelling. A text in another form may be the secret itself, written in the place of
 * its name.
 */
const variableName = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/;
const filePath = /^(?:\.{0,2}\/[\w./@-]*|(?:[a-z_.-]+\/)+[a-z_.-]+)$/;

/** The place that a secret names, for messages; without the name if that may be the secret itself. */
export function secretPlaceText(secret: { env: string } | { file: string }): string {
  if ('env' in secret)
    return variableName.test(secret.env) ? `environment variable ${secret.env}` : 'the environment variable';
  return filePath.test(secret.file) ? `file ${secret.file}` : 'the file';
}
