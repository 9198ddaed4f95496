import type { ServerResponse } from 'node:http';
import { contentType, exposition } from './exposition.ts';
import type { Health } from './health.ts';
import { type Listener, listen } from './listen.ts';
import type { Family } from './metrics.ts';

/** 0 takes any free port, and keeps it from then on. */
export interface Ports {
  health: number;
  metrics: number;
}

/** What is shown there, as of each moment. */
interface Showing {
  health(): Health;
  families(): readonly Family[];
}

/** The two listeners of a role. */
interface Doors {
  /** Rejects if a port cannot be had, and then holds neither. */
  open(showing: Showing): Promise<{ health: string; metrics: string }>;
  close(): Promise<void>;
}

type Answer = (response: ServerResponse) => void;

function listenFor(path: string, port: number, answer: Answer): Promise<Listener> {
  return listen(port, (request, response) => {
    if (request.method === 'GET' && request.url?.split('?')[0] === path) return answer(response);
    response.statusCode = 404;
    response.end(`only GET ${path} is served here\n`);
  });
}

export function createDoors({ ...ports }: Ports): Doors {
  let listeners: Listener[] = [];

  async function open(path: '/health' | '/metrics', answer: Answer): Promise<string> {
    const key = path === '/health' ? 'health' : 'metrics';
    const listener = await listenFor(path, ports[key], answer);
    listeners.push(listener);
    ports[key] = listener.port;
    return `http://127.0.0.1:${listener.port}${path}`;
  }

  async function close() {
    const closing = listeners;
    listeners = [];
    await Promise.all(closing.map((listener) => listener.close()));
  }

  return {
    open: async (showing) => {
      try {
        const health = await open('/health', (response) => {
          const answer = showing.health();
          response.statusCode = answer.ok ? 200 : 503;
          response.setHeader('content-type', 'application/json');
          response.end(JSON.stringify(answer));
        });
        const metrics = await open('/metrics', (response) => {
          response.setHeader('content-type', contentType);
          response.end(exposition(showing.families()));
        });
        return { health, metrics };
      } catch (thrown) {
        await close();
        throw thrown;
      }
    },
    close,
  };
}
