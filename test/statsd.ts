import { createSocket } from 'node:dgram';
import type { Counter, Gauge, Histogram, Intake, RawTags, Summary } from '../src/core/model.ts';
import type { Clock, Drops, Log, Stop } from '../src/core/ports.ts';
import { defaultBounds } from '../src/core/registry/value-stores.ts';
import { createVocabularyDetector, type VocabularyDetector } from '../src/core/vocabulary-detector.ts';
import type { StatsdOptions } from '../src/sources/statsd/block.ts';
import { createKnownLines } from '../src/sources/statsd/lines/known-lines.ts';
import type { LineRules } from '../src/sources/statsd/lines/line-format.ts';
import { tagKeysWith } from '../src/sources/statsd/lines/line-format.ts';
import { createLineReader } from '../src/sources/statsd/lines/line-reader.ts';
import { createSeriesRecorder, type SeriesRecorder } from '../src/sources/statsd/lines/statsd-series.ts';
import {
  createStatsd,
  createVocabularyDetection,
  type Statsd,
  type VocabularyDetectionDeps,
} from '../src/sources/statsd/source.ts';
import { stopOnce } from './test-end.ts';

/** A reader of lines in any tag format; `refuse` is called with the reason for each refused line. */
export function lineReader(recorder: SeriesRecorder, refuse: (reason: string) => void = () => {}) {
  const lineBytes = 8192;
  const rules = { tagFormat: 'auto', tagKeys: new Set<string>(), prefixes: [] } as const;
  const knownLines = createKnownLines({ rules, recorder, lineBytes, onName() {}, isSettled: () => true });
  const reader = createLineReader({ knownLines, recorder, lineBytes, refuse });
  return {
    knownLines,
    read(text: string): void {
      const bytes = Buffer.from(text);
      reader.read(bytes, 0, bytes.length, Number.POSITIVE_INFINITY);
    },
  };
}

/** A number, or the observations as pairs of value and weight. */
export type Recorded = number | [value: number, weight: number][];

/** Stores numbers under `kind name{"tag":"value"}`, with tags in order. Series without an owner are removed. */
interface RecordingIntake extends Intake {
  shown(): Record<string, Recorded>;
}

/** Creates the intake. With `detector`, names are stored as its vocabulary translates them, like in the registry. */
export function recordingIntake(detector?: VocabularyDetector): RecordingIntake {
  const series = new Map<string, { value: Recorded; owners: number }>();
  const hold = (kind: 'counter' | 'gauge' | 'histogram', raw: string, rawTags: RawTags) => {
    const translated = detector?.translate(kind, raw, rawTags);
    const { name, tags } = typeof translated === 'object' ? translated : { name: raw, tags: rawTags };
    const pairs = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
    const key = `${kind} ${name}${pairs.length === 0 ? '' : JSON.stringify(Object.fromEntries(pairs))}`;
    const held = series.get(key) ?? { value: kind === 'histogram' ? [] : 0, owners: 0 };
    series.set(key, held);
    held.owners += 1;
    const release = () => {
      held.owners -= 1;
      if (held.owners < 0) throw new Error(`released twice: ${key}`);
      if (held.owners === 0) series.delete(key);
    };
    return { held, release };
  };
  const number =
    (kind: 'counter' | 'gauge') =>
    (name: string, tags: RawTags): Counter & Gauge => {
      const { held, release } = hold(kind, name, tags);
      return {
        add(delta) {
          held.value = (held.value as number) + delta;
        },
        set(value) {
          held.value = value;
        },
        release,
      };
    };
  return {
    counter: number('counter'),
    gauge: number('gauge'),
    untyped: number('gauge'),
    histogram(name, tags): Histogram {
      const { held, release } = hold('histogram', name, tags);
      return {
        observe: (value, weight = 1) => void (held.value as [number, number][]).push([value, weight]),
        set() {},
        release,
      };
    },
    summary: (): Summary => {
      throw new Error('no summaries come from statsd');
    },
    shown: () => Object.fromEntries([...series].map(([key, { value }]) => [key, value])),
  };
}

/** Reads lines directly from bytes, without a socket. */
export function lineBed(rules: Partial<LineRules> = {}) {
  const intake = recordingIntake();
  const refused: Record<string, number> = {};
  const recorder = createSeriesRecorder({
    intake,
    detector: createVocabularyDetector([]),
    bounds: defaultBounds,
  });
  const knownLines = createKnownLines({
    rules: { tagFormat: 'auto', tagKeys: tagKeysWith(), prefixes: [], ...rules },
    recorder,
    lineBytes: 8192,
    onName() {},
    isSettled: () => true,
  });
  const reader = createLineReader({
    knownLines,
    recorder,
    lineBytes: 8192,
    refuse(reason) {
      refused[reason] = (refused[reason] ?? 0) + 1;
    },
  });
  return {
    knownLines,
    refused,
    shown: intake.shown,
    reader,
    /** Reads a datagram in a buffer that has the bytes `behind` after it. */
    read(datagram: string | Buffer, behind = '') {
      const bytes = Buffer.concat([Buffer.from(datagram), Buffer.from(behind)]);
      reader.read(bytes, 0, bytes.length - behind.length, Number.POSITIVE_INFINITY);
    },
  };
}

/** What one datagram results in. */
export function readOnce(datagram: string | Buffer, rules: Partial<LineRules> = {}, behind = '') {
  const bed = lineBed(rules);
  bed.read(datagram, behind);
  return { shown: bed.shown(), refused: bed.refused };
}

/** The known lines of a sender whose vocabulary is detected, and the reader that adds lines to them. */
export function detectedLines(deps: Omit<VocabularyDetectionDeps, 'knownLines'>) {
  const { recorder } = deps;
  const detection = createVocabularyDetection({ ...deps, knownLines: () => knownLines });
  const knownLines = createKnownLines({
    rules: { tagFormat: 'auto', tagKeys: new Set(), prefixes: [] },
    recorder,
    lineBytes: 8192,
    onName: detection.addName,
    isSettled: detection.isSettled,
  });
  const reader = createLineReader({ knownLines, recorder, lineBytes: 8192, refuse() {} });
  const read = (text: string) => void reader.read(Buffer.from(text), 0, Buffer.byteLength(text), 100_000);
  return { knownLines, read };
}

export const silentLog: Log = { write() {}, named: () => silentLog };

/** A source on real sockets, which stops with the test. It records everything that the source reports. */
export interface OpenStatsd {
  statsd: Statsd;
  shown(): Record<string, Recorded>;
  drops: Record<string, number>;
  kernelDrops: { total: number };
  stop: Stop;
}

export async function openStatsd(
  options: Partial<StatsdOptions>,
  clock: Clock,
  over: { detector?: VocabularyDetector; intake?: Intake; log?: Log } = {},
): Promise<OpenStatsd> {
  const detector = over.detector ?? createVocabularyDetector([]);
  const recording = recordingIntake(detector);
  const drops: Record<string, number> = {};
  const kernelDrops = { total: 0 };
  const count: Drops['count'] = (component, reason, n = 1) => {
    drops[`${component}/${reason}`] = (drops[`${component}/${reason}`] ?? 0) + n;
  };
  const statsd = createStatsd(
    { senders: [], receiveBufferBytes: 4 * 1024 * 1024, ...options },
    {
      name: 'services.frontend.statsd',
      intake: over.intake ?? recording,
      detector,
      onKernelDrops(more) {
        kernelDrops.total += more;
      },
      drops: { count },
      log: over.log ?? silentLog,
      clock,
    },
  );
  const stop = stopOnce(await statsd.start());
  return { statsd, shown: recording.shown, drops, kernelDrops, stop };
}

/** Sends datagrams one after the other; each is passed to the kernel before the next. */
export async function sendDatagrams(
  address: string,
  datagrams: readonly (string | Buffer)[],
  from?: string,
): Promise<void> {
  const at = address.lastIndexOf(':');
  const host = address.slice(0, at).replace(/[[\]]/g, '');
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  if (from !== undefined) await new Promise<void>((resolve) => socket.bind(0, from, resolve));
  for (const datagram of datagrams) {
    await new Promise<void>((resolve, reject) =>
      socket.send(datagram, Number(address.slice(at + 1)), host, (error) =>
        error ? reject(error) : resolve(),
      ),
    );
  }
  await new Promise<void>((resolve) => socket.close(resolve));
}
