import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { endianness } from 'node:os';
import { addressOf, formatAddress } from '../../../core/address.ts';
import { listenError } from '../../../core/errors.ts';
import type { Clock, Log } from '../../../core/ports.ts';
import type { Senders } from './senders.ts';
import type { Bound } from './stream.ts';

interface UdpOptions {
  /** The name of the listener in the log and in errors: its path in the configuration. */
  name: string;
  /** host:port; port 0 selects a free port. */
  address: string;
  receiveBufferBytes: number;
}

interface UdpDeps {
  senders: Senders;
  log: Log;
  clock: Clock;
  /** Receives the bytes of a datagram. */
  take(bytes: Buffer): void;
  /** Called for a sender that is not allowed. */
  onForbiddenSender(address: string): void;
  /** Called with the number of datagrams that the kernel dropped since the last call, because its buffer was full. */
  onKernelDrops(more: number): void;
}

export interface BoundUdp extends Bound {
  readonly datagrams: number;
  /** The size of the kernel's buffer in bytes. */
  readonly receiveBufferBytes: number;
  /**
   * Reads the kernel's counter now. Without this call, the counter is read within a second after a datagram, and otherwise within
   * 15 s.
   */
  pollKernelDrops(): void;
}

const kernelPollMs = 1000;
/** The poll interval without datagrams: there is hardly anything to drop, and an idle agent is not woken each second. */
const quietKernelPollMs = 15_000;

/** Binds a socket. A socket that cannot be bound is closed, because it would keep its descriptor. */
function bind(socket: Socket, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => socket.close(() => reject(error));
    socket.once('error', fail);
    socket.bind({ port, address: host, exclusive: true }, () => {
      socket.off('error', fail);
      resolve();
    });
  });
}

/**
 * The size that the kernel granted. Linux reports twice the requested size, for its own bookkeeping (socket(7)).
 */
function grantedBytes(socket: Socket): number {
  const reportedBytes = socket.getRecvBufferSize();
  return process.platform === 'linux' ? reportedBytes / 2 : reportedBytes;
}

/**
 * Receives datagrams. Datagrams are lost only in the kernel's buffer, and the kernel counts them. Throws `address_in_use`,
 * `listen_failed`, and `config_invalid` for an invalid address.
 */
export async function bindUdp(options: UdpOptions, deps: UdpDeps): Promise<BoundUdp> {
  const { name, receiveBufferBytes } = options;
  const { senders, log, clock, take } = deps;
  const { host, port } = addressOf(name, options.address, '127.0.0.1:8125 or [::1]:8125');
  let datagrams = 0;
  /** Whether no datagram has arrived since the last poll. */
  let isQuiet = true;
  let cancel = (): void => {};
  const schedulePoll = (afterMs: number) => {
    cancel();
    cancel = clock.after(afterMs, () => {
      pollKernelDrops();
      schedulePoll(isQuiet ? quietKernelPollMs : kernelPollMs);
      isQuiet = true;
    });
  };
  const fail = (thrown: unknown): never => {
    throw listenError(name, options.address, thrown);
  };
  const { address: literal } = await lookup(host).catch(fail);
  const socket = createSocket({
    type: isIPv6(literal) ? 'udp6' : 'udp4',
    recvBufferSize: receiveBufferBytes,
  });
  socket.on('message', (bytes, { address }) => {
    if (isQuiet) schedulePoll(kernelPollMs);
    isQuiet = false;
    if (!senders.allows(address)) return deps.onForbiddenSender(address);
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

  const pollKernelDrops = () => deps.onKernelDrops(kernel.poll());
  // A datagram may have arrived meanwhile.
  if (isQuiet) schedulePoll(quietKernelPollMs);

  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    cancel();
    pollKernelDrops();
    return new Promise((resolve) => socket.close(resolve));
  };
  return {
    address,
    receiveBufferBytes: granted,
    pollKernelDrops,
    get datagrams() {
      return datagrams;
    },
    close: () => (closing ??= close()),
  };
}

/** A row of `/proc/net/udp` or `udp6` (proc(5)): local address in hex, inode, drops. */
interface SocketRow {
  local: string;
  inode: string;
  drops: number;
}

/** The kernel's counter of datagrams that it dropped for one socket. */
interface KernelDrops {
  /** The number of datagrams dropped since the last poll; 0 where the kernel has no counter (not Linux). */
  poll(): number;
}

/** The rows of `/proc/net/udp` or `udp6`. Columns are split by blanks; the last is `drops`, the tenth the inode. */
export function rowsOf(table: string): SocketRow[] {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length >= 13)
    .map((fields) => ({ local: fields[1]!, inode: fields[9]!, drops: Number(fields.at(-1)) }));
}

/** The eight groups of an IPv6 address as 16 bytes. */
function bytesOf6(address: string): number[] {
  const [front = '', back] = address.replace(/%.*$/, '').split('::');
  const groups = (text: string) =>
    text === ''
      ? []
      : text.split(':').flatMap((group) => {
          if (!group.includes('.')) return [Number.parseInt(group, 16)];
          const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
          return [a * 256 + b, c * 256 + d];
        });
  const head = groups(front);
  const tail = back === undefined ? [] : groups(back);
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => 0);
  return [...head, ...zeros, ...tail].flatMap((group) => [group >> 8, group & 255]);
}

/** A socket's local address in the table's form: words of four bytes in the machine's byte order, then the port. */
export function localText(address: string, port: number, isLittle = endianness() === 'LE'): string {
  const bytes = isIPv6(address) ? bytesOf6(address) : address.split('.').map(Number);
  let text = '';
  for (let at = 0; at < bytes.length; at += 4) {
    const word = bytes.slice(at, at + 4);
    for (const byte of isLittle ? word.reverse() : word) text += byte.toString(16).padStart(2, '0');
  }
  return `${text}:${port.toString(16).padStart(4, '0')}`.toUpperCase();
}

/** The inodes of this process' own sockets. */
function ownInodes(): Set<string> {
  const inodes = new Set<string>();
  for (const descriptor of readdirSync('/proc/self/fd')) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // The descriptor was closed between the two calls.
    }
  }
  return inodes;
}

/**
 * Counts the drops of the socket that this process has bound to an address. The kernel's counter has 32 bits and
 * wraps.
 */
export function createKernelDrops(
  address: string,
  port: number,
  read = (path: string) => readFileSync(path, 'utf8'),
  inodesOfThisProcess = ownInodes,
): KernelDrops {
  const path = isIPv6(address) ? '/proc/net/udp6' : '/proc/net/udp';
  const rows = (): SocketRow[] => {
    try {
      return rowsOf(read(path));
    } catch {
      // Without this table the kernel has no counter.
      return [];
    }
  };
  const local = localText(address, port);
  const found = rows().filter((row) => row.local === local);
  const own = found.length > 0 ? inodesOfThisProcess() : new Set<string>();
  const inode = found.find((row) => own.has(row.inode))?.inode;
  let before = 0;
  return {
    poll() {
      if (inode === undefined) return 0;
      const now = rows().find((row) => row.inode === inode)?.drops ?? before;
      const more = (now - before) >>> 0;
      before = now;
      return more;
    },
  };
}
