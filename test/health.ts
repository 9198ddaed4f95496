import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createReadSecret } from '../src/agent/read-secret.ts';
import type { Lookup } from '../src/probes/connection.ts';
import type { HealthOptions } from '../src/probes/health/block.ts';
import { planHealth } from '../src/probes/health/plan.ts';
import type { Finding, ProbeDeps } from '../src/probes/probe.ts';
import { manualClock } from './clock.ts';

/** A server on its own port; `close` ends its connections, too. */
export interface TestServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Makes any server of `node:net`'s kind listen on loopback. */
export async function listening(server: Server, host = '127.0.0.1'): Promise<TestServer> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  });
  server.listen(0, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, 'close');
    },
  };
}

/** A server that only passes its connections to `serve`. */
export const bareServer = (serve: (socket: Socket) => void): Promise<TestServer> =>
  listening(createServer(serve));

export const httpServer = (
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestServer> => listening(createHttpServer(serve));

interface HealthCheckOptions extends Partial<HealthOptions> {
  url: string;
  service?: string;
  signal?: AbortSignal;
  lookup?: Lookup;
  env?: Record<string, string>;
  recalled?: unknown;
  /** Called when the check reads its clock, which it does when a step begins and ends. */
  onStep?: () => void;
}

/** One check of a role with the configuration `options`. */
export async function checkHealth(options: HealthCheckOptions): Promise<Finding> {
  const { service = 'frontend', signal, lookup, env = {}, recalled, onStep, ...more } = options;
  const health = { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3, successThreshold: 1, ...more };
  const [row] = planHealth({ services: [{ name: service, selected: true, health }] }, lookup);
  const clock = manualClock();
  const deps: ProbeDeps = {
    readSecret: createReadSecret(env),
    readings: { values: () => [] },
    clock: {
      ...clock,
      monotonicMs() {
        onStep?.();
        return clock.monotonicMs();
      },
    },
    log: { write: () => {}, named: () => deps.log },
  };
  const probe = await row!.open(deps);
  return await probe.check(signal ?? AbortSignal.timeout(30_000), recalled);
}
