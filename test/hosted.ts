import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach } from 'vitest';
import type { Drops, Log, Stop } from '../src/core/ports.ts';
import { createHosted, type HostedDeps, type HostedReporterOptions } from '../src/reporters/hosted/hosted.ts';
import { type ManualClock, manualClock } from './clock.ts';
import { newFolder } from './folder.ts';
import { readOtlp, readRw1, readRw2, type WireResource, type WireSample } from './hosted-wire.ts';
import { listening } from './ports.ts';
import { stopOnce } from './test-end.ts';
import { until } from './until.ts';
import { type FamilySpec, type TestView, viewOf } from './view.ts';

/** A request as a receiver got it, including its body. */
interface Received {
  headers: IncomingMessage['headers'];
  url: string;
  body: Buffer;
  samples(): WireSample[];
  resources(): WireResource[];
}

export type Reply = (received: Received, response: ServerResponse) => void;

export const status =
  (code: number, headers: Record<string, string> = {}, body: string | Buffer = ''): Reply =>
  (_, response) => {
    response.writeHead(code, headers);
    response.end(body);
  };
/** The answer of a receiver that accepts everything, for remote write 2.0 or OTLP. */
export const written: Reply = (received, response) =>
  received.headers['content-encoding'] === 'gzip'
    ? status(200)(received, response)
    : status(204, { 'x-prometheus-remote-write-samples-written': String(received.samples().length) })(
        received,
        response,
      );

/** A hosted platform on loopback, which accepts everything by default. */
interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** The requests that were answered with 2xx and can be read. */
  taken(): Received[];
  reply(next: Reply): void;
  close(): Promise<void>;
}

function receivedOf({ headers, url = '' }: IncomingMessage, body: Buffer): Received {
  const isNew = headers['content-type']?.includes('v2.Request') === true;
  return {
    headers,
    url,
    body,
    samples: () => (isNew ? readRw2(body) : readRw1(body)),
    resources: () => readOtlp(body),
  };
}

export async function openReceiver(wantedPort = 0): Promise<Receiver> {
  let current: Reply = written;
  const received: Received[] = [];
  const taken = new Set<Received>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one = receivedOf(request, Buffer.concat(chunks));
      received.push(one);
      response.on('finish', () => {
        if (response.statusCode < 300) taken.add(one);
      });
      current(one, response);
    });
  });
  const { port, close } = await listening(server, { port: wantedPort });
  return {
    url: `http://127.0.0.1:${port}/api/v1/write?tenant=a`,
    received,
    taken: () => received.filter((one) => taken.has(one)),
    reply(next) {
      current = next;
    },
    close,
  };
}

/** Creates a receiver for each test of the file that calls it; also removes the folders of the test. */
export function receiverForEachTest(): Receiver {
  let current: Receiver;
  beforeEach(async () => {
    current = await openReceiver();
  });
  afterEach(() => current.close());
  return {
    get url() {
      return current.url;
    },
    get received() {
      return current.received;
    },
    taken: () => current.taken(),
    reply: (next) => current.reply(next),
    close: () => current.close(),
  };
}

/** A reporter over views that a test creates. It records everything that the reporter reports. */
export interface Bed {
  clock: ManualClock;
  directory: string;
  drops: Record<string, number>;
  failures: Record<string, number>;
  /** The texts of the failures, each once. */
  told: Set<string>;
  delivered(): number;
  queued(): { bytes: number; oldestMs: number | undefined };
  logged: string[];
  views: TestView[];
  /** Sets the content of the next views. */
  show(families: readonly FamilySpec[]): void;
  /** Lets an interval pass, after which the view is appended to the queue. */
  tick(intervalMs?: number): Promise<void>;
  stop(): Promise<void>;
}

const silent = (logged: string[]): Log => ({
  write(_, msg) {
    logged.push(msg);
  },
  named: () => silent(logged),
});

export const counter = (value: number, labels: Record<string, string> = {}): FamilySpec => ({
  name: 'svc_requests',
  kind: 'counter',
  series: [{ labels, service: 'frontend', relayed: true, numbers: [value] }],
});

export async function openBed(
  endpoint: string,
  own: Partial<HostedReporterOptions> = {},
  deps: Partial<HostedDeps> & { directory?: string; clock?: ManualClock } = {},
): Promise<Bed> {
  const { directory = newFolder(), clock = manualClock(), ...rest } = deps;
  const drops: Record<string, number> = {};
  const failures: Record<string, number> = {};
  const told = new Set<string>();
  const logged: string[] = [];
  const views: TestView[] = [];
  let families: readonly FamilySpec[] = [counter(1)];
  let delivered = 0;
  let queued: { bytes: number; oldestMs: number | undefined } = { bytes: 0, oldestMs: undefined };
  const count: Drops['count'] = (component, reason, n = 1) => {
    const key = `${component}/${reason}`;
    drops[key] = (drops[key] ?? 0) + n;
  };
  const reporter = createHosted(
    {
      protocol: 'remotewrite',
      endpoint,
      headers: {},
      timeoutMs: 10_000,
      queue: { maxBytes: 16_777_216, maxAgeMs: 7_200_000 },
      metricsPrefix: '',
      reportingIntervalMs: 1000,
      instance: 'host-1',
      hostName: 'h.local',
      version: '1.2.3',
      queueDirectory: join(directory, 'hosted-metrics'),
      ...own,
    },
    {
      takes: () => true,
      hasExternalTotals: () => false,
      reported: {
        delivered() {
          delivered += 1;
        },
        failed(reason, what) {
          failures[reason] = (failures[reason] ?? 0) + 1;
          told.add(what);
        },
      },
      queued(bytes, oldestMs) {
        queued = { bytes, oldestMs };
      },
      readSecret: (secret) => Promise.resolve(String(secret)),
      clock,
      drops: { count },
      log: silent(logged),
      random: () => 0.5,
      ...rest,
    },
  );
  const start = reporter.start(async ({ frozen }) => {
    frozen?.();
    const view = viewOf(families);
    views.push(view);
    return view;
  });
  const stop: Stop = stopOnce(await start);
  return {
    clock,
    directory,
    drops,
    failures,
    told,
    delivered: () => delivered,
    queued: () => queued,
    logged,
    views,
    show(next) {
      families = next;
    },
    async tick(intervalMs = 1000) {
      // The reporter skips an interval that ends while its last report is under way.
      await until('no report is under way', () => views.at(-1)?.released !== 0);
      await nextTurn();
      const before = views.length;
      clock.advance(intervalMs);
      await until('the picture is queued', () => views.length > before && views.at(-1)!.released === 1);
    },
    stop,
  };
}

/** The number of turns of the event loop and of the disk within which a request on loopback makes some progress. */
const turnsPerStep = 10;

/**
 * Advances the clock in steps until something is true, so that everything that waits for a backoff continues. A step ends after
 * work of this process and of the disk, not after a time; otherwise requests would be too slow on a busy machine.
 */
export async function untilMoving(clock: ManualClock, stepMs: number, isSo: () => boolean, what: string) {
  const poll = async () => {
    if (isSo()) return true;
    clock.advance(stepMs);
    for (let turn = 0; turn < turnsPerStep; turn++) {
      await stat(tmpdir());
      await nextTurn();
    }
    return isSo();
  };
  await until(what, poll, { everyMs: 0 });
}

/** The values of the samples that a receiver accepted, in the order of their arrival. */
export const valuesOf = (received: readonly Received[]): (number | 'stale')[] =>
  received.flatMap((one) => one.samples().map(({ value }) => value));
