import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { ClientTls } from '../../core/access.ts';
import { type Address, formatAddress } from '../../core/address.ts';
import { systemCode } from '../../core/errors.ts';
import { certificateFault, earliestEndMs, tlsOptions } from './certificate.ts';
import { ConnectionFailure, type ConnectionReason, connectionFault } from './failure.ts';
import { chosenAddress, type Lookup, lookupOfSystem } from './lookup.ts';
import { createTrace, type Phase, type Trace } from './trace.ts';

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

function asFailure(thrown: unknown, where: string, phase: Phase, signal: AbortSignal): ConnectionFailure {
  if (thrown instanceof ConnectionFailure) return thrown;
  const late = signal.aborted || systemCode(thrown) === 'ETIMEDOUT' ? hung[phase] : undefined;
  if (late !== undefined) return new ConnectionFailure(late[0], `${where}: ${late[1]}`, thrown);
  const { reason, msg } = connectionFault(thrown);
  return new ConnectionFailure(reason === 'failed' && phase === 'tls' ? 'tls' : reason, msg, thrown);
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
 * One attempt at one address of a host. Throws `ConnectionFailure`; when the signal aborts, its reason says in which
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
