import { once } from 'node:events';
import type { Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';
import type { ClientTls } from '../../../core/access.ts';
import { errorText } from '../../../core/errors.ts';
import { certificateFault, earliestEndMs, tlsOptions } from '../../connection/certificate.ts';
import { connectTo, createTrace, type Trace } from '../../connection/connect.ts';
import { connectionFault, ProbeError } from '../../probe-error.ts';
import type { StoreTarget } from '../store.ts';
import { ProtocolFailure } from './fault.ts';
import { createScrutiny } from './scrutiny.ts';

/** The request to go over to TLS: its length and its code (PostgreSQL, Message Formats, SSLRequest). */
const tlsRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/**
 * A connection over which nothing was said yet but TLS; it is destroyed once the signal aborts. We open it and not
 * the driver, so that it is dialled, judged and ended as that of every other probe.
 */
export async function openSocket(
  { address, tls }: StoreTarget,
  signal: AbortSignal,
): Promise<{ socket: Socket; trace: Trace }> {
  const trace = createTrace();
  const { socket } = await connectTo(address, { trace }, signal);
  if (tls === undefined) return { socket, trace };
  trace.enter('tls');
  try {
    return { socket: await overTls(socket, address.host, tls, trace, signal), trace };
  } catch (thrown) {
    socket.destroy();
    throw tlsFailure(thrown, signal);
  } finally {
    trace.end();
  }
}

function tlsFailure(thrown: unknown, signal: AbortSignal): ProbeError {
  if (thrown instanceof ProbeError) return thrown;
  if (signal.aborted) return new ProbeError('tls', 'the TLS handshake was not finished in time', thrown);
  const { reason, msg } = connectionFault(thrown);
  return new ProbeError(reason === 'failed' ? 'tls' : reason, msg, thrown);
}

async function overTls(raw: Socket, host: string, tls: ClientTls, trace: Trace, signal: AbortSignal) {
  const options = await tlsOptions(host, tls);
  const answer = await answerTo(tlsRequest, raw, signal);
  // More than the one letter before TLS would be taken for the server's word: CVE-2021-23222.
  if (answer.toString('latin1') !== 'S')
    throw new ProbeError('tls', 'the server does not speak TLS: ssl is off there, or it is no PostgreSQL');
  const socket = tlsConnect({ ...options, socket: raw });
  socket.on('error', () => {});
  addAbortSignal(signal, socket);
  await once(socket, 'secureConnect');
  trace.tlsNotAfterMs = earliestEndMs(socket);
  const fault = tls.insecure === true ? undefined : certificateFault(socket);
  if (fault !== undefined) throw fault;
  return socket;
}

async function answerTo(request: Buffer, socket: Socket, signal: AbortSignal): Promise<Buffer> {
  const onEnd = () => socket.destroy(new ProbeError('reset', 'the server closed the connection before TLS'));
  socket.once('end', onEnd);
  try {
    socket.write(request);
    const [answer] = (await once(socket, 'data', { signal })) as [Buffer];
    return answer;
  } finally {
    socket.off('end', onEnd);
  }
}

/**
 * Makes an open connection fit for the driver, which wants to connect by itself, and which throws out of an event at
 * what it cannot read: then, and when what comes is none of PostgreSQL's, the connection is destroyed.
 */
export function forDriver(socket: Socket): Socket {
  const scrutinize = createScrutiny();
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
  socket.connect = () => {
    process.nextTick(() => emit('connect'));
    return socket;
  };
  socket.emit = (event: string | symbol, ...args: unknown[]) => {
    if (event !== 'data') return emit(event, ...args);
    try {
      scrutinize(args[0] as Buffer);
      return emit(event, ...args);
    } catch (thrown) {
      socket.destroy(new ProtocolFailure(errorText(thrown), thrown));
      return true;
    }
  };
  return socket;
}
