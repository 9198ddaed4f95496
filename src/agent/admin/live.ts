import { randomUUID } from 'node:crypto';
import type { Clock, Drops } from '../../core/ports.ts';
import { nextTurn } from '../../core/slices.ts';
import type { Reply, Request, Route, StreamBody } from '../../reporters/listen/http.ts';
import type { StatusReport } from '../report.ts';
import type { History } from './history.ts';

interface LiveDeps {
  report(): StatusReport;
  history: History;
  /** Commits, so that counts are up to date. */
  commit(): Promise<unknown>;
  clock: Clock;
  drops: Drops;
}

/** Streams of changes of the status, as server-sent events (html.spec.whatwg.org, Server-sent events). */
export interface Live {
  route: Route;
  readonly streams: number;
  /** Ends every stream; browsers connect again. */
  endAll(): void;
}

/** A part of the status that is sent as a whole when it changes: `verdict`, `probes:health/frontend`. */
interface Cell {
  json: string;
  /** The version in which the cell changed last. */
  version: number;
}

interface Client {
  body: StreamBody;
  /** The version up to which the client has everything. */
  seen: number;
  /** The monotonic time at which the client's buffer became full; undefined while it has room. */
  stuckMs: number | undefined;
  openedMs: number;
  /** Whether nothing but the headers was sent so far; they may not have arrived yet. */
  isNew: boolean;
}

const longestSliceMs = 5;
/** The maximum number of streams at a time, fewer than the requests that a listener accepts, so that others are served. */
const mostStreams = 16;
/** Interval of the status while a client is connected. */
const stepMs = 1_000;
/** A status that takes long to compute is sent less often, but at least at this interval. */
const longestStepMs = 5_000;
/** A client that has not read for this long is disconnected. */
const slowMs = 10_000;
/** A stream ends after this time and the browser connects again, so that changed credentials take effect. */
const longestMs = 600_000;

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Proxies must not buffer events.
  'x-accel-buffering': 'no',
};

/**
 * Sends the cells that changed every second while a client is connected. Nothing is queued: a client that has not read the last
 * event gets the next event later, with all changes since. A client that reconnects with `Last-Event-ID` gets what changed since
 * that event; other clients get everything.
 */
export function createLive(deps: LiveDeps): Live {
  const { commit, clock, drops } = deps;
  const clients = new Set<Client>();
  const cells = createCells(deps);
  let isRunning = false;

  const send = (client: Client) => {
    client.body.write(cells.changesSince(client.seen));
    client.seen = cells.version;
    client.isNew = false;
  };

  /** Whether the client can receive another event now. Ends a stream that is slow, too old or closed. */
  const isReady = (client: Client): boolean => {
    const nowMs = clock.monotonicMs();
    if (client.body.done) clients.delete(client);
    else if (nowMs - client.openedMs >= longestMs) {
      client.body.end();
      clients.delete(client);
    } else if (client.isNew || client.body.waiting === 0) {
      client.stuckMs = undefined;
      return true;
    } else {
      client.stuckMs ??= nowMs;
      if (nowMs - client.stuckMs < slowMs) return false;
      drops.count('pull', 'slow_reader');
      client.body.cut();
      clients.delete(client);
    }
    return false;
  };

  const run = async () => {
    await commit().catch(() => {});
    const ready = [...clients].filter(isReady);
    const workedMs = ready.length > 0 ? await cells.update() : 0;
    for (const client of ready) send(client);
    if (clients.size > 0)
      return void clock.after(Math.min(longestStepMs, Math.max(stepMs, 20 * workedMs)), () => void run());
    // No client is connected, so nothing is stored.
    isRunning = false;
    cells.clear();
  };

  const connect = ({ message }: Request, reply: Reply) => {
    if (message.method === 'HEAD') return reply.send(200, '', headers);
    for (const client of clients) if (client.body.done) clients.delete(client);
    if (clients.size >= mostStreams)
      return reply.send(503, `Too many streams; at most ${mostStreams}.\n`, { 'retry-after': '10' });
    const seen = cells.versionOf(message.headers['last-event-id']);
    const openedMs = clock.monotonicMs();
    const client: Client = {
      body: reply.stream(headers),
      seen,
      stuckMs: undefined,
      openedMs,
      isNew: true,
    };
    client.body.write(Buffer.from('retry: 1000\n\n'));
    clients.add(client);
    // The status that was last sent to others is recent enough until the next step.
    if (!cells.isEmpty) send(client);
    if (!isRunning) void run();
    isRunning = true;
  };

  return {
    route: { handle: connect },
    get streams() {
      return clients.size;
    },
    endAll() {
      for (const { body } of clients) body.end();
      clients.clear();
    },
  };
}

/** The status in parts, each with the version in which it changed last. */
interface Cells {
  readonly version: number;
  readonly isEmpty: boolean;
  /** Reads the status in slices: with 500 domains it is a megabyte of JSON. Returns the time that it worked, ms. */
  update(): Promise<number>;
  /** The event with everything that changed after a version. */
  changesSince(seen: number): Buffer;
  /** The version that a client has, from the id of its last event; 0 if the id is not from this process. */
  versionOf(id: unknown): number;
  clear(): void;
}

function createCells({ report, history, clock }: Pick<LiveDeps, 'report' | 'history' | 'clock'>): Cells {
  const boot = randomUUID().slice(0, 8);
  let cells = new Map<string, Cell>();
  let version = 0;
  return {
    get version() {
      return version;
    },
    get isEmpty() {
      return cells.size === 0;
    },
    async update() {
      let workedMs = 0;
      let sliceMs = clock.monotonicMs();
      const next = new Map<string, Cell>();
      for (const [key, value] of cellsOf(report(), history)) {
        const json = JSON.stringify(value) ?? 'null';
        const known = cells.get(key);
        next.set(key, known?.json === json ? known : { json, version: version + 1 });
        const elapsedMs = clock.monotonicMs() - sliceMs;
        if (elapsedMs < longestSliceMs) continue;
        workedMs += elapsedMs;
        await nextTurn();
        sliceMs = clock.monotonicMs();
      }
      version++;
      cells = next;
      return workedMs + clock.monotonicMs() - sliceMs;
    },
    changesSince(seen) {
      const changed: string[] = [];
      for (const [key, cell] of cells)
        if (cell.version > seen) changed.push(`${JSON.stringify(key)}:${cell.json}`);
      // JSON has no line breaks, so each event is one line. An event is sent at every poll, as a heartbeat, too.
      return Buffer.from(`id: ${boot}.${version}\ndata: {${changed.join(',')}}\n\n`);
    },
    versionOf(id) {
      const [, from, seen] = /^([0-9a-f]{8})\.(\d{1,15})$/.exec(String(id ?? '')) ?? [];
      return from === boot ? Math.min(Number(seen), version) : 0;
    },
    clear() {
      cells = new Map();
    },
  };
}

/** The cells of the status. In lists that may be long, each entry is a cell, and the list itself is the cell with their keys. */
function* cellsOf(report: StatusReport, history: History): Generator<[string, unknown]> {
  for (const [key, value] of Object.entries(report)) {
    if (key === 'probes') yield* listed('probes', report.probes, ({ name }) => name);
    else if (key === 'logs') yield* listed('logs', report.logs, ({ path }) => path);
    else yield [key, value];
  }
  yield ['tick', history.newest() ?? null];
}

function* listed<T>(key: string, all: readonly T[], name: (one: T) => string): Generator<[string, unknown]> {
  yield [key, all.map(name)];
  for (const one of all) yield [`${key}:${name(one)}`, one];
}
