import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { listening } from '../../ports.ts';

/** A port that can be closed and opened again; connections to it reach the port behind it, if something listens there. */
export interface Gate {
  readonly port: number;
  shut(): Promise<void>;
  open(): Promise<void>;
}

export async function startGate(behind?: () => number): Promise<Gate> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    return socket;
  };
  const serve = (): Server =>
    createServer((socket) => {
      keep(socket);
      if (behind === undefined) return;
      const inner = keep(connect(behind(), '127.0.0.1'));
      socket.pipe(inner).pipe(socket);
      socket.on('close', () => inner.destroy());
      inner.on('close', () => socket.destroy());
    });
  let server: Server | undefined = serve();
  const { port } = await listening(server);
  return {
    port,
    async shut() {
      if (!server) return;
      const closed = once(server, 'close');
      server.close();
      server = undefined;
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async open() {
      if (server) return;
      server = serve();
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
  };
}
