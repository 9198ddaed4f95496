import { gzipSync } from 'node:zlib';
import type { Clock } from '../src/core/ports.ts';
import { createTailer, type Tailer } from '../src/sources/logs/files/tailer.ts';
import { createModelDisk, type ModelDisk, type ModelFile, modelDirectory } from './disk-model.ts';

/**
 * A model of a directory of logs: writers, rotations and compressors run as sequences of single system calls, and a
 * seeded scheduler runs them between any two calls of the tailer. Lines carry their log and generation, so that
 * counts are compared per generation.
 */
export interface Verdict {
  seed: number;
  style: string;
  /** What is wrong, by generation; empty if nothing is. */
  faults: string[];
  trace: string[];
  rotations: number;
  kills: number;
  lines: number;
}

export interface ModelOptions {
  /** Styles to choose from; all unless told. */
  styles?: readonly Style[];
  compress?: boolean;
  kills?: boolean;
  /** Whether the scheduler acts within a scan, or only between two. */
  within?: boolean;
  trace?: boolean;
}

const styles = ['numbered', 'upwards', 'dated', 'copytruncate', 'datedCopy', 'strangeCopy', 'links'] as const;
export type Style = (typeof styles)[number];

type Random = (below: number) => number;

/** Mulberry32. */
function randomOf(seed: number): Random {
  let state = (seed * 0x9e3779b1) >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

/** One text of a line, with how often it was written and counted. */
interface Line {
  readonly text: string;
  written: number;
  /** How often the counts of the last snapshot have it. */
  saved: number;
  counted: number;
  /** Was there, and not read, before the agent's first scan. */
  before: number;
  mayLose: boolean;
}

interface World {
  disk: ModelDisk;
  random: Random;
  /** The time as lines begin with it. */
  now(): string;
  note(text: string): void;
  /** By their texts; those included that were counted and never written. */
  lines: Map<string, Line>;
  savedLines: number;
  rotations: number;
  /** Rotations that have begun and not ended. */
  busy: number;
  isEnding: boolean;
}

interface Log {
  name: string;
  style: Style;
  generation: number;
  n: number;
  file: ModelFile;
  /** An unfinished line, and what is not written of it yet. */
  begun: { readonly text: string; readonly rest: string } | undefined;
  isTimed: boolean;
  banner: string;
  compresses: boolean;
  delays: boolean;
  keepsTime: boolean;
  /** The writer goes on in the old file for a while after a rotation. */
  lingers: boolean;
  /** Archives are not compressed at all: they are larger than what the agent inflates to compare them. */
  stores: boolean;
  /** Bytes that a line may have beyond its name. */
  lineBytes: number;
  /** Rotated names that are not renamed any more, the oldest first. */
  rotated: string[];
  /** Lines by file, to know what a deletion loses. */
  linesOf: Map<ModelFile, Line[]>;
}

const newline = 10;
const padding = 'y'.repeat(500);

function lineOf(world: World, text: string): Line {
  let line = world.lines.get(text);
  if (!line) {
    line = { text, written: 0, saved: 0, counted: 0, before: 0, mayLose: false };
    world.lines.set(text, line);
  }
  return line;
}

const nextText = (world: World, log: Log): string =>
  `${log.isTimed ? `${world.now()} ` : ''}${log.name} g${log.generation} n${log.n++} ${padding.slice(0, world.random(log.lineBytes))}`;

function wrote(world: World, log: Log, file: ModelFile, text: string): Line {
  const line = lineOf(world, text);
  line.written++;
  const lines = log.linesOf.get(file);
  if (lines) lines.push(line);
  else log.linesOf.set(file, [line]);
  return line;
}

/** Writes whole lines, and now and then a line in two pieces. */
function* writer(world: World, log: Log): Generator<void> {
  const { random, disk } = world;
  const write = (text: string, rest = text) => {
    disk.append(log.file, rest, newline);
    wrote(world, log, log.file, text);
  };
  for (;;) {
    const isPartial = random(6) === 0;
    if (isPartial && !log.begun) {
      const text = nextText(world, log);
      disk.append(log.file, text.slice(0, 12));
      log.begun = { text, rest: text.slice(12) };
    } else {
      if (log.begun) finishLine(world, log);
      else write(nextText(world, log));
      for (let more = random(3); more > 0; more--) write(nextText(world, log));
    }
    yield;
  }
}

/** The writer ends its line before it opens another file, as services do. */
function finishLine(world: World, log: Log): void {
  if (!log.begun) return;
  const { text, rest } = log.begun;
  world.disk.append(log.file, rest, newline);
  wrote(world, log, log.file, text);
  log.begun = undefined;
}

function openFile(world: World, log: Log, file: ModelFile): void {
  finishLine(world, log);
  world.disk.release(log.file);
  log.file = file;
  world.disk.hold(file);
  log.generation++;
  if (log.banner && file.length === 0) {
    world.disk.append(file, log.banner, newline);
    wrote(world, log, file, log.banner);
  }
}

const keptNumber = 5;

const isCounted = (lines: readonly Line[]) => lines.every(({ saved, written }) => saved >= written);

/** Whether what falls off the end of the chain has been counted for good. */
function mayDelete(world: World, log: Log, name: string): boolean {
  const file = world.disk.file(name);
  return !file || isCounted(log.linesOf.get(file) ?? []);
}

function* makeRoom(world: World, log: Log): Generator<void> {
  const { disk } = world;
  for (const suffix of ['', '.gz']) {
    const last = `${log.name}.${keptNumber}${suffix}`;
    if (disk.names.has(last)) {
      disk.unlink(last);
      world.note(`unlink ${last}`);
      yield;
    }
  }
  for (let n = keptNumber - 1; n > 0; n--) {
    for (const suffix of ['', '.gz']) {
      const from = `${log.name}.${n}${suffix}`;
      if (!disk.names.has(from)) continue;
      disk.rename(from, `${log.name}.${n + 1}${suffix}`);
      world.note(`rename ${from} .${n + 1}${suffix}`);
      yield;
    }
  }
}

/** Deletes the oldest rotated files as far as they have been counted for good. */
function* deleteOldest(world: World, log: Log): Generator<void> {
  const { disk } = world;
  while (log.rotated.length > keptNumber) {
    const [oldest] = log.rotated;
    for (const name of [oldest!, `${oldest}.gz`]) {
      if (!mayDelete(world, log, name)) return;
      if (!disk.names.has(name)) continue;
      disk.unlink(name);
      world.note(`unlink ${name}`);
      yield;
    }
    log.rotated.shift();
  }
}

function rotatedName(log: Log): string {
  const name = newName(log);
  if (name === undefined) return `${log.name}.1`;
  log.rotated.push(name);
  return name;
}

function newName(log: Log): string | undefined {
  if (log.style === 'upwards') return `${log.name}.${log.generation}`;
  if (log.style === 'dated' || log.style === 'datedCopy') {
    const day = String(10_000 + log.generation).slice(1);
    return `${log.name}-2026${day}`;
  }
  return log.style === 'strangeCopy' ? `saved${log.generation}-${log.name}` : undefined;
}

function* compress(world: World, log: Log, name: string): Generator<void> {
  const { disk } = world;
  const plain = disk.file(name);
  if (!plain || log.file === plain) return;
  const level = log.stores ? 0 : 1;
  const packed = gzipSync(plain.bytes.subarray(0, plain.length), { level, memLevel: 1, windowBits: 9 });
  const target = disk.create(`${name}.gz`);
  world.note(`gzip ${name} begins`);
  yield;
  const half = world.random(packed.length);
  disk.append(target, packed.subarray(0, half));
  yield;
  disk.append(target, packed.subarray(half));
  log.linesOf.set(target, log.linesOf.get(plain) ?? []);
  yield;
  if (log.keepsTime) target.mtimeMs = plain.mtimeMs;
  yield;
  disk.unlink(name);
  world.note(`gzip ${name} ends`);
  yield;
}

function* rotateByRename(world: World, log: Log): Generator<void> {
  const { disk, random } = world;
  if (log.style === 'numbered') yield* makeRoom(world, log);
  const to = rotatedName(log);
  disk.rename(log.name, to);
  world.note(`rename ${log.name} ${to}`);
  yield;
  if (log.lingers) for (let n = random(4); n > 0; n--) yield;
  const file = disk.create(log.name);
  world.note(`create ${log.name}`);
  yield;
  if (log.lingers) for (let n = random(4); n > 0; n--) yield;
  openFile(world, log, file);
  yield;
  if (!log.compresses) return;
  const packed = log.delays && log.style === 'numbered' ? `${log.name}.2` : to;
  if (disk.names.has(packed)) yield* compress(world, log, packed);
}

function* rotateByCopy(world: World, log: Log): Generator<void> {
  const { disk, random } = world;
  if (log.style === 'copytruncate') yield* makeRoom(world, log);
  const to = rotatedName(log);
  const target = disk.create(to);
  world.note(`copy ${log.name} ${to}`);
  yield;
  const { file } = log;
  while (target.length < file.length) {
    const end = Math.min(file.length, target.length + 40 + random(14 * log.lineBytes));
    disk.append(target, file.bytes.subarray(target.length, end));
    yield;
  }
  const copied = target.length;
  if (log.keepsTime) target.mtimeMs = file.mtimeMs;
  yield;
  // What is written from here to the truncation is lost by copytruncate itself.
  const lines = log.linesOf.get(file) ?? [];
  let at = 0;
  for (const line of lines) {
    at += line.text.length + 1;
    if (at > copied) line.mayLose = true;
  }
  if (log.begun) lineOf(world, log.begun.text).mayLose = true;
  disk.truncate(file);
  world.note(`truncate ${log.name}`);
  log.linesOf.set(
    target,
    lines.filter(({ mayLose }) => !mayLose),
  );
  log.linesOf.set(file, []);
  if (log.begun) {
    // The rest of the line goes to the new file as a line of its own.
    const { rest } = log.begun;
    disk.append(file, rest, newline);
    wrote(world, log, file, rest).mayLose = true;
    log.begun = undefined;
  }
  log.generation++;
  yield;
  if (log.compresses && log.style !== 'strangeCopy') {
    const packed = log.delays && log.style === 'copytruncate' ? `${log.name}.2` : to;
    if (disk.names.has(packed)) yield* compress(world, log, packed);
  }
}

function* rotateByLink(world: World, log: Log): Generator<void> {
  const { disk } = world;
  log.rotated.push(`${log.name}-${log.generation}.txt`);
  const name = `${log.name}-${log.generation + 1}.txt`;
  const file = disk.create(name);
  world.note(`create ${name}`);
  yield;
  openFile(world, log, file);
  yield;
  disk.link(`${log.name}.tmp`, name);
  yield;
  disk.rename(`${log.name}.tmp`, log.name);
  world.note(`swing ${log.name} to ${name}`);
  yield;
}

function* rotator(world: World, log: Log): Generator<void> {
  for (;;) {
    for (let n = world.random(40); n > 0; n--) yield;
    if (log.file.length === 0) continue;
    const oldest = [`${log.name}.${keptNumber}`, `${log.name}.${keptNumber}.gz`];
    if (!oldest.every((name) => mayDelete(world, log, name))) continue;
    if (world.isEnding) return;
    world.rotations++;
    world.busy++;
    yield* deleteOldest(world, log);
    if (log.style === 'links') yield* rotateByLink(world, log);
    else if (log.style.toLowerCase().includes('copy')) yield* rotateByCopy(world, log);
    else yield* rotateByRename(world, log);
    world.busy--;
  }
}

const dayMs = 24 * 3600 * 1000;
const padded = (n: number, digits = 2) => String(n).padStart(digits, '0');

/** The time of `nowMs` as ISO 8601 text; the date is made once per day and the text once while the time stands still. */
function timeText(nowMs: () => number): () => string {
  let madeMs = Number.NaN;
  let text = '';
  let day = Number.NaN;
  let date = '';
  return () => {
    const ms = nowMs();
    if (madeMs === ms) return text;
    madeMs = ms;
    if (Math.floor(ms / dayMs) !== day) {
      day = Math.floor(ms / dayMs);
      date = new Date(ms).toISOString().slice(0, 11);
    }
    const rest = ms % dayMs;
    const [hours, minutes] = [Math.floor(rest / 3_600_000), Math.floor(rest / 60_000) % 60];
    const seconds = Math.floor(rest / 1000) % 60;
    text = `${date}${padded(hours)}:${padded(minutes)}:${padded(seconds)}.${padded(rest % 1000, 3)}Z`;
    return text;
  };
}

const ready = Promise.resolve();

/** Stands for SIGKILL; without a stack, which costs more than all else. */
const killed = { message: 'killed' };

const banners = ['', '', '', '=== started ===', `=== ${'b'.repeat(1500)} ===`];

/** Plays one seed from its beginning to its verdict. */
export async function play(seed: number, options: ModelOptions = {}): Promise<Verdict> {
  const random = randomOf(seed);
  const chosen = options.styles ?? styles;
  const style = chosen[random(chosen.length)]!;
  const trace: string[] = [];
  let timeMs = 1_767_225_600_000;
  let monotonicMs = 0;
  const note = (text: string) => {
    if (options.trace) trace.push(`${monotonicMs} ${text}`);
  };
  const shuffle = <T>(items: T[]): T[] => {
    for (let i = items.length - 1; i > 0; i--) {
      const j = random(i + 1);
      [items[i], items[j]] = [items[j]!, items[i]!];
    }
    return items;
  };
  const disk = createModelDisk(() => timeMs, shuffle);
  const world: World = {
    disk,
    random,
    now: timeText(() => timeMs),
    note,
    lines: new Map(),
    savedLines: 0,
    rotations: 0,
    busy: 0,
    isEnding: false,
  };

  const compresses = options.compress === true || (options.compress !== false && random(3) === 0);
  const logs: Log[] = [];
  const actors: Generator<void>[] = [];
  const logCount = 1 + random(2);
  for (let i = 0; i < logCount; i++) {
    const name = i === 0 ? 'app.log' : 'other.log';
    const home = style === 'links' ? `${name}-1.txt` : name;
    const log: Log = {
      name,
      style,
      generation: 1,
      n: 0,
      file: disk.create(home),
      begun: undefined,
      isTimed: random(2) === 0,
      banner: banners[random(banners.length)]!,
      compresses,
      delays: random(2) === 0,
      keepsTime: random(2) === 0,
      lingers: random(2) === 0,
      stores: random(4) === 0,
      lineBytes: random(6) === 0 ? 500 : 30,
      rotated: [],
      linesOf: new Map(),
    };
    if (style === 'links') disk.link(name, home);
    disk.hold(log.file);
    logs.push(log);
    actors.push(writer(world, log), rotator(world, log));
  }

  const step = () => {
    const speed = 1 + random(3);
    timeMs += random(speed * 4);
    monotonicMs += random(speed * 4);
    actors[random(actors.length)]!.next();
  };
  const steps = (n: number) => {
    for (; n > 0; n--) step();
  };

  // What was there before the agent's first scan.
  const early = random(3) === 0 ? random(120) : random(10);
  steps(early);
  // Equal content under unrelated names is two files at the first scan: no copy is under way then.
  while (style === 'strangeCopy' && world.busy > 0) step();
  const wide = style !== 'links' && random(3) > 0;
  const patterns = style === 'strangeCopy' ? ['*'] : wide ? [`*.log*`] : ['app.log', 'other.log'];
  if (!wide && style !== 'strangeCopy') {
    // Rotated files that were there before are not read.
    for (const log of logs) {
      for (const [file, lines] of log.linesOf) {
        if (file === disk.file(log.name)) continue;
        for (const line of lines) line.before++;
      }
      // A file that no pattern matches yet may hold the beginning of a line.
      if (log.file !== disk.file(log.name) && log.begun) lineOf(world, log.begun.text).mayLose = true;
    }
  }
  const packedBefore = new Set<Line>();
  for (const [name, node] of disk.names) {
    if (!name.endsWith('.gz') || !('file' in node)) continue;
    for (const log of logs) for (const line of log.linesOf.get(node.file) ?? []) packedBefore.add(line);
  }

  let counted: Line[] = [];
  let skips: { reason: string; bytes: number }[] = [];
  let saved: { section: Uint8Array | undefined; lines: number; skips: number } = {
    section: undefined,
    lines: 0,
    skips: 0,
  };
  const maxOpenFiles = [1, 2, 512, 512][random(4)]!;
  const killAt = { calls: Number.POSITIVE_INFINITY };
  const eagerness = options.within === false ? 0 : [0, 3, 10, 40][random(4)]!;
  let isQuiet = false;
  let calls = 0;
  let isKilled = false;
  let within = 0;
  const beforeCall = (call: string, path = '') => {
    if (++calls > 200_000) throw new Error('a scan does not end');
    if (options.trace) trace.push(`${monotonicMs}   · ${call} ${path}`);
    if (killAt.calls-- <= 0) {
      isKilled = true;
      throw killed;
    }
    if (isQuiet || eagerness === 0 || random(100) >= eagerness) return;
    if (within <= 0) return;
    const n = 1 + random(random(8) === 0 ? 40 : 6);
    within -= n;
    steps(n);
  };
  let view = disk.view(beforeCall);
  const clock: Clock = {
    nowMs: () => timeMs,
    monotonicMs: () => monotonicMs,
    after: () => () => {},
  };
  const log = {
    write: (_: string, msg: string, fields?: object) =>
      options.trace && note(`${msg} ${JSON.stringify(fields)}`),
    named: () => log,
  };
  const openSink = ({ path }: { path: string }) => ({
    write(bytes: Buffer, start: number, end: number) {
      let at = start;
      if (options.trace) note(`count ${path}: ${bytes.toString('utf8', start, end).match(/\S+ g\d+ n\d+/g)}`);
      for (;;) {
        const next = bytes.indexOf(10, at);
        if (next < 0 || next >= end) return at;
        counted.push(lineOf(world, bytes.toString('latin1', at, next)));
        at = next + 1;
      }
    },
    finish(bytes: Buffer, start: number, end: number) {
      if (end > start) counted.push(lineOf(world, bytes.toString('latin1', start, end)));
    },
    skip: (reason: string, bytes: number) => {
      note(`skip ${reason} ${bytes}`);
      skips.push({ reason, bytes });
    },
    state: () => undefined,
  });
  let tailer: Tailer;
  const save = () => {
    if (isKilled) return;
    saved = { section: tailer.freeze().slice(), lines: counted.length, skips: skips.length };
    for (; world.savedLines < counted.length; world.savedLines++) counted[world.savedLines]!.saved++;
    note('save');
  };
  const start = () => {
    view = disk.view(beforeCall);
    const logsOptions = {
      paths: patterns.map((pattern) => `${modelDirectory}/${pattern}`),
      exclude: [],
      encoding: 'auto' as const,
      container: 'none' as const,
      levelKey: 'level',
      roleField: 'service',
      startAt: 'beginning' as const,
      rules: [],
    };
    tailer = createTailer(
      { services: { history: logsOptions }, selected: new Set(['history']), sliceMs: 0, maxOpenFiles },
      {
        openSink,
        clock,
        log,
        lag: () => {},
        disk: view,
        turn: () => {
          if (!isQuiet && random(30) === 0) save();
          return ready;
        },
      },
    );
    if (saved.section) tailer.restore(saved.section.slice());
  };
  const work = async (name: 'discover' | 'scan' | 'poll'): Promise<boolean> => {
    note(name);
    calls = 0;
    within = random(200);
    try {
      await tailer[name]();
    } catch (thrown) {
      if (!isKilled) throw thrown;
    }
    return !isKilled;
  };
  let kills = 0;
  const kill = () => {
    kills++;
    note('kill');
    killAt.calls = Number.POSITIVE_INFINITY;
    isKilled = false;
    view.closeAll();
    counted = counted.slice(0, saved.lines);
    skips = skips.slice(0, saved.skips);
    start();
  };

  start();
  isQuiet = true;
  await work('scan');
  isQuiet = false;
  save();
  const rounds = 3 + random(8);
  const pause = [5, 20, 60, 120][random(4)]!;
  let isStarted = false;
  for (let round = 0; round < rounds; round++) {
    steps(random(pause));
    if (random(4) === 0 && world.busy === 0) monotonicMs += random(random(3) === 0 ? 12_000 : 3000);
    const dies = options.kills !== false && random(6) === 0;
    if (dies) killAt.calls = random(60);
    let lived = true;
    if (isStarted) lived = await work('discover');
    for (let n = random(3); lived && n > 0; n--) {
      lived = await work('poll');
      steps(random(10));
    }
    lived = lived && (await work('scan'));
    isStarted = false;
    if (!lived || (dies && random(2) === 0)) {
      steps(random(2) * random(pause * 2));
      kill();
      isStarted = true;
    } else if (random(2) === 0) save();
    killAt.calls = Number.POSITIVE_INFINITY;
  }

  // A rotation that has begun ends, and everything falls quiet.
  isQuiet = true;
  world.isEnding = true;
  while (world.busy > 0) step();
  for (const one of logs) finishLine(world, one);
  for (const pauseMs of [500, 11_000, 3_000, 500, 11_000, 3_000]) {
    await work('scan');
    monotonicMs += pauseMs;
    timeMs += 1000;
  }
  view.closeAll();

  const faults = judge(world, counted, skips, packedBefore);
  return {
    seed,
    style: `${style}${compresses ? '+gzip' : ''} ${patterns}`,
    faults,
    trace,
    rotations: world.rotations,
    kills,
    lines: [...world.lines.values()].reduce((sum, { written }) => sum + written, 0),
  };
}

function judge(
  world: World,
  counted: readonly Line[],
  skips: readonly { reason: string; bytes: number }[],
  packedBefore: ReadonlySet<Line>,
): string[] {
  const faults = new Map<string, number>();
  const found = (fault: string, { text }: Line) => {
    const generation = /\S+ g\d+(?= n)/.exec(text)?.[0] ?? text.slice(0, 20);
    const key = `${fault} in ${generation}${process.env.MODEL_LINES ? ` (${text})` : ''}`;
    faults.set(key, (faults.get(key) ?? 0) + 1);
  };
  for (const line of counted) line.counted++;
  const losable = [...world.lines.values()].filter(({ mayLose }) => mayLose);
  for (const line of world.lines.values()) {
    const { text, written } = line;
    if (written === 0) {
      if (line.counted > 0 && !losable.some((whole) => whole.text.includes(text)))
        found('unknown line', line);
    } else if (line.counted > written) found('counted twice', line);
    // A generation of nothing but a banner cannot be told from an unfinished copy of the next one.
    if (line.mayLose || packedBefore.has(line) || text.startsWith('===')) continue;
    if (line.counted < written - line.before) found('lost', line);
  }
  const faulty = [...faults].map(([fault, n]) => `${fault}: ${n}`);
  if (losable.length > 0) return faulty;
  // Fewer than 16 bytes that were seen of a file identify nothing: it may be read as another one and count as skipped, too.
  const told = skips.filter(({ bytes }) => bytes >= 16);
  return [...faulty, ...told.map(({ reason }) => `skipped ${reason} though nothing was lost`)];
}
