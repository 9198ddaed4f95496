import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import type { Clock, LogFields } from '../src/core/ports.ts';
import type { Disk } from '../src/sources/logs/discovery/disk.ts';
import { createTailer, type Tailer } from '../src/sources/logs/files/tailer.ts';
import type { LogsOptions } from '../src/sources/logs/options.ts';
import type { LineSink, OpenSink, SinkFile } from '../src/sources/logs/sink.ts';
import { type ManualClock, manualClock } from './clock.ts';
import { logDefaults } from './log-defaults.ts';

interface Skip {
  reason: string;
  bytes: number;
}

/** Sinks that store every line. */
export interface Recorder {
  readonly open: OpenSink;
  readonly lines: string[];
  readonly skips: Skip[];
  readonly files: SinkFile[];
}

const newline = 10;

/** The simplest sink that fulfils the interface; `state` is a constant, which shows whether it is handed on. */
function recordingSink(recorder: Omit<Recorder, 'open'>): LineSink {
  return {
    write(bytes, start, end) {
      let at = start;
      for (;;) {
        const from = at;
        while (at < end && bytes[at] === 0) at++;
        if (at > from) recorder.skips.push({ reason: 'nul_hole', bytes: at - from });
        const next = bytes.subarray(0, end).indexOf(newline, at);
        if (next < 0) return at;
        recorder.lines.push(bytes.toString('utf8', at, next));
        at = next + 1;
      }
    },
    finish(bytes, start, end) {
      if (end > start) recorder.lines.push(bytes.toString('utf8', start, end));
    },
    skip: (reason, bytes) => void recorder.skips.push({ reason, bytes }),
    state: () => undefined,
  };
}

export function createRecorder(): Recorder {
  const kept = { lines: [] as string[], skips: [] as Skip[], files: [] as SinkFile[] };
  return {
    ...kept,
    open(file) {
      kept.files.push(file);
      return recordingSink(kept);
    },
  };
}

export const logsOptions = (options: Partial<LogsOptions>): LogsOptions => ({
  ...logDefaults,
  container: 'none',
  ...options,
});

interface TailOptions {
  /** Paths relative to the test's directory. */
  paths?: readonly string[];
  exclude?: readonly string[];
  startAt?: 'end' | 'beginning';
  services?: (root: string) => Record<string, LogsOptions>;
  selected?: readonly string[];
  disk?: Disk;
  clock?: Clock;
  maxOpenFiles?: number;
  sliceMs?: number;
  /** Replaces the sinks of the recorder. */
  open?: OpenSink;
}

/** A tailer over a separate directory, and what happens to the files in it. */
export interface Tail {
  readonly root: string;
  readonly clock: ManualClock;
  readonly recorder: Recorder;
  readonly lags: Map<string, number>;
  readonly logged: { level: string; msg: string; fields?: LogFields }[];
  tailer: Tailer;
  path(name: string): string;
  /** The lines that were counted since the last call. */
  taken(): string[];
  scan(): Promise<void>;
  /** Scans, and returns all lines that were counted. */
  scanned(): Promise<string[]>;
  /** Scans after a time in which everything that was rotated is quiet. */
  settle(): Promise<void>;
  /** Settles, and returns all lines that were counted. */
  settled(): Promise<string[]>;
  /** Ends the tailer in order and starts another one from its positions. */
  restart(options?: TailOptions): Promise<void>;
  /** Saves the current positions and counts. */
  save(): void;
  /** Forgets everything since `save` and starts another tailer from there. */
  kill(): Promise<void>;
  append(name: string, text: string): void;
  create(name: string, text: string | Uint8Array): void;
  rename(from: string, to: string): void;
  copyTruncate(name: string, to: string): void;
  truncate(name: string): void;
  remove(name: string): void;
  gzip(name: string): void;
  exists(name: string): boolean;
  read(name: string): string;
  bytes(name: string): Buffer;
  /** Opens a file for writing as a service does; it is closed with the test. */
  writer(name: string, flags?: string): { write(text: string): void; truncate(): void; close(): void };
}

function servicesOf(options: TailOptions, root: string): Record<string, LogsOptions> {
  if (options.services) return options.services(root);
  const absolute = (pattern: string) => join(root, pattern);
  const { exclude = [], startAt = 'beginning' } = options;
  const paths = (options.paths ?? ['app.log']).map(absolute);
  const excluded = exclude.map((pattern) => (pattern.includes('/') ? absolute(pattern) : pattern));
  return { history: logsOptions({ paths, exclude: excluded, startAt }) };
}

const seqLines = (from: number, count: number) =>
  Array.from(
    { length: count },
    (_, i) => `seq=${String(from + i).padStart(7, '0')} ${'x'.repeat((from + i) % 23)}`,
  );

/** `count` numbered lines beginning with `from`, and the text with these lines. */
export function numbered(from: number, count: number): { lines: string[]; text: string } {
  const lines = seqLines(from, count);
  return { lines, text: lines.map((line) => `${line}\n`).join('') };
}

const filesIn = (path: (name: string) => string, atEnd: (call: () => void) => void) => ({
  append: (name: string, text: string) => appendFileSync(path(name), text),
  create(name: string, text: string | Uint8Array) {
    mkdirSync(dirname(path(name)), { recursive: true });
    writeFileSync(path(name), text);
  },
  rename: (from: string, to: string) => renameSync(path(from), path(to)),
  copyTruncate(name: string, to: string) {
    copyFileSync(path(name), path(to));
    truncateSync(path(name), 0);
  },
  truncate: (name: string) => truncateSync(path(name), 0),
  remove: (name: string) => rmSync(path(name), { recursive: true }),
  gzip(name: string) {
    const { atime, mtime } = statSync(path(name));
    writeFileSync(path(`${name}.gz`), gzipSync(readFileSync(path(name))));
    utimesSync(path(`${name}.gz`), atime, mtime);
    rmSync(path(name));
  },
  exists: (name: string) => existsSync(path(name)),
  read: (name: string) => readFileSync(path(name), 'utf8'),
  bytes: (name: string) => readFileSync(path(name)),
  writer(name: string, flags = 'a') {
    const fd = openSync(path(name), flags);
    let isOpen = true;
    const close = () => {
      if (isOpen) closeSync(fd);
      isOpen = false;
    };
    atEnd(close);
    return { write: (text: string) => void writeSync(fd, text), truncate: () => ftruncateSync(fd, 0), close };
  },
});

/** Creates a tailer that does not end with the test: `end` closes and removes everything. */
export function openTail(options: TailOptions = {}): Tail & { end(): Promise<void> } {
  const root = mkdtempSync(join(tmpdir(), 'tail-'));
  const clock = manualClock();
  const recorder = createRecorder();
  const lags = new Map<string, number>();
  const logged: Tail['logged'] = [];
  const log = {
    write: (level: string, msg: string, fields?: LogFields) => void logged.push({ level, msg, fields }),
    named: () => log,
  };
  const ends: (() => void)[] = [];
  const path = (name: string) => join(root, name);
  let current = options;
  let taken = 0;
  let saved = { section: undefined as Uint8Array | undefined, lines: 0, skips: 0 };

  const begin = (section: Uint8Array | undefined) => {
    const services = servicesOf(current, root);
    const selected = new Set(current.selected ?? Object.keys(services));
    const tailer = createTailer(
      { services, selected, maxOpenFiles: current.maxOpenFiles, sliceMs: current.sliceMs },
      {
        openSink: current.open ?? recorder.open,
        clock: current.clock ?? clock,
        log,
        lag: (service, bytes) => void lags.set(service, bytes),
        disk: current.disk,
      },
    );
    if (section) tailer.restore(section);
    return tailer;
  };

  const tail: Tail & { end(): Promise<void> } = {
    ...filesIn(path, (call) => ends.push(call)),
    root,
    clock,
    recorder,
    lags,
    logged,
    tailer: begin(undefined),
    path,
    taken() {
      const lines = recorder.lines.slice(taken);
      taken = recorder.lines.length;
      return lines;
    },
    scan: () => tail.tailer.scan(),
    async scanned() {
      await tail.scan();
      return recorder.lines;
    },
    async settle() {
      await tail.scan();
      clock.advance(11_000);
      await tail.scan();
      await tail.scan();
    },
    async settled() {
      await tail.settle();
      return recorder.lines;
    },
    async restart(next) {
      current = { ...current, ...next };
      await tail.tailer.close();
      tail.tailer = begin(Uint8Array.from(tail.tailer.freeze()));
    },
    save() {
      const section = Uint8Array.from(tail.tailer.freeze());
      saved = { section, lines: recorder.lines.length, skips: recorder.skips.length };
    },
    async kill() {
      await tail.tailer.close();
      recorder.lines.length = saved.lines;
      recorder.skips.length = saved.skips;
      tail.tailer = begin(saved.section);
    },
    async end() {
      await tail.tailer.close();
      for (const call of ends) call();
      rmSync(root, { recursive: true, force: true });
    },
  };
  return tail;
}

/** A tailer that ends with the test. */
export function createTail(options: TailOptions = {}): Tail {
  const tail = openTail(options);
  onTestFinished(() => tail.end());
  return tail;
}

/** A tailer that has counted `count` numbered lines of app.log. */
export async function tailOf(count: number, options?: TailOptions): Promise<Tail> {
  const tail = createTail(options);
  tail.create('app.log', numbered(0, count).text);
  await tail.scan();
  return tail;
}
