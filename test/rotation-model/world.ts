import type { ModelDisk, ModelFile } from './disk.ts';

/** The state that the actors of a model and its judge share: logs, their lines, and which of them may be lost. */

export type Random = (below: number) => number;

/** The random generator Mulberry32. */
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
  'copyLeft',
  'renamecopy',
  'hurried',
] as const;
export type Style = (typeof styles)[number];

/** The text of a line, with how often it was written and counted. */
export interface Line {
  readonly text: string;
  written: number;
  /** How often the line is in the counts of the last snapshot, and in the present counts. */
  saved: number;
  live: number;
  /** How often the line may be missing: it was there and not read before the first scan, or became unreachable. */
  allowed: number;
  mayLose: boolean;
}

/** The content of a file from its beginning, or since it was truncated. */
export interface Content {
  readonly file: ModelFile;
  readonly lines: Line[];
  /** The number of bytes that the tailer knew after a call, and the number that it knew when it saved. */
  knownBytes: number;
  savedBytes: number;
  /** The size that the content had while files were renamed or deleted and nothing of it was counted. */
  passedBytes: number;
  /** Whether nothing was counted that distinguishes the content from another one with the same beginning. */
  isAlike: boolean;
  /** Whether the content cannot be found any more: it was deleted, truncated, or moved to where no pattern looks. */
  isOut: boolean;
  /** Whether the tailer reported the file as followed after its last call, and had it open then. */
  isFollowed: boolean;
  isOpen: boolean;
  /** Whether the tailer followed the file when it became unreachable, and has had it open since. */
  isHeld: boolean;
}

export interface World {
  disk: ModelDisk;
  random: Random;
  /** The time in the form with which lines begin. */
  now(): string;
  note(text: string | (() => string)): void;
  /** The lines by their texts, including lines that were counted and never written. */
  lines: Map<string, Line>;
  /** The present content of each file, including copies and archives. */
  contents: Map<ModelFile, Content>;
  /** Everything that writers wrote. */
  written: Content[];
  savedLines: number;
  rotations: number;
  /** The number of rotations that have begun and not ended. */
  busy: number;
  isEnding: boolean;
  /** Whether nothing can be written. */
  isFull: boolean;
  /** Whether there are always enough descriptors, so that an open file stays open. */
  keepsOpen: boolean;
}

export interface Log {
  /** The path of the file that the writer opens. */
  name: string;
  /** The prefix of its rotated names. */
  archive: string;
  style: Style;
  generation: number;
  n: number;
  file: ModelFile;
  /** An unfinished line, and the part of it that is not written yet. */
  begun: { readonly text: string; readonly rest: string } | undefined;
  /** The part of a line after which the disk was full. */
  torn: string;
  isTimed: boolean;
  /** The first lines of every generation. */
  banner: readonly string[];
  compresses: boolean;
  /** The suffix of an archive's name. */
  suffix: string;
  delays: boolean;
  keepsTime: boolean;
  /** Whether the writer continues in the old file for a while after a rotation. */
  lingers: boolean;
  /** Whether archives are not compressed at all: then they are larger than what the agent inflates to compare them. */
  stores: boolean;
  /** The number of bytes that a line may have in addition to its name. */
  lineBytes: number;
  /** The rotated names that are not renamed any more, oldest first. */
  rotated: string[];
  /** The links that belong to a file, by its name. */
  links: Map<string, readonly string[]>;
  /** Whether rotated files are where no pattern looks. */
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
  // Nothing distinguishes contents that begin with a long banner and have the same bytes before the position.
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

/** Records a copy or an archive. */
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
  world.note(() => `write inode ${file.ino}: ${shortened(text)}`);
  writtenIn(world, file).lines.push(line);
  return line;
}

function writeLine(world: World, log: Log, text: string): void {
  const { disk, random } = world;
  if (world.isFull) {
    // A part of the first line still fits.
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

/** Lets the writer end its line before it opens another file, as services do; a torn line stays as it is. */
function finishLine(world: World, log: Log): void {
  if (log.torn !== '') wrote(world, log.file, log.torn);
  log.torn = '';
  if (!log.begun) return;
  const { text, rest } = log.begun;
  world.disk.append(log.file, rest, newline);
  wrote(world, log.file, text);
  log.begun = undefined;
}

/** Ends a torn line, so that what is written next is a line of its own. */
export function endTornLine(world: World, log: Log): void {
  if (log.torn === '') return;
  world.disk.append(log.file, '', newline);
  wrote(world, log.file, log.torn);
  log.torn = '';
}

/** Ends all lines: every line has its newline afterwards. */
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

/** A text in the short form of a trace. */
export const shortened = (text: string) => text.replace(/(.)\1{4,}/g, '$1…');

/** Whether a line is in no other generation, unlike a banner or the beginning of a line. */
const isWhole = ({ text }: Line) => / g\d+ n\d+ /.test(text);

export const isBanner = ({ text }: Line) => text.startsWith('===');

/**
 * Marks the file's content as unreachable. What the tailer has not counted finally may be missing, unless it has the file open:
 * `isKept` says that the bytes stay as long as the file is open. The banner is in other generations, too: a content of which
 * nothing else is known cannot be distinguished from these.
 */
export function goesOut(world: World, file: ModelFile, isKept: boolean): void {
  // A deleted empty file may still be written to.
  const content = isKept ? writtenIn(world, file) : world.contents.get(file);
  if (!content) return;
  content.isOut = true;
  content.isHeld = isKept && world.keepsOpen && content.isOpen && file.held > 0;
  const isKnown = content.lines.some((line) => isWhole(line) && line.saved > 0);
  if (!isKnown) for (const line of content.lines) if (isBanner(line)) line.allowed++;
  content.isAlike = !isKnown;
  if (!isKept) world.contents.delete(file);
}

/** Whether something was counted that only this content has. */
export const isBegun = ({ lines }: Content) => lines.some((line) => isWhole(line) && line.live > 0);

export const isCounted = ({ lines }: Content) => lines.every(({ saved, written }) => saved >= written);
