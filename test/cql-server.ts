import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The opcodes of the native protocol, version 4. */
export const opcodes = {
  error: 0x00,
  startup: 0x01,
  ready: 0x02,
  authenticate: 0x03,
  query: 0x07,
  result: 0x08,
};

/** The frame of an answer (native_protocol_v4.spec, section 2). */
export function frame(
  opcode: number,
  stream: number,
  body: Buffer = Buffer.alloc(0),
  version = 0x84,
): Buffer {
  const header = Buffer.alloc(9);
  header.writeUInt8(version, 0);
  header.writeInt16BE(stream, 2);
  header.writeUInt8(opcode, 4);
  header.writeUInt32BE(body.length, 5);
  return Buffer.concat([header, body]);
}

/** A [string]: its length, then its bytes. */
export function shortText(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** The body of an ERROR message. */
export function errorBody(code: number, text: string): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(code);
  return Buffer.concat([bytes, shortText(text)]);
}

/** The opcode and the stream of a request. Requests are small here and arrive in one piece. */
export const requestOf = (chunk: Buffer) => ({ opcode: chunk.readUInt8(4), stream: chunk.readInt16BE(2) });

export interface FakeServer {
  readonly port: number;
  /** Connections that were accepted and are not closed yet. */
  readonly open: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/** A server on loopback that calls `serve` for each connection. */
export async function startServer(serve: (socket: Socket) => void): Promise<FakeServer> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('end', () => socket.end());
    socket.on('close', () => open.delete(socket));
    serve(socket);
    socket.resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    open,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The frames of protocol version 4 in the bytes, and the rest that is not complete yet. */
function framesOf(bytes: Buffer): { frames: Buffer[]; rest: Buffer } {
  const frames: Buffer[] = [];
  let at = 0;
  while (bytes.length - at >= 9) {
    const end = at + 9 + bytes.readUInt32BE(at + 5);
    if (end > bytes.length) break;
    frames.push(bytes.subarray(at, end));
    at = end;
  }
  return { frames, rest: bytes.subarray(at) };
}

/** A proxy between a client and a server on loopback. It passes on the requests for which `meet` does not return `drop`. */
export function between(
  port: number,
  meet: (request: string) => 'drop' | undefined,
): (socket: Socket) => void {
  return (socket) => {
    const server = connect(port, '127.0.0.1');
    server.on('error', () => {});
    server.on('close', () => socket.destroy());
    server.on('data', (chunk) => socket.write(chunk));
    socket.on('close', () => server.destroy());
    let waiting: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      const { frames, rest } = framesOf(Buffer.concat([waiting, chunk]));
      waiting = rest;
      for (const one of frames) if (meet(one.toString('latin1')) !== 'drop') server.write(one);
    });
  };
}
