import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { addressOf, formatAddress } from '../../../core/address.ts';
import { listenError } from '../../../core/errors.ts';
import type { Clock, Log } from '../../../core/ports.ts';
import { createKernelDrops } from './kernel-drops.ts';
import type { Senders } from './senders.ts';
import type { Bound } from './stream.ts';

export interface UdpOptions {
  /** What it is called in the log and in errors: its place in the configuration. */
  name: string;
  /** host:port; port 0 selects a free port. */
  address: string;
  receiveBufferBytes: number;
}

export interface UdpDeps {
  senders: Senders;
  log: Log;
  clock: Clock;
  /** Takes the bytes of a datagram. */
  take(bytes: Buffer): void;
  /** Called for a sender that is not allowed. */
  onStranger(address: string): void;
  /** Called with the number of datagrams that the kernel dropped since the last call, because its buffer was full. */
  onKernelDrops(more: number): void;
}

export interface BoundUdp extends Bound {
  readonly datagrams: number;
  /** Bytes that the kernel's buffer holds. */
  readonly receiveBufferBytes: number;
  /** Reads the kernel's figure now instead of within the next second. */
  lookAtKernel(): void;
}

const lookMs = 1000;

function bind(socket: Socket, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind({ port, address: host, exclusive: true }, () => {
      socket.off('error', reject);
      resolve();
    });
  });
}

/** What the kernel granted. Linux answers with twice what was asked, for its own bookkeeping (socket(7)). */
function grantedBytes(socket: Socket): number {
  const told = socket.getRecvBufferSize();
  return process.platform === 'linux' ? told / 2 : told;
}

/**
 * Receives datagrams. They are lost only in the kernel's buffer, which counts them. Throws `address_in_use`,
 * `listen_failed`, and `config_invalid` for what is no address.
 */
export async function bindUdp(options: UdpOptions, deps: UdpDeps): Promise<BoundUdp> {
  const { name, receiveBufferBytes } = options;
  const { senders, log, clock, take } = deps;
  const { host, port } = addressOf(name, options.address, '127.0.0.1:8125 or [::1]:8125');
  let datagrams = 0;
  const fail = (thrown: unknown): never => {
    throw listenError(name, options.address, thrown);
  };
  const { address: literal } = await lookup(host).catch(fail);
  const socket = createSocket({
    type: isIPv6(literal) ? 'udp6' : 'udp4',
    recvBufferSize: receiveBufferBytes,
  });
  socket.on('message', (bytes, { address }) => {
    if (!senders.allows(address)) return deps.onStranger(address);
    datagrams += 1;
    take(bytes);
  });
  await bind(socket, literal, port).catch(fail);
  // An error of a bound socket (a stray ICMP answer) does not lose a datagram.
  socket.on('error', (error) => log.write('error', 'listener failed', { listener: name, error }));

  const bound = socket.address();
  const address = formatAddress({ host: bound.address, port: bound.port });
  const kernel = createKernelDrops(bound.address, bound.port);
  const granted = grantedBytes(socket);
  log.write('info', 'listening', { listener: name, address, receiveBufferBytes: granted });
  if (granted < receiveBufferBytes) {
    const asked = receiveBufferBytes;
    const advice = 'raise net.core.rmem_max';
    log.write('warn', 'receive buffer smaller than asked for', { listener: name, granted, asked, advice });
  }

  const lookAtKernel = () => {
    const more = kernel.poll();
    if (more > 0) deps.onKernelDrops(more);
  };
  let cancel = (): void => {};
  const lookAgain = () => {
    cancel = clock.after(lookMs, () => {
      lookAtKernel();
      lookAgain();
    });
  };
  lookAgain();

  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    cancel();
    lookAtKernel();
    return new Promise((resolve) => socket.close(resolve));
  };
  return {
    address,
    receiveBufferBytes: granted,
    lookAtKernel,
    get datagrams() {
      return datagrams;
    },
    close: () => (closing ??= close()),
  };
}
