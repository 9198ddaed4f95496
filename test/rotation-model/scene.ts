import { createModelDisk, type ModelFile } from './disk.ts';
import { diskFiller, linkContainer, rotator } from './rotations.ts';
import {
  endTornLine,
  type Log,
  lineOf,
  type Random,
  randomOf,
  type Style,
  styles,
  type World,
  writer,
  writtenIn,
} from './world.ts';

export interface SceneOptions {
  /** The styles to choose from; all by default. */
  styles?: readonly Style[];
  compress?: boolean;
}

/** A directory, what happens in it, and the time. */
export interface Scene {
  readonly world: World;
  readonly logs: readonly Log[];
  readonly style: Style;
  readonly compresses: boolean;
  nowMs(): number;
  monotonicMs(): number;
  /** Lets time pass while nothing else happens. */
  wait(monotonicMs: number, wallMs?: number): void;
  steps(count: number): void;
  /** Runs until no rotation is under way. */
  finish(): void;
}

const dayMs = 24 * 3600 * 1000;
const padded = (n: number, digits = 2) => String(n).padStart(digits, '0');

/** The time of `nowMs` as ISO 8601 text. The date is computed once per day, and the text once while the time stands still. */
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

const banners = [[], [], [], ['=== started ==='], [`=== ${'b'.repeat(1500)} ===`]];
/** The banners of logs whose generations begin alike. */
const longBanners = [
  [],
  ['=== started ==='],
  ['=== started ===', `=== version ${'1.'.repeat(200)} ===`, '=== ready ==='],
  [`=== ${'b'.repeat(1500)} ===`],
  [`=== ${'b'.repeat(3000)} ===`, `=== ${'c'.repeat(3000)} ===`],
];

interface Place {
  directories: readonly string[];
  /** The name of the file of the first or the second log. */
  home(log: 'app' | 'other'): string;
  archive?(log: 'app' | 'other'): string;
}

const pods = ['containers', 'pods', 'pods/app', 'pods/other'];
const usualPlace: Place = { directories: [], home: (log) => `${log}.log` };
const olddir: Place = {
  directories: ['old'],
  home: (log) => `${log}.log`,
  archive: (log) => `old/${log}.log`,
};
/** Two logs with one name; the rotated files of the first are in its directory, or in another one. */
const twinPlace = (isMoved: boolean): Place => ({
  directories: ['a', 'b', 'old'],
  home: (log) => (log === 'app' ? 'a/app.log' : 'b/app.log'),
  archive: (log) => (log !== 'app' ? 'b/app.log' : isMoved ? 'old/app.log' : 'a/app.log'),
});
const places: Partial<Record<Style, Place>> = {
  links: { directories: [], home: (log) => `${log}.log-1.txt` },
  olddir,
  olddirCopy: olddir,
  renamecopy: olddir,
  twins: twinPlace(false),
  kubernetes: { directories: pods, home: (log) => `pods/${log}/1.log` },
  docker: {
    directories: [...pods, 'docker', 'docker/app', 'docker/other'],
    home: (log) => `docker/${log}/1-json.log`,
  },
  svlogd: { directories: ['app', 'other'], home: (log) => `${log}/current` },
};

const otherSuffixes = ['.z', '.bak', '.old', ''];

function* first(world: World, log: Log): Generator<void> {
  if (log.style === 'kubernetes' || log.style === 'docker') yield* linkContainer(world, log, 1);
}

function newLog(world: World, style: Style, id: 'app' | 'other', compresses: boolean): Log {
  const { random, disk } = world;
  const place = style === 'twins' ? twinPlace(random(2) === 0) : (places[style] ?? usualPlace);
  const home = place.home(id);
  const log: Log = {
    name: style === 'links' ? `${id}.log` : home,
    archive: place.archive?.(id) ?? (style === 'links' ? `${id}.log` : home),
    style,
    generation: 1,
    n: 0,
    file: disk.create(home),
    begun: undefined,
    torn: '',
    isTimed: random(2) === 0,
    banner: banners[random(banners.length)]!,
    compresses,
    suffix: '.gz',
    delays: random(2) === 0,
    keepsTime: random(2) === 0,
    lingers: random(2) === 0,
    stores: random(4) === 0,
    lineBytes: random(6) === 0 ? 500 : 30,
    rotated: [],
    links: new Map(),
    hides: false,
    isGone: false,
  };
  if (style === 'links') disk.link(log.name, home);
  if (style === 'renamecopy' || style === 'hurried') log.isTimed = true;
  if (style === 'rewritten' || style === 'deleted') log.banner = longBanners[random(longBanners.length)]!;
  if (style === 'otherSuffix') log.suffix = otherSuffixes[random(otherSuffixes.length - 1)]!;
  for (const _ of first(world, log));
  disk.hold(log.file);
  return log;
}

export function createScene(
  seed: number,
  options: SceneOptions,
  trace: ((text: string) => void) | undefined,
): Scene {
  const random: Random = randomOf(seed);
  const chosen = options.styles ?? styles;
  const style = chosen[random(chosen.length)]!;
  let timeMs = 1_767_225_600_000;
  let monotonicMs = 0;
  const shuffle = <T>(items: T[]): T[] => {
    for (let i = items.length - 1; i > 0; i--) {
      const j = random(i + 1);
      [items[i], items[j]] = [items[j]!, items[i]!];
    }
    return items;
  };
  const world: World = {
    disk: createModelDisk({
      nowMs: () => timeMs,
      shuffle,
      directories: places[style]?.directories,
    }),
    random,
    now: timeText(() => timeMs),
    note: (text) => trace?.(`${monotonicMs} ${typeof text === 'string' ? text : text()}`),
    lines: new Map(),
    contents: new Map(),
    written: [],
    savedLines: 0,
    rotations: 0,
    busy: 0,
    isEnding: false,
    isFull: false,
    keepsOpen: false,
  };
  const compresses = options.compress === true || (options.compress !== false && random(3) === 0);
  const logs: Log[] = [];
  const actors: Generator<void>[] = [];
  const logCount = 1 + random(2);
  for (let i = 0; i < logCount; i++) {
    const log = newLog(world, style, i === 0 ? 'app' : 'other', compresses);
    logs.push(log);
    actors.push(writer(world, log), rotator(world, log));
  }
  if (style === 'full' || style === 'fullCopy') actors.push(diskFiller(world, logs));
  const step = () => {
    const speed = 1 + random(3);
    timeMs += random(speed * 4);
    monotonicMs += random(speed * 4);
    actors[random(actors.length)]!.next();
  };
  return {
    world,
    logs,
    style,
    compresses,
    nowMs: () => timeMs,
    monotonicMs: () => monotonicMs,
    wait(ms, wallMs = 0) {
      monotonicMs += ms;
      timeMs += wallMs;
    },
    steps(count) {
      for (; count > 0; count--) step();
    },
    finish() {
      while (world.busy > 0) step();
    },
  };
}

/** Chooses the patterns of a configuration at random; sets `hides` for the files that they do not match. */
export function choosePatterns({ world, logs, style }: Scene): readonly string[] {
  const { random } = world;
  const logPaths = ['app.log', 'other.log'];
  switch (style) {
    case 'strangeCopy':
      return ['*'];
    case 'links':
      return logPaths;
    case 'olddir':
    case 'olddirCopy': {
      const choice = random(3);
      for (const log of logs) log.hides = choice > 0;
      if (choice === 0) return ['*.log*', 'old/*.log*'];
      return choice === 1 ? ['*.log*'] : logPaths;
    }
    // The renamed file is deleted soon. Where no pattern looks for its copy, part of what was seen of its size may not be counted
    // as skipped.
    case 'renamecopy':
      return ['*.log*', 'old/*.log*'];
    case 'twins':
      return ['a/app.log*', 'b/app.log*', 'old/app.log*'];
    case 'kubelet':
      return random(2) === 0 ? ['*.log'] : ['*.log*'];
    case 'kubernetes':
      return [['containers/*.log'], ['pods/*/*.log'], ['pods/*/*.log*']][random(3)]!;
    case 'docker':
      return [['containers/*.log'], ['pods/*/*.log'], ['docker/*/*-json.log'], ['docker/*/*-json.log*']][
        random(4)
      ]!;
    case 'svlogd': {
      const choice = random(3);
      for (const log of logs) log.hides = choice === 0;
      return [['*/current'], ['*/current', '*/@*'], ['*/*']][choice]!;
    }
    default:
      return random(3) > 0 ? ['*.log*'] : logPaths;
  }
}

const expressionOf = (pattern: string) =>
  new RegExp(`^${pattern.replace(/[.]/g, '\\.').replace(/\*/g, '[^/]*')}$`);

/** Marks what no pattern matches before the first scan: it is not read. */
export function passOver({ world, logs }: Scene, patterns: readonly string[]): void {
  const { disk, contents } = world;
  const expressions = patterns.map(expressionOf);
  const read = new Set<ModelFile | undefined>();
  for (const name of disk.names.keys())
    if (expressions.some((expression) => expression.test(name))) read.add(disk.file(name));
  const hides = logs.some((log) => log.hides);
  // What is written to it from now on is unreachable, too.
  for (const log of logs) if (hides && !read.has(log.file)) writtenIn(world, log.file).isOut = true;
  // The part of a line after which the disk was full stays where it is.
  for (const log of logs) if (!read.has(log.file)) endTornLine(world, log);
  for (const [file, content] of contents) {
    if (read.has(file)) continue;
    for (const line of content.lines) line.allowed++;
    if (hides) content.isOut = true;
  }
  // A file that no pattern matches yet may contain the beginning of a line.
  for (const log of logs) if (!read.has(log.file) && log.begun) lineOf(world, log.begun.text).mayLose = true;
}
