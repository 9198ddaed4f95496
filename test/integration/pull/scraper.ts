import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createReadSecret } from '../../../src/agent/read-secret.ts';
import type { Clock, Drops, Gather, GatherRequest, Log, LogFields } from '../../../src/core/ports.ts';
import {
  createListener,
  type Listener,
  type ListenerLimits,
  type ListenerOptions,
} from '../../../src/reporters/listen/listener.ts';
import { createPull, type PullDeps, type PullReporterOptions } from '../../../src/reporters/pull/pull.ts';
import { manualClock } from '../../clock.ts';
import { atTestEnd } from '../../test-end.ts';
import type { TestView } from '../../view.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Sends one request on a separate connection; rejects if the response breaks off. */
export function get(
  address: string,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(`http://${address}${path}`, { method, headers, agent: false }, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** A plain connection that has sent `text`, and reads nothing by itself. */
export async function say(address: string, text: string): Promise<Socket> {
  const { hostname, port } = new URL(`http://${address}`);
  const socket = connect({ host: hostname.replace(/[[\]]/g, ''), port: Number(port) });
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Everything that a connection still sends until it ends. */
export async function rest(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (piece: Buffer) => (text += piece.toString('latin1')));
  socket.resume();
  await once(socket, 'close');
  return text;
}

/** A gather that a test answers by hand, or that is answered at once with `view`. */
interface ManualGather {
  readonly gather: Gather;
  readonly requests: readonly GatherRequest[];
  /** Freezes and answers the n-th request. */
  answer(n: number, view: TestView): void;
  fail(n: number, error: Error): void;
}

export function manualGather(view?: () => TestView): ManualGather {
  const requests: GatherRequest[] = [];
  const waiting: { resolve(view: TestView): void; reject(error: Error): void }[] = [];
  return {
    requests,
    gather(asked) {
      requests.push(asked);
      if (!view) return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      asked.frozen?.();
      return Promise.resolve(view());
    },
    answer(n, shown) {
      requests[n]!.frozen?.();
      waiting[n]!.resolve(shown);
    },
    fail: (n, error) => waiting[n]!.reject(error),
  };
}

export interface Rig {
  readonly address: string;
  readonly clock: ReturnType<typeof manualClock>;
  /** The `component reason` of every drop. */
  readonly dropped: string[];
  readonly logged: { level: string; msg: string; fields: LogFields | undefined }[];
  readonly down: Set<string>;
  listener(): Listener;
  stop(): Promise<void>;
}

/** What a listener needs, with a clock that the test advances and lists of what was dropped and logged. */
export function listenerDeps() {
  const dropped: string[] = [];
  const logged: Rig['logged'] = [];
  const drops: Drops = { count: (component, reason) => void dropped.push(`${component} ${reason}`) };
  const log: Log = {
    write: (level, msg, fields) => void logged.push({ level, msg, fields }),
    named: () => log,
  };
  const clock: ReturnType<typeof manualClock> & Clock = manualClock();
  return { clock, drops, log, readSecret: createReadSecret(process.env), dropped, logged };
}

/** A listener on a free loopback port until the test ends, by default with an answer at `/a`. */
export async function openListener(options: Partial<ListenerOptions> = {}, deps = listenerDeps()) {
  const listener = await createListener({ name: 'metrics', address: '127.0.0.1:0', ...options }, deps);
  atTestEnd(() => listener.close());
  listener.routes = { '/a': { handle: (_, reply) => reply.send(200, 'a') } };
  return { ...deps, listener };
}

/** A pull reporter at work on a free loopback port until the test ends; watches frontend and history. */
export async function startPull(
  gather: Gather,
  options: Partial<PullReporterOptions> & { limits?: Partial<ListenerLimits> } = {},
): Promise<Rig> {
  const deps = listenerDeps();
  const down = new Set<string>();
  let listener: Listener | undefined;
  const pullDeps: PullDeps = {
    ...deps,
    shows: () => true,
    watches: (service) => service === 'frontend' || service === 'history',
    mark: 'agent-1',
    roleDown: (role) => down.has(role),
    routes: { '/ready': { handle: (_, reply) => reply.send(200, 'ready\n') } },
    bind: async (address) => {
      listener = await createListener({ name: 'metrics', address, limits: options.limits }, deps);
      return listener;
    },
  };
  const stop = await createPull(
    { listenAddress: '127.0.0.1:0', openMetrics: false, ...options },
    pullDeps,
  ).start(gather);
  atTestEnd(stop);
  return { ...deps, address: listener!.address, down, listener: () => listener!, stop };
}
