import { randomUUID } from 'node:crypto';
import type { Clock, Drops } from '../../core/ports.ts';
import { nextTurn } from '../../core/slices.ts';
import type { Reply, Request, Route, StreamBody } from '../../reporters/listen/http.ts';
import type { StatusReport } from '../report.ts';
import type { History } from './history.ts';

interface LiveDeps {
  report(): StatusReport;
  history: History;
  /** Makes counts fresh. */
  commit(): Promise<unknown>;
  clock: Clock;
  drops: Drops;
}

/** Streams of changes of the status, as server-sent events (html.spec.whatwg.org, Server-sent events). */
export interface Live {
  route: Route;
  /** Open streams. */
  readonly streams: number;
  /** Ends every stream; browsers connect again. */
  endAll(): void;
}

/** A part of the status that is sent as a whole when it changes: `verdict`, `probes:health/frontend`. */
interface Cell {
  json: string;
  /** The version with which it changed last. */
  version: number;
}

interface Client {
  body: StreamBody;
  /** The version up to which it has everything. */
  seen: number;
  /** Monotonic; when its buffer was full. */
  stuckMs: number | undefined;
  openedMs: number;
  /** Nothing was sent yet but the headers, which may still be under way. */
  isNew: boolean;
}

const longestSliceMs = 5;
/** Streams at a time; fewer than a listener keeps for requests of others. */
const mostStreams = 16;
/** Interval of the status while a client is connected. */
const stepMs = 1_000;
/** A status that takes long to make is sent less often, at the least this often. */
const longestStepMs = 5_000;
/** A client that has not read for this long is disconnected. */
const slowMs = 10_000;
/** A stream ends after this time and the browser connects again, so that credentials that changed count. */
const longestMs = 600_000;

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Proxies must not buffer events.
  'x-accel-buffering': 'no',
};

/**
 * Every second while a client is connected, the cells that changed are sent. Nothing is queued: a client that has not
 * taken the last event gets the next one when it has, with all that changed meanwhile. A client that comes back with
 * `Last-Event-ID` gets what changed since; any other gets everything.
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

  /** Whether the client takes another event now; ends one that is slow, old or gone. */
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
    // No client is connected: nothing is kept.
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
    // The status last sent to others is recent enough until the next step.
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

/** The status in parts, each with the version with which it changed last. */
interface Cells {
  readonly version: number;
  readonly isEmpty: boolean;
  /** Reads the status in slices: that of 500 domains is a megabyte of JSON. Returns the time that it worked, ms. */
  update(): Promise<number>;
  /** The event with all that changed after a version. */
  changesSince(seen: number): Buffer;
  /** The version that a client has, from the id of its last event; 0 if it is not one of these. */
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
      // JSON has no line breaks, so each event is one line. One is sent at every poll: it is the heartbeat, too.
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

/** Lists of the status that may be long: each entry is a cell, and the list itself is that of their keys. */
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
