import { createSocket, type Socket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import type { View } from '../src/core/model.ts';
import type { Drops, Gather, Log, Stop } from '../src/core/ports.ts';
import type { OpenDatagrams } from '../src/reporters/push/destination.ts';
import { createPush, type PushDeps, type PushReporterOptions } from '../src/reporters/push/push.ts';
import { manualClock } from './clock.ts';
import { stopOnce } from './test-end.ts';
import { until } from './until.ts';
import { type FamilySpec, type SeriesSpec, viewOf } from './view.ts';

interface PushedSeries extends SeriesSpec {
  startMs?: number;
}
export interface PushedFamily extends FamilySpec {
  series: readonly PushedSeries[];
}

/** A view whose series have start times, by default 1. */
export function pushedView(specs: readonly PushedFamily[]): View {
  const view = viewOf(specs);
  const families = view.families.map((family, f) => ({
    ...family,
    series: family.series.map((series, s) => ({ ...series, startMs: specs[f]!.series[s]!.startMs ?? 1 })),
  }));
  return { ...view, families };
}

/** A counter for a test: `count('a', 3)`. */
export const count = (name: string, total: number, more: Partial<PushedSeries> = {}): PushedFamily => ({
  name,
  kind: 'counter',
  series: [{ numbers: [total], ...more }],
});
export const gauge = (name: string, value: number): PushedFamily => ({
  name,
  kind: 'gauge',
  series: [{ numbers: [value] }],
});

export interface Aggregator {
  readonly port: number;
  readonly datagrams: string[];
  /** Every line of every datagram. */
  lines(): string[];
  close(): Promise<void>;
}

/** A receiver on loopback, which closes with the test; port 0 selects a free port. */
export async function aggregator(port = 0, address = '127.0.0.1'): Promise<Aggregator> {
  const datagrams: string[] = [];
  const socket: Socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
  socket.on('message', (message) => void datagrams.push(message.toString('utf8')));
  socket.bind(port, address);
  await once(socket, 'listening');
  return {
    port: socket.address().port,
    datagrams,
    lines: () => datagrams.flatMap((datagram) => datagram.split('\n')),
    close: stopOnce(async () => {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    }),
  };
}

/** A free port on which nobody listens. */
export async function silentPort(): Promise<number> {
  const taken = await aggregator();
  await taken.close();
  return taken.port;
}

/** A system error in the form in which Node throws the kernel's errors. */
export const systemError = (code: string) => Object.assign(new Error(`send ${code}`), { code });

/** Sockets without a kernel: `take` is called with each datagram, and what it throws is the error of the send. */
export function inMemory(take: (datagram: string) => void): OpenDatagrams {
  return () => {
    const socket = new EventEmitter();
    const send = (datagram: Uint8Array, done: (error: Error | null) => void) => {
      let failure: Error | null = null;
      try {
        take(Buffer.from(datagram).toString('utf8'));
      } catch (error) {
        failure = error as Error;
      }
      queueMicrotask(() => done(failure));
    };
    const connect = () => queueMicrotask(() => socket.emit('connect'));
    const stub = { send, connect, close: () => {}, unref: () => {} };
    return Object.assign(socket, stub) as unknown as ReturnType<OpenDatagrams>;
  };
}

export interface PushRig {
  readonly clock: ReturnType<typeof manualClock>;
  /** The number of drops of the push reporter, by reason. */
  readonly dropped: Map<string, number>;
  readonly failures: string[];
  readonly logged: { level: string; msg: string }[];
  delivered(): number;
  /** The section that was last committed for a flush. */
  committed(): Uint8Array | undefined;
  /** The section that a commit would write now. */
  freeze(): Uint8Array;
  /** Replaces the numbers of the view. */
  show(specs: readonly PushedFamily[]): void;
  /** Lets one interval pass, with its flush. */
  flush(): Promise<void>;
  stop: Stop;
}

const defaults: PushReporterOptions = {
  hostPort: '127.0.0.1:9',
  prefix: '',
  metricsPrefix: '',
  flushIntervalMs: 1000,
  flushBytes: 1432,
  tagFormat: 'suffix',
  block: 'metrics',
  instance: 'host1',
};

/** Starts a push reporter, which stops with the test. A test advances its clock, and its baseline is committed in memory. */
export async function startPush(
  options: Partial<PushReporterOptions>,
  deps: Partial<PushDeps> & { section?: Uint8Array; gather?: Gather } = {},
): Promise<PushRig> {
  const clock = manualClock();
  const dropped = new Map<string, number>();
  const failures: string[] = [];
  const logged: PushRig['logged'] = [];
  let delivered = 0;
  let shown: readonly PushedFamily[] = [];
  let committed: Uint8Array | undefined;
  const drops: Drops = {
    count(component, reason, n = 1) {
      if (component === 'push') dropped.set(reason, (dropped.get(reason) ?? 0) + n);
    },
  };
  const log: Log = { write: (level, msg) => void logged.push({ level, msg }), named: () => log };
  const push = createPush(
    { ...defaults, ...options },
    {
      takes: () => true,
      hasExternalTotals: () => false,
      commit: async () => {
        committed = push.durable.freeze();
      },
      sinceMs: 0,
      reported: {
        delivered: () => {
          delivered += 1;
        },
        failed: (reason) => void failures.push(reason),
      },
      clock,
      drops,
      log,
      ...deps,
    },
  );
  if (deps.section) push.durable.restore(deps.section);
  let gathers = 0;
  const gather: Gather = async (request) => {
    gathers += 1;
    return deps.gather ? deps.gather(request) : pushedView(shown);
  };
  const stop = stopOnce(await push.start(gather));
  return {
    clock,
    dropped,
    failures,
    logged,
    delivered: () => delivered,
    committed: () => committed,
    freeze: () => push.durable.freeze(),
    show(specs) {
      shown = specs;
    },
    async flush() {
      const before = { gathers, waiting: clock.waiting };
      clock.advance(options.flushIntervalMs ?? defaults.flushIntervalMs);
      await until('the flush is over', () => gathers > before.gathers && clock.waiting === before.waiting);
    },
    stop,
  };
}
