import type { IncomingMessage, ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { httpServer } from './health.ts';

/** An HTTP server that ends with the test; resolves with its port on loopback. */
export async function serving(
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<number> {
  const { port, close } = await httpServer(serve);
  onTestFinished(close);
  return port;
}
