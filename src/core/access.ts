/** How one gets in: secrets, TLS and credentials as the configuration names them. Files are read again at each use. */

/** Named by variable or file, so that it never stands in the configuration; or literal. */
export type Secret = { readonly env: string } | { readonly file: string } | string;

/** TLS towards somebody else's listener. */
export interface ClientTls {
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  serverName?: string;
  /** Takes any certificate. */
  insecure?: boolean;
}

/** Credentials sent with each request; at most one of the two. */
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
export type TlsVersion = (typeof tlsVersions)[number];

/**
 * TLS of a listener of ours, by the keys of `tls_server_config` in the Prometheus web configuration
 * (github.com/prometheus/exporter-toolkit, docs/web-configuration.md).
 */
export interface ListenerTls {
  certFile: string;
  keyFile: string;
  /** Whose client certificates are verified. */
  clientCaFile?: string;
  /** Default: with `clientCaFile` only clients that it signed get in, without it everybody. */
  clientAuthType?: ClientAuthType;
  /** A verified client certificate must have one of these as DNS name, address, e-mail or URI. */
  clientAllowedSans?: readonly string[];
  minVersion?: TlsVersion;
  maxVersion?: TlsVersion;
  /** For TLS 1.2, by Go's names. */
  cipherSuites?: readonly string[];
  preferServerCipherSuites?: boolean;
  /** By Go's names, the preferred one first. */
  curvePreferences?: readonly string[];
}

/** Who gets in at a listener of ours: whoever shows one of these; at least one is there. */
export interface ListenerAuth {
  bearer?: Secret;
  basic?: { username: string; password: Secret };
  /** bcrypt hashes of passwords by user. */
  basicAuthUsers?: Readonly<Record<string, string>>;
}

/** What guards a listener of ours. */
export interface Protection {
  tls?: ListenerTls;
  auth?: ListenerAuth;
}

/** What becomes of a connection that was led through a handshake: it may speak, or it is closed. */
export interface HandshakeOutcome<Connection> {
  onSecure(connection: Connection): void;
  onFailure(reason: string): void;
}

/**
 * TLS for a listener that accepts its connections itself: gives what takes over an accepted connection of which
 * nothing was read. Throws `listen_failed` for files that are not there or do not fit.
 */
export type OpenHandshakes<Connection> = (
  outcome: HandshakeOutcome<Connection>,
) => (accepted: Connection) => void;

/** Reads a secret anew; rejects when it is not there. */
export type ReadSecret = (secret: Secret) => Promise<string>;

/**
 * The value of an `authorization` header; undefined where there are no credentials. Secrets are read anew. Rejects
 * with what `readSecret` rejects with.
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
 * Header of every request for a role's page; its value names the agent that asks. A listener that finds its
 * own agent's name in it answers 508, so that an agent never relays itself.
 */
export const scrapeMarkHeader = 'x-svc-agent-scrape';
