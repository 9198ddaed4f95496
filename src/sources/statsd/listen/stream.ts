import { lstat, unlink } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { OpenHandshakes } from '../../../core/access.ts';
import { addressOf, formatAddress } from '../../../core/address.ts';
import { listenError, systemCode } from '../../../core/errors.ts';
import type { Log } from '../../../core/ports.ts';
import type { Senders } from './senders.ts';

/** A bound listener. */
export interface Bound {
  /** `host:port` with the actual port, or the path. */
  readonly address: string;
  /** Stops receiving. Everything that was received before is still counted. */
  close(): Promise<void>;
}

interface StreamOptions {
  /** The name of the listener in the log and in errors: its path in the configuration. */
  name: string;
  /** The maximum number of open connections. */
  connections: number;
  lineBytes: number;
}

export interface StreamDeps {
  log: Log;
  /**
   * Receives whole lines, whose bytes are valid during the call. False if they have to wait; then `taken` is called when they
   * were read.
   */
  take(bytes: Buffer, taken: () => void): boolean;
  refuse(reason: 'line_too_long' | 'invalid_line', bytes: Buffer): void;
  onTooMany(): void;
  onHandshakeFailed(reason: string): void;
}

/** The dependencies that only streams over TCP need. */
interface TcpDeps extends StreamDeps {
  senders: Senders;
  onForbiddenSender(address: string): void;
  /** If set, all connections use TLS. */
  openHandshakes?: OpenHandshakes<Socket>;
}

const keepAliveMs = 60_000;
/** The memory of shorter chunks, which may be in Node's shared pool, is left to the garbage collector. */
const leastFreedBytes = 16_384;

/**
 * Frees the memory of a chunk that was read. While a socket is paused, one more chunk waits in it and outlives
 * the young generation; V8 would free it only at its next full collection, and a fast sender fills tens of MiB
 * until then. Transferred memory belongs to a new object, which the next minor collection frees.
 */
function freeEarly({ buffer, byteLength }: Buffer): void {
  if (byteLength < leastFreedBytes || byteLength !== buffer.byteLength) return;
  structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
}

/** Reads a connection's lines at the pace at which they are counted, so that a sender waits and no line is lost. */
function receive(socket: Socket, { lineBytes }: StreamOptions, { take, refuse }: StreamDeps): void {
  let waiting = 0;
  const framing = createFraming({
    lineBytes,
    onLines(bytes) {
      const isTaken = take(bytes, () => {
        waiting -= 1;
        if (waiting === 0) socket.resume();
      });
      if (isTaken) return;
      waiting += 1;
      socket.pause();
    },
    onLong: (start) => refuse('line_too_long', start),
    onCut: (rest) => refuse('invalid_line', rest),
  });
  socket.on('data', (chunk: Buffer) => {
    framing.write(chunk);
    freeEarly(chunk);
  });
  socket.once('close', () => framing.end());
  // A broken connection ends like a closed one: complete lines count.
  socket.on('error', () => socket.destroy());
  socket.setKeepAlive(true, keepAliveMs);
}

function listen(server: Server, at: Parameters<Server['listen']>[0]): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** The open connections: TLS connections, and the sockets below them. */
function createOpenSockets() {
  const open = new Set<Socket>();
  return {
    keep(socket: Socket): void {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    },
    /** Resolves when each connection has delivered what it had read. */
    async cut(): Promise<void> {
      const closed = [...open].map((socket) => new Promise((resolve) => socket.once('close', resolve)));
      for (const socket of open) socket.destroy();
      await Promise.all(closed);
    },
  };
}

function serve(
  options: StreamOptions,
  deps: StreamDeps & Pick<TcpDeps, 'openHandshakes'>,
  allows: (socket: Socket) => boolean,
) {
  const { keep, cut } = createOpenSockets();
  const admit = (socket: Socket) => {
    keep(socket);
    receive(socket, options, deps);
  };
  const begin = deps.openHandshakes?.({ onSecure: admit, onFailure: deps.onHandshakeFailed });
  const server = createServer((socket) => {
    if (!allows(socket)) {
      socket.destroy();
      return;
    }
    if (!begin) return void admit(socket);
    keep(socket);
    begin(socket);
  });
  server.maxConnections = options.connections;
  server.on('drop', deps.onTooMany);
  const bound = (address: string): Bound => {
    const { log } = deps;
    server.on('error', (error) => log.write('error', 'listener failed', { listener: options.name, error }));
    log.write('info', 'listening', { listener: options.name, address });
    const close = async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      await cut();
      await closed;
    };
    let closing: Promise<void> | undefined;
    return { address, close: () => (closing ??= close()) };
  };
  return { server, bound };
}

/**
 * Receives lines over TCP, with TLS if configured. Throws `address_in_use`, `listen_failed`, and `config_invalid`
 * for an invalid address.
 */
export async function bindTcp(text: string, options: StreamOptions, deps: TcpDeps): Promise<Bound> {
  const { host, port } = addressOf(options.name, text, '127.0.0.1:8125 or [::1]:8125');
  const { server, bound } = serve(options, deps, ({ remoteAddress = '' }) => {
    const isAllowed = deps.senders.allows(remoteAddress);
    if (!isAllowed) deps.onForbiddenSender(remoteAddress);
    return isAllowed;
  });
  await listen(server, { host, port, exclusive: true }).catch((thrown: unknown) => {
    throw listenError(options.name, text, thrown);
  });
  const at = server.address() as AddressInfo;
  return bound(formatAddress({ host: at.address, port: at.port }));
}

/** Whether a process accepts connections on this socket. */
function isAlive(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error) => resolve(systemCode(error) !== 'ECONNREFUSED'));
  });
}

/** Whether this is the socket of a process that no longer listens. */
async function isStale(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isSocket() === true && !(await isAlive(path));
}

/**
 * Receives lines over a Unix stream socket. Every local user who can enter its directory can write to it. The socket file of a
 * process that has ended is replaced. Throws `address_in_use` for the socket of a running process or for any other file, and
 * `listen_failed`.
 */
export async function bindUnix(path: string, options: StreamOptions, deps: StreamDeps): Promise<Bound> {
  const { server, bound } = serve(options, deps, () => true);
  const at = { path, writableAll: true };
  try {
    await listen(server, at).catch(async (thrown: unknown) => {
      if (systemCode(thrown) !== 'EADDRINUSE' || !(await isStale(path))) throw thrown;
      await unlink(path);
      await listen(server, at);
    });
  } catch (thrown) {
    throw listenError(options.name, path, thrown);
  }
  return bound(path);
}

/** Cuts a stream into whole lines. */
interface Framing {
  /** Receives a chunk; passes on parts that end with a newline, in order. */
  write(chunk: Buffer): void;
  /** Ends the stream. */
  end(): void;
}

interface FramingDeps {
  /** The maximum number of bytes of a line, without its newline. */
  lineBytes: number;
  /** Called with whole lines, which include their newlines. */
  onLines(bytes: Buffer): void;
  /** Called after a line that was too long was skipped. */
  onLong(start: Buffer): void;
  /** Called when the stream ended within a line. The line may be cut off, so it is not counted. */
  onCut(rest: Buffer): void;
}

const newline = 0x0a;

export function createFraming({ lineBytes, onLines, onLong, onCut }: FramingDeps): Framing {
  let rest: Buffer | undefined;
  let isPassing = false;

  const keep = (tail: Buffer): void => {
    const held = rest === undefined ? Buffer.from(tail) : Buffer.concat([rest, tail]);
    if (held.length <= lineBytes) rest = held;
    else {
      onLong(held);
      isPassing = true;
      rest = undefined;
    }
  };

  return {
    write(chunk) {
      let from = 0;
      if (rest !== undefined || isPassing) {
        const end = chunk.indexOf(newline) + 1;
        if (end === 0) {
          if (!isPassing) keep(chunk);
          return;
        }
        if (rest !== undefined) onLines(Buffer.concat([rest, chunk.subarray(0, end)]));
        rest = undefined;
        isPassing = false;
        from = end;
      }
      const end = chunk.lastIndexOf(newline) + 1;
      if (end > from) onLines(chunk.subarray(from, end));
      if (Math.max(from, end) < chunk.length) keep(chunk.subarray(Math.max(from, end)));
    },
    end() {
      if (rest !== undefined) onCut(rest);
      rest = undefined;
    },
  };
}
