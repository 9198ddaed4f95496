import { lookup as systemLookup } from 'node:dns/promises';
import files from 'node:fs/promises';
import { connect, isIP, type Socket } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  type DetailedPeerCertificate,
  type TLSSocket,
  connect as tlsConnect,
} from 'node:tls';
import type { ClientTls } from '../core/access.ts';
import { type Address, formatAddress, isLoopback } from '../core/address.ts';
import { clientContext, type TlsFileError } from '../core/client-tls.ts';
import { systemClock } from '../core/clock.ts';
import { systemCode } from '../core/errors.ts';
import type { Clock } from '../core/ports.ts';
import { regularFileReader } from '../core/regular-file.ts';
import { toThousandths } from '../core/text-formats.ts';
import { certificateText, handshakeText } from '../core/tls-faults.ts';
import { type ConnectionReason, connectionFault, ProbeError } from './probe.ts';

/** The phases of a request, in order. For a store, `queries` replaces `body`. */
export type ConnectionPhase = 'resolve' | 'connect' | 'tls' | 'first_byte' | 'body' | 'queries';

/** How far a check got, even if it failed. */
export interface Trace {
  /** The current phase, or the last one. */
  readonly phase: ConnectionPhase;
  /**
   * Duration of each phase that began, ms; a phase that is entered twice adds up. The last key is the phase that ended last, in
   * which a failed check failed.
   */
  readonly phasesMs: Readonly<Partial<Record<ConnectionPhase, number>>>;
  /** `IP:port` of the address that was dialled. */
  dialled?: string;
  /** Earliest expiry in the server's certificate chain, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** Ends the previous phase and begins this one. */
  enter(phase: ConnectionPhase): void;
  end(): void;
}

export function createTrace(clock: Pick<Clock, 'monotonicMs'> = systemClock): Trace {
  const phasesMs: Partial<Record<ConnectionPhase, number>> = {};
  let phase: ConnectionPhase = 'resolve';
  let sinceMs: number | undefined;
  const end = (): void => {
    if (sinceMs === undefined) return;
    const beforeMs = phasesMs[phase] ?? 0;
    delete phasesMs[phase];
    phasesMs[phase] = toThousandths(beforeMs + clock.monotonicMs() - sinceMs);
    sinceMs = undefined;
  };
  return {
    phasesMs,
    get phase() {
      return phase;
    },
    enter(next) {
      end();
      phase = next;
      sinceMs = clock.monotonicMs();
    },
    end,
  };
}

/** The addresses of a name, the preferred one first. Throws what `dns.lookup` throws. */
export type Lookup = (host: string) => Promise<readonly string[]>;

const underWay = new Map<string, Promise<readonly string[]>>();

async function ask(host: string): Promise<readonly string[]> {
  const found = await systemLookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * The system's name resolution, including the hosts file. It cannot be cancelled, and a lookup that hangs occupies one
 * of the few threads of the process, so concurrent lookups of one name share a call.
 */
export const lookupOfSystem: Lookup = (host) => {
  let asked = underWay.get(host);
  if (asked === undefined) {
    asked = ask(host).finally(() => underWay.delete(host));
    underWay.set(host, asked);
  }
  return asked;
};

/** Settles like `work`, or rejects when the signal aborts. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * The address to dial: the first in the system's order. A second address is never tried, so that a host with a dead address does
 * not pass. For loopback names IPv4 comes first, because services that bind to `localhost` listen there.
 */
async function chosenAddress(host: string, lookup: Lookup, signal: AbortSignal): Promise<string> {
  if (isIP(host) !== 0) return host;
  const addresses = await untilAborted(lookup(host), signal);
  const four = isLoopback(host) ? addresses.find((address) => isIP(address) === 4) : undefined;
  const chosen = four ?? addresses[0];
  if (chosen === undefined) throw new ProbeError('resolve', `${host}: the name has no address`);
  return chosen;
}

export interface ConnectOptions {
  /** The TLS options. TLS is used if this is set, even to an empty map. */
  tls?: ClientTls;
  /** Protocols offered in the TLS handshake (ALPN). */
  protocols?: readonly string[];
  lookup?: Lookup;
  /** Records the phases. Default: a new trace. */
  trace?: Trace;
}

export interface Connection {
  /** The open socket, which the caller destroys. It is destroyed with an error when the signal aborts. */
  socket: Socket;
  phasesMs: Trace['phasesMs'];
  /** `IP:port` of the address that was dialled. */
  address: string;
  /** Earliest expiry in the server's certificate chain, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** TLS version, such as `TLSv1.3`; undefined without TLS. */
  tlsVersion?: string;
}

const hung: Readonly<Partial<Record<ConnectionPhase, readonly [ConnectionReason, string]>>> = {
  resolve: ['resolve', 'name resolution timed out'],
  connect: ['connect_timeout', 'the connection was not accepted in time'],
  tls: ['tls', 'the TLS handshake was not finished in time'],
};

function asFailure(thrown: unknown, where: string, phase: ConnectionPhase, signal: AbortSignal): ProbeError {
  if (thrown instanceof ProbeError) return thrown;
  const late = signal.aborted || systemCode(thrown) === 'ETIMEDOUT' ? hung[phase] : undefined;
  if (late !== undefined) return new ProbeError(late[0], `${where}: ${late[1]}`, thrown);
  const handshake = phase === 'tls' ? handshakeFault(thrown) : undefined;
  if (handshake) return handshake;
  const { reason, msg } = connectionFault(thrown);
  return new ProbeError(reason === 'failed' && phase === 'tls' ? 'tls' : reason, msg, thrown);
}

/** Verifies the certificate before anything is sent. */
function inspect(socket: TLSSocket, { insecure }: ClientTls, trace: Trace): void {
  trace.tlsNotAfterMs = earliestEndMs(socket);
  const fault = insecure === true ? undefined : peerCertificateFault(socket);
  if (fault !== undefined) throw fault;
}

/** Resolves at an event, and rejects at an error. Unlike Node's `once` it removes no listener: the socket is used only once. */
function happens(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, resolve).once('error', reject);
  });
}

async function open(
  address: Address,
  { tls, protocols, lookup = lookupOfSystem }: ConnectOptions,
  trace: Trace,
  signal: AbortSignal,
): Promise<Socket> {
  const secure = tls && {
    ...(await tlsOptions(address.host, tls)),
    ALPNProtocols: protocols && [...protocols],
  };
  trace.enter('resolve');
  const to = { host: await chosenAddress(address.host, lookup, signal), port: address.port };
  trace.dialled = formatAddress(to);
  trace.enter('connect');
  const socket = secure === undefined ? connect(to) : tlsConnect({ ...secure, ...to });
  // An error between two phases shows up in the next one.
  socket.on('error', () => {});
  // This replaces `addAbortSignal`, which makes an error with a stack for each socket that is destroyed.
  signal.addEventListener('abort', () => socket.destroy(signal.reason as Error), { once: true });
  try {
    signal.throwIfAborted();
    await happens(socket, 'connect');
    if (tls === undefined) return socket;
    trace.enter('tls');
    await happens(socket, 'secureConnect');
    inspect(socket as TLSSocket, tls, trace);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Connects to one address of a host, once. Throws ProbeError; after an abort, the error's reason names the phase that hung. */
export async function connectTo(
  address: Address,
  options: ConnectOptions,
  signal: AbortSignal,
): Promise<Connection> {
  const trace = options.trace ?? createTrace();
  try {
    const socket = await open(address, options, trace, signal);
    trace.end();
    const { phasesMs, tlsNotAfterMs, dialled = '' } = trace;
    const tlsVersion = options.tls && ((socket as TLSSocket).getProtocol() ?? undefined);
    return { socket, phasesMs, address: dialled, tlsNotAfterMs, tlsVersion };
  } catch (error) {
    trace.end();
    throw asFailure(error, formatAddress(address), trace.phase, signal);
  }
}

const readFile = regularFileReader(files);

/**
 * TLS options for a host; reads the files each time. The handshake accepts every certificate, and `peerCertificateFault`
 * verifies it afterwards, so that its expiry is known even if it is refused. Throws ProbeError `credentials`.
 */
export async function tlsOptions(host: string, tls: ClientTls): Promise<ConnectionOptions> {
  const named = (tls.serverName ?? host).replace(/\.$/, '');
  return {
    secureContext: await clientContext(tls, { readFile, createSecureContext }).catch(
      (error: TlsFileError) => {
        throw new ProbeError('credentials', error.message, error.cause);
      },
    ),
    rejectUnauthorized: false,
    checkServerIdentity: (_, certificate) => checkServerIdentity(named, certificate),
    ...(isIP(named) === 0 && { servername: named }),
  };
}

/** The earliest expiry in the certificate chain, ms since the epoch; undefined without a certificate. */
export function earliestEndMs(socket: TLSSocket): number | undefined {
  const prints = new Set<string>();
  let earliestMs: number | undefined;
  let certificate: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  // A root certificate is its own issuer.
  while (certificate?.valid_to && !prints.has(certificate.fingerprint256)) {
    prints.add(certificate.fingerprint256);
    const endMs = Date.parse(certificate.valid_to);
    if (!(endMs >= (earliestMs ?? Number.POSITIVE_INFINITY))) earliestMs = endMs;
    certificate = certificate.issuerCertificate;
  }
  return earliestMs;
}

const reasons: Readonly<Record<string, ConnectionReason>> = {
  CERT_HAS_EXPIRED: 'tls_expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_hostname',
};

/** The fault of the certificate after the handshake; undefined for a trusted one. */
export function peerCertificateFault(socket: TLSSocket): ProbeError | undefined {
  if (socket.authorized) return undefined;
  // The type says that this is an error, but it is a code.
  const code = String(socket.authorizationError);
  return new ProbeError(reasons[code] ?? 'tls_untrusted', certificateText(code, socket.getPeerCertificate()));
}

/** A failed handshake in plain words; undefined for errors of the network. */
export function handshakeFault(thrown: unknown): ProbeError | undefined {
  const text = handshakeText(thrown);
  return text === undefined ? undefined : new ProbeError('tls', text, thrown);
}
