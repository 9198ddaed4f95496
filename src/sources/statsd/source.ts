import type { Socket } from 'node:net';
import type { OpenHandshakes } from '../../core/access.ts';
import type { Clock, Drops, Log, Source, Stop } from '../../core/ports.ts';
import { defaultBounds, type LazyStore } from '../../core/registry/value-stores.ts';
import { createSliceQueue, type SliceQueue } from '../../core/slices.ts';
import type { VocabularyDetector } from '../../core/vocabulary-detector.ts';
import type { StatsdOptions } from './block.ts';
import { createKnownLines, type KnownLines, startExpiry } from './lines/known-lines.ts';
import { type StatsdDrop, tagKeysWith } from './lines/line-format.ts';
import { createLineReader, type LineReader } from './lines/line-reader.ts';
import { createSeriesRecorder, type SeriesRecorder, type StatsdIntake } from './lines/statsd-series.ts';
import { createSenders } from './listen/senders.ts';
import { type Bound, bindTcp, bindUnix, type StreamDeps } from './listen/stream.ts';
import { type BoundUdp, bindUdp } from './listen/udp.ts';
import { createSummaries } from './summaries.ts';

const defaults = {
  /** The default is long, because `rate()` misses the increase of a rare counter (such as restarts) that ends and returns. */
  expireMs: 24 * 3_600_000,
  /** The maximum size of a line: DogStatsD sends no longer datagrams over a Unix socket. */
  lineBytes: 8192,
  /** The maximum number of streams over TCP, and of streams over a Unix socket. */
  connections: 128,
} as const;

/** Counts refused input and logs it: for each reason the first refusal, then at most one refusal an hour. */
interface RefusedInput {
  /** Counts a refused line. `example` is called only when it is logged. */
  refused(reason: StatsdDrop, example: () => string): void;
  /** The number of refused lines since the start, by reason. */
  counts(): Partial<Record<StatsdDrop, number>>;
  /** The examples that were logged last, by reason. */
  examples(): Partial<Record<StatsdDrop, string>>;
}

interface RefusedInputDeps {
  drops: Drops;
  log: Log;
  clock: Clock;
}

const againMs = 3_600_000;

function createRefusedInput({ drops, log, clock }: RefusedInputDeps): RefusedInput {
  const counts = new Map<StatsdDrop, number>();
  const shown = new Map<StatsdDrop, { atMs: number; example: string }>();
  return {
    refused(reason, example) {
      drops.count('statsd', reason);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      const last = shown.get(reason);
      if (last !== undefined && clock.monotonicMs() - last.atMs < againMs) return;
      shown.set(reason, { atMs: clock.monotonicMs(), example: example() });
      log.write('warn', 'statsd input refused', { reason, first: shown.get(reason)!.example });
    },
    counts: () => Object.fromEntries(counts),
    examples: () => Object.fromEntries([...shown].map(([reason, { example }]) => [reason, example])),
  };
}

interface StatsdDeps {
  /** The path of the block in the configuration (`services.frontend.statsd`), for the log and errors. */
  name: string;
  intake: StatsdIntake;
  /** Detects the vocabulary of the sender, which `intake` uses for translation. */
  detector: VocabularyDetector;
  /** Upper bounds of timers, histograms and distributions. Default: the bounds in the spec. */
  bounds?: readonly number[];
  /** The store of `intake`, if timers, histograms and distributions are to be summaries. Default: histograms. */
  summaries?: LazyStore;
  /** TLS of `tcp`; set if the options have `tls`. */
  openHandshakes?: OpenHandshakes<Socket>;
  /**
   * Called with the number of further datagrams that the kernel dropped: the increase of `svc_agent_statsd_kernel_drops_total`.
   */
  onKernelDrops(more: number): void;
  drops: Drops;
  log: Log;
  clock: Clock;
}

/** State of the source, for the status page. Counts are since the start. */
export interface StatsdStatus {
  /** Bound addresses by `listen`, `tcp` and `unix`. */
  addresses: Partial<Record<'listen' | 'tcp' | 'unix', string>>;
  datagrams: number;
  lines: number;
  refused: ReturnType<RefusedInput['counts']>;
  /** The refused line that was logged last, by reason. */
  examples: ReturnType<RefusedInput['examples']>;
  knownLines: number;
  /** The buffer size that the kernel granted; undefined without `listen`. */
  receiveBufferBytes: number | undefined;
  vocabulary: string | undefined;
  /** Whether the vocabulary is decided for all names so far. */
  isSettled: boolean;
}

/**
 * Receives a role's pushed metrics as lines of statsd (forms: `readLine`), over datagrams and streams. Datagrams are lost unread
 * only in the kernel's buffer, and counted there. What is read and refused is counted by reason. Streams are read at the pace at
 * which their lines are counted, so that a sender waits and no line is lost.
 */
export interface Statsd extends Source {
  /** Updates the kernel's drop counter, which is otherwise up to a second old. */
  pollKernelDrops(): void;
  status(): StatsdStatus;
}

/** The number of lines that are read between two checks of the clock. */
const stepLines = 32;
const shownBytes = 120;

const copyBytes = 65_536;
/** Shorter pieces are copied into a buffer of their own size. */
const leastReused = 16_384;
const mostFree = 4;

/** Reused buffers for bytes that must wait while their stream uses the chunk again. */
function createCopies() {
  const free: Buffer[] = [];
  return {
    /** Copies the bytes from `at` on to the beginning of a buffer, which may be longer. */
    copy(bytes: Buffer, at: number): Buffer {
      const length = bytes.length - at;
      if (length < leastReused || length > copyBytes) return Buffer.from(bytes.subarray(at));
      const copied = free.pop() ?? Buffer.allocUnsafeSlow(copyBytes);
      bytes.copy(copied, 0, at);
      return copied;
    },
    recycle(copied: Buffer): void {
      if (copied.length === copyBytes && free.length < mostFree) free.push(copied);
    },
  };
}

/** Hands bytes to the reader in slices; true if all of them were read at once. */
function createChunkReader(reader: LineReader, slices: SliceQueue) {
  const copies = createCopies();
  const readLater = (bytes: Buffer, from: number, end: number, done: () => void): void => {
    let at = from;
    slices.later(() => {
      at = reader.read(bytes, at, end, stepLines);
      if (at >= end) done();
      return at >= end;
    }, end - from);
  };
  const readNow = (bytes: Buffer): number => {
    let at = 0;
    while (at < bytes.length && slices.mayRun()) at = reader.read(bytes, at, bytes.length, stepLines);
    return at;
  };
  return {
    /** Reads a datagram, whose bytes stay valid. */
    datagram(bytes: Buffer): void {
      const at = readNow(bytes);
      if (at < bytes.length) readLater(bytes, at, bytes.length, () => {});
    },
    /** Reads a chunk, whose bytes are valid during the call only. */
    chunk(bytes: Buffer, taken: () => void): boolean {
      const at = readNow(bytes);
      if (at >= bytes.length) return true;
      const copied = copies.copy(bytes, at);
      readLater(copied, 0, bytes.length - at, () => {
        copies.recycle(copied);
        taken();
      });
      return false;
    },
  };
}

/** The path of a line: the known lines, the reader, and the detection of the vocabulary. */
function createLinePipeline(
  options: StatsdOptions,
  deps: StatsdDeps,
  refusedInput: RefusedInput,
  slices: SliceQueue,
) {
  const { intake, detector, bounds = defaultBounds, clock } = deps;
  const { tagFormat = 'auto', tagKeys, prefixes = [] } = options;
  const { lineBytes } = defaults;
  const store = deps.summaries;
  const summaries = store && createSummaries({ intake, store, clock, slices });
  const recorder = createSeriesRecorder({ intake, detector, bounds, summaries });
  const detection = createVocabularyDetection({
    detector,
    knownLines: () => knownLines,
    recorder,
    slices,
    clock,
  });
  const rules = {
    tagFormat,
    tagKeys: tagKeysWith(tagKeys),
    prefixes: prefixes.map((prefix) => `${prefix}.`).sort((one, other) => other.length - one.length),
  };
  const knownLines: KnownLines = createKnownLines({
    rules,
    recorder,
    lineBytes,
    onName: detection.addName,
    isSettled: detection.isSettled,
  });
  const reader = createLineReader({
    knownLines,
    recorder,
    lineBytes,
    refuse: (reason, bytes, from, to) =>
      refusedInput.refused(reason, () => bytes.toString('utf8', from, Math.min(to, from + shownBytes))),
  });
  return { knownLines, reader, detection, summaries };
}

export function createStatsd(options: StatsdOptions, deps: StatsdDeps): Statsd {
  const { name, log, clock, onKernelDrops } = deps;
  const refusedInput = createRefusedInput({ drops: deps.drops, log, clock });
  const slices = createSliceQueue(clock);
  const { knownLines, reader, detection, summaries } = createLinePipeline(
    options,
    deps,
    refusedInput,
    slices,
  );
  const take = createChunkReader(reader, slices);
  const bound: Partial<{ listen: BoundUdp; tcp: Bound; unix: Bound }> = {};

  const onForbiddenSender = (address: string) => refusedInput.refused('sender_not_allowed', () => address);
  const streamOptions = (key: string) => ({ ...defaults, name: `${name}.${key}` });
  const streamDeps: StreamDeps = {
    log,
    take: take.chunk,
    refuse: (reason, bytes) => refusedInput.refused(reason, () => bytes.toString('utf8', 0, shownBytes)),
    onHandshakeFailed: (reason) => refusedInput.refused('handshake_failed', () => reason),
    onTooMany: () =>
      refusedInput.refused('too_many_connections', () => `more than ${defaults.connections} connections`),
  };
  const takeDatagram = (bytes: Buffer) => {
    if (bytes.length === 0) refusedInput.refused('invalid_line', () => '');
    else take.datagram(bytes);
  };

  const bindAll = async () => {
    const senders = createSenders(options.senders, clock.monotonicMs);
    const { listen, tcp, unix, receiveBufferBytes } = options;
    if (listen !== undefined) {
      const at = { name: `${name}.listen`, address: listen, receiveBufferBytes };
      bound.listen = await bindUdp(at, {
        senders,
        log,
        clock,
        take: takeDatagram,
        onForbiddenSender,
        onKernelDrops,
      });
    }
    if (tcp !== undefined) {
      const { openHandshakes } = deps;
      const tcpDeps = { ...streamDeps, senders, onForbiddenSender, openHandshakes };
      bound.tcp = await bindTcp(tcp, streamOptions('tcp'), tcpDeps);
    }
    if (unix !== undefined) bound.unix = await bindUnix(unix, streamOptions('unix'), streamDeps);
  };
  const unbind = () => Promise.all(Object.values(bound).map((one) => one.close()));

  return {
    async start(): Promise<Stop> {
      await bindAll().catch(async (thrown: unknown) => {
        await unbind();
        throw thrown;
      });
      const stopExpiry = startExpiry(knownLines, options.expireMs ?? defaults.expireMs, {
        clock,
        slices,
      });
      const stopSliding = summaries?.start();
      return async () => {
        stopExpiry();
        stopSliding?.();
        await unbind();
        slices.finish();
        detection.stop();
        for (let id = 0; id < knownLines.end; id++) knownLines.forget(id);
        knownLines.forgetRefused();
      };
    },
    pollKernelDrops: () => bound.listen?.pollKernelDrops(),
    status: () => ({
      addresses: Object.fromEntries(Object.entries(bound).map(([key, { address }]) => [key, address])),
      datagrams: bound.listen?.datagrams ?? 0,
      lines: reader.lines,
      refused: refusedInput.counts(),
      examples: refusedInput.examples(),
      knownLines: knownLines.size,
      receiveBufferBytes: bound.listen?.receiveBufferBytes,
      vocabulary: deps.detector.vocabulary?.name,
      isSettled: detection.isSettled(),
    }),
  };
}

/** Detects the vocabulary of a sender from the names that it uses, and reopens its series under their new names. */
interface VocabularyDetection {
  addName(name: string): void;
  /** Whether the vocabulary is decided for all names so far. */
  isSettled(): boolean;
  stop(): void;
}

export interface VocabularyDetectionDeps {
  detector: VocabularyDetector;
  knownLines(): KnownLines;
  recorder: SeriesRecorder;
  slices: SliceQueue;
  clock: Clock;
}

const delayMs = 1000;
/** Names beyond this number are ignored: no product has so many, and each takes memory permanently. */
const maxNames = 10_000;

export function createVocabularyDetection({
  detector,
  knownLines,
  recorder,
  slices,
  clock,
}: VocabularyDetectionDeps): VocabularyDetection {
  const names = new Set<string>();
  let cancel: (() => void) | undefined;

  /** Ids of the known lines of these names, grouped by series. */
  const bySeries = (retranslated: ReadonlySet<string>): number[][] => {
    const groups = new Map<string, number[]>();
    for (let id = 0; id < knownLines().end; id++) {
      const series = knownLines().seriesOf(id);
      if (series === undefined || !retranslated.has(series.line.name)) continue;
      const { type, name, tags } = series.line;
      const key = JSON.stringify([type, name, Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))]);
      const group = groups.get(key);
      if (group) group.push(id);
      else groups.set(key, [id]);
    }
    return [...groups.values()];
  };
  const reopenAll = (ids: readonly number[]) =>
    recorder.reopen(ids.map((id) => knownLines().seriesOf(id)).filter((series) => series !== undefined));

  const reopen = (retranslated: ReadonlySet<string>) => {
    knownLines().forgetRefused();
    const groups = bySeries(retranslated);
    // This happens in one step: a line that arrives meanwhile would join the old series. Few series have several lines.
    for (const group of groups) if (group.length > 1) reopenAll(group);
    const alone = groups.filter((group) => group.length === 1);
    let next = 0;
    slices.whenIdle(() => {
      for (const stop = next + 16; next < stop && next < alone.length; next++) reopenAll(alone[next]!);
      return next >= alone.length;
    });
  };

  const listen = () => {
    cancel = undefined;
    const retranslated = detector.detect(new Set(names));
    if (retranslated.size > 0) reopen(retranslated);
  };

  return {
    addName(name) {
      if (names.has(name) || names.size >= maxNames) return;
      names.add(name);
      cancel ??= clock.after(delayMs, listen);
    },
    isSettled: () => cancel === undefined,
    stop: () => cancel?.(),
  };
}
