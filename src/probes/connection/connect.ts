import { lookup as systemLookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { ClientTls } from '../../core/access.ts';
import { type Address, formatAddress, isLoopback } from '../../core/address.ts';
import { systemClock } from '../../core/clock.ts';
import { systemCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import { type ConnectionReason, connectionFault, ProbeError } from '../probe-error.ts';
import { certificateFault, earliestEndMs, tlsOptions } from './certificate.ts';

/** The steps to an answer, in their order. */
export type Phase = 'resolve' | 'connect' | 'tls' | 'first_byte' | 'body';

/** How far one look has come: known also, and above all, when it fails. */
export interface Trace {
  /** The step that it is in, or was in last. */
  readonly phase: Phase;
  /** How long each step took that was begun; one that is begun twice adds up. */
  readonly phasesMs: Readonly<Partial<Record<Phase, number>>>;
  /** `host:port` that was dialled, the host as a number. */
  dialled?: string;
  /** Earliest end of a certificate met, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** Ends the step before. */
  enter(phase: Phase): void;
  end(): void;
}

/** Microseconds are exact enough for a network. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000;

export function createTrace(clock: Pick<Clock, 'monotonicMs'> = systemClock): Trace {
  const phasesMs: Partial<Record<Phase, number>> = {};
  let phase: Phase = 'resolve';
  let sinceMs: number | undefined;
  const end = (): void => {
    if (sinceMs === undefined) return;
    phasesMs[phase] = rounded((phasesMs[phase] ?? 0) + clock.monotonicMs() - sinceMs);
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

/** The addresses of a name, the preferred one first; rejects as `dns.lookup` does. */
export type Lookup = (host: string) => Promise<readonly string[]>;

const underWay = new Map<string, Promise<readonly string[]>>();

async function ask(host: string): Promise<readonly string[]> {
  const found = await systemLookup(host, { all: true });
  return found.map(({ address }) => address);
}

/**
 * The system's own look-up, its file of hosts included. It cannot be called back, and while it hangs it holds one
 * of the few threads of the process: so whoever asks for the same name meanwhile waits for the same answer.
 */
export const lookupOfSystem: Lookup = (host) => {
  let asked = underWay.get(host);
  if (asked === undefined) {
    asked = ask(host).finally(() => underWay.delete(host));
    underWay.set(host, asked);
  }
  return asked;
};

/** Settles as `work` does, or rejects once the signal aborts. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * The one address that is dialled: the first, as the system orders them. A second is never tried, so that a host of
 * which one address is dead does not look well. Only for the machine's own name IPv4 goes first: it is where
 * services listen that are told `localhost`.
 */
export async function chosenAddress(host: string, lookup: Lookup, signal: AbortSignal): Promise<string> {
  if (isIP(host) !== 0) return host;
  const addresses = await untilAborted(lookup(host), signal);
  const four = isLoopback(host) ? addresses.find((address) => isIP(address) === 4) : undefined;
  const chosen = four ?? addresses[0];
  if (chosen === undefined) throw new ProbeError('resolve', `${host}: the name has no address`);
  return chosen;
}

export interface ConnectOptions {
  /** TLS is spoken when this is there, be it empty. */
  tls?: ClientTls;
  /** Protocols offered in the TLS handshake (ALPN). */
  protocols?: readonly string[];
  lookup?: Lookup;
  /** Is told of each step; its own unless given. */
  trace?: Trace;
}

export interface Connection {
  /** Open, and destroyed with an error once the signal aborts; the caller destroys it. */
  socket: Socket;
  phasesMs: Trace['phasesMs'];
  /** `host:port` that was dialled, the host as a number. */
  address: string;
  /** Earliest end of a certificate met, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** Version of TLS, as the library names it; undefined without TLS. */
  tlsVersion?: string;
}

const hung: Readonly<Partial<Record<Phase, readonly [ConnectionReason, string]>>> = {
  resolve: ['resolve', 'the name was not resolved in time'],
  connect: ['connect_timeout', 'the connection was not accepted in time'],
  tls: ['tls', 'the TLS handshake was not finished in time'],
};

function asFailure(thrown: unknown, where: string, phase: Phase, signal: AbortSignal): ProbeError {
  if (thrown instanceof ProbeError) return thrown;
  const late = signal.aborted || systemCode(thrown) === 'ETIMEDOUT' ? hung[phase] : undefined;
  if (late !== undefined) return new ProbeError(late[0], `${where}: ${late[1]}`, thrown);
  const { reason, msg } = connectionFault(thrown);
  return new ProbeError(reason === 'failed' && phase === 'tls' ? 'tls' : reason, msg, thrown);
}

/** Judges the certificate before anything is sent. */
function inspect(socket: TLSSocket, { insecure }: ClientTls, trace: Trace): void {
  trace.tlsNotAfterMs = earliestEndMs(socket);
  const fault = insecure === true ? undefined : certificateFault(socket);
  if (fault !== undefined) throw fault;
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
  // What happens between two steps is seen in the next one.
  socket.on('error', () => {});
  addAbortSignal(signal, socket);
  try {
    await once(socket, 'connect', { signal });
    if (tls === undefined) return socket;
    trace.enter('tls');
    await once(socket, 'secureConnect', { signal });
    inspect(socket as TLSSocket, tls, trace);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/**
 * One attempt at one address of a host. Throws `ProbeError`; when the signal aborts, its reason says in which
 * step it hung.
 */
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
