import { createServer } from 'node:http';
import { listening } from '../../ports.ts';

/** A hosted platform that accepts everything, or nothing. */
export interface Platform {
  readonly port: number;
  /** Sets the status with which it answers from now on. */
  answer(status: number): void;
  stop(): Promise<void>;
}

export async function startPlatform(): Promise<Platform> {
  let status = 204;
  const { port, close } = await listening(
    createServer((request, response) => {
      request.resume().on('end', () => {
        response.writeHead(status);
        response.end();
      });
    }),
  );
  return {
    port,
    answer(next) {
      status = next;
    },
    stop: close,
  };
}
