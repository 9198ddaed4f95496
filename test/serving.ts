import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { listening } from './ports.ts';

/** Makes a server listen until the test ends; resolves with its port on loopback. */
export async function servingOn(server: Server): Promise<number> {
  const { port, close } = await listening(server);
  onTestFinished(close);
  return port;
}

/** A server that only passes its connections to `serve`, and ends with the test; resolves with its port on loopback. */
export const servingBare = (serve: (socket: Socket) => void = () => {}): Promise<number> =>
  servingOn(createServer(serve));

/** An HTTP server that ends with the test; resolves with its port on loopback. */
export const serving = (
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<number> => servingOn(createHttpServer(serve));
