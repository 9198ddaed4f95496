import type { ModelDisk, ModelFile } from './disk.ts';

/** What the actors of a model and its judge share: logs, their lines, and what of them may be lost. */

export type Random = (below: number) => number;

/** Mulberry32. */
export function randomOf(seed: number): Random {
  let state = (seed * 0x9e3779b1) >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

export const styles = [
  'numbered',
  'upwards',
  'dated',
  'copytruncate',
  'datedCopy',
  'strangeCopy',
  'links',
  'olddir',
  'olddirCopy',
  'twins',
  'rewritten',
  'kubelet',
  'kubernetes',
  'docker',
  'svlogd',
  'otherSuffix',
  'deleted',
  'full',
  'fullCopy',
] as const;
export type Style = (typeof styles)[number];

/** One text of a line, with how often it was written and counted. */
export interface Line {
  readonly text: string;
  written: number;
  /** How often the counts of the last snapshot have it, and those of now. */
  saved: number;
  live: number;
  /** How often it may be missing: it was there and not read before the first scan, or went out of sight. */
  allowed: number;
  mayLose: boolean;
}

/** What is in a file from its beginning, or since it was truncated. */
export interface Content {
  readonly file: ModelFile;
  readonly lines: Line[];
  /** Bytes of it that the tailer knew of after a call, and those that it knew of when it saved. */
  knownBytes: number;
  savedBytes: number;
  /** The size that it had while files were renamed or deleted, and nothing of it was counted. */
  passedBytes: number;
  /** Nothing was counted of it that tells it from a content that begins the same. */
  isAlike: boolean;
  /** It cannot be found any more: deleted, truncated, or moved to where no pattern looks. */
  isOut: boolean;
  /** The tailer showed the file as followed after its last call, and had it open then. */
  isFollowed: boolean;
  isOpen: boolean;
  /** The tailer followed the file when it went, and has had it open since. */
  isHeld: boolean;
}

export interface World {
  disk: ModelDisk;
  random: Random;
  /** The time as lines begin with it. */
  now(): string;
  note(text: string): void;
  /** By their texts; those included that were counted and never written. */
  lines: Map<string, Line>;
  /** What is in each file now, copies and archives included. */
  contents: Map<ModelFile, Content>;
  /** Everything that writers wrote. */
  written: Content[];
  savedLines: number;
  rotations: number;
  /** Rotations that have begun and not ended. */
  busy: number;
  isEnding: boolean;
  /** Nothing can be written. */
  isFull: boolean;
  /** Descriptors are never short, so that an open file stays open. */
  keepsOpen: boolean;
}

export interface Log {
  /** Path of the file that the writer opens. */
  name: string;
  /** What its rotated names begin with. */
  archive: string;
  style: Style;
  generation: number;
  n: number;
  file: ModelFile;
  /** An unfinished line, and what is not written of it yet. */
  begun: { readonly text: string; readonly rest: string } | undefined;
  /** The part of a line after which the disk was full. */
  torn: string;
  isTimed: boolean;
  /** First lines of every generation. */
  banner: readonly string[];
  compresses: boolean;
  /** What the name of an archive ends with. */
  suffix: string;
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
  /** Links that go with a file, by its name. */
  links: Map<string, readonly string[]>;
  /** Rotated files are where no pattern looks. */
  hides: boolean;
  isGone: boolean;
}

const newline = 10;
const padding = 'y'.repeat(500);

export function lineOf(world: World, text: string): Line {
  let line = world.lines.get(text);
  if (!line) {
    line = { text, written: 0, saved: 0, live: 0, allowed: 0, mayLose: false };
    world.lines.set(text, line);
  }
  return line;
}

function nextText(world: World, log: Log): string {
  const { name, style, generation, isTimed } = log;
  const begin = `${isTimed ? `${world.now()} ` : ''}${name} g${generation} n${log.n++} `;
  const end = padding.slice(0, world.random(log.lineBytes));
  // Nothing tells contents apart that begin with a long banner and have the same bytes before the position.
  const tag = style === 'rewritten' || style === 'deleted' ? `#${log.n}` : '';
  return end.length > tag.length ? begin + end.slice(tag.length) + tag : begin + end;
}

const newContent = (file: ModelFile, lines: Line[]): Content => ({
  file,
  lines,
  knownBytes: 0,
  savedBytes: 0,
  passedBytes: 0,
  isAlike: false,
  isOut: false,
  isFollowed: false,
  isOpen: false,
  isHeld: false,
});

/** A copy or an archive. */
export const copied = (world: World, file: ModelFile, lines: Line[]): void =>
  void world.contents.set(file, newContent(file, lines));

export function writtenIn(world: World, file: ModelFile): Content {
  let content = world.contents.get(file);
  if (!content) {
    content = newContent(file, []);
    world.contents.set(file, content);
    world.written.push(content);
  }
  return content;
}

export function wrote(world: World, file: ModelFile, text: string): Line {
  const line = lineOf(world, text);
  line.written++;
  world.note(`write inode ${file.ino}: ${shortened(text)}`);
  writtenIn(world, file).lines.push(line);
  return line;
}

function writeLine(world: World, log: Log, text: string): void {
  const { disk, random } = world;
  if (world.isFull) {
    // Part of the first line still fits.
    if (log.torn !== '') return;
    log.torn = text.slice(0, random(text.length));
    disk.append(log.file, log.torn);
    return;
  }
  disk.append(log.file, text, newline);
  wrote(world, log.file, log.torn + text);
  log.torn = '';
}

/** Writes whole lines, and now and then a line in two pieces. */
export function* writer(world: World, log: Log): Generator<void> {
  const { random, disk } = world;
  for (;;) {
    const isPartial = random(6) === 0;
    if (log.isGone) {
      yield;
      continue;
    }
    if (isPartial && !log.begun && log.torn === '' && !world.isFull) {
      const text = nextText(world, log);
      disk.append(log.file, text.slice(0, 12));
      log.begun = { text, rest: text.slice(12) };
    } else {
      if (log.begun) finishLine(world, log);
      else writeLine(world, log, nextText(world, log));
      for (let more = random(3); more > 0; more--) writeLine(world, log, nextText(world, log));
    }
    yield;
  }
}

/** The writer ends its line before it opens another file, as services do; a torn line stays as it is. */
function finishLine(world: World, log: Log): void {
  if (log.torn !== '') wrote(world, log.file, log.torn);
  log.torn = '';
  if (!log.begun) return;
  const { text, rest } = log.begun;
  world.disk.append(log.file, rest, newline);
  wrote(world, log.file, text);
  log.begun = undefined;
}

/** What is written next is a line of its own. */
export function endTornLine(world: World, log: Log): void {
  if (log.torn === '') return;
  world.disk.append(log.file, '', newline);
  wrote(world, log.file, log.torn);
  log.torn = '';
}

/** Every line has its newline afterwards. */
export function endLines(world: World, log: Log): void {
  endTornLine(world, log);
  finishLine(world, log);
}

export function writeBanner(world: World, log: Log): void {
  for (const text of log.banner) writeLine(world, log, text);
}

export function openFile(world: World, log: Log, file: ModelFile): void {
  finishLine(world, log);
  world.disk.release(log.file);
  log.file = file;
  world.disk.hold(file);
  log.generation++;
  if (file.length === 0) writeBanner(world, log);
}

/** As a trace shows it. */
export const shortened = (text: string) => text.replace(/(.)\1{4,}/g, '$1…');

/** No other generation has it, as may have a banner or the beginning of a line. */
export const isWhole = ({ text }: Line) => / g\d+ n\d+ /.test(text);

export const isBanner = ({ text }: Line) => text.startsWith('===');

/**
 * The file's content cannot be found any more. What the tailer has not counted for good may be missing, unless it has
 * the file open: `isKept` tells that the bytes stay as long as it has. The banner is another generation's, too: of a
 * content of which nothing else is known, it cannot be told from that.
 */
export function goesOut(world: World, file: ModelFile, isKept: boolean): void {
  // An empty file that is deleted may still be written.
  const content = isKept ? writtenIn(world, file) : world.contents.get(file);
  if (!content) return;
  content.isOut = true;
  content.isHeld = isKept && world.keepsOpen && content.isOpen && file.held > 0;
  const isKnown = content.lines.some((line) => isWhole(line) && line.saved > 0);
  if (!isKnown) for (const line of content.lines) if (isBanner(line)) line.allowed++;
  content.isAlike = !isKnown;
  if (!isKept) world.contents.delete(file);
}

/** Something was counted that only this content has. */
export const isBegun = ({ lines }: Content) => lines.some((line) => isWhole(line) && line.live > 0);

export const isCounted = ({ lines }: Content) => lines.every(({ saved, written }) => saved >= written);
