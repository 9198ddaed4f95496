import { basename, dirname, resolve } from 'node:path';
import picomatch from 'picomatch';
import { AgentError, errorText } from '../../../core/errors.ts';
import type { PassedOverReason } from '../../../core/reasons.ts';
import type { LogsOptions } from '../options.ts';
import type { FileStat } from './disk.ts';
import { isCompressed, isGzip, rotatedFrom } from './rotated-names.ts';

/** Any number of directories, including none (`**`). */
export const anyDepth = Symbol('**');

/** One step of a path: a literal name, a matcher of names, or any depth. */
export type Step = string | ((name: string) => boolean) | typeof anyDepth;

/** An absolute pattern without braces. */
export interface Glob {
  readonly steps: readonly Step[];
  /** Whether the pattern itself ends in `.gz`: then gzip files are read, not passed over. */
  readonly namesGzip: boolean;
  matches(path: string): boolean;
}

/** One path pattern of one service. */
export interface LogPattern {
  readonly service: string;
  /** The absolute pattern; the state records it. */
  readonly pattern: string;
  readonly globs: readonly Glob[];
  readonly startAt: 'end' | 'beginning';
  readonly selected: boolean;
  excludes(path: string): boolean;
}

/** Which services claim which paths. */
export interface Patterns {
  /** Patterns of the selected services, in the configuration's order. */
  readonly watched: readonly LogPattern[];
  /** Services whose patterns match any of a file's names, in the configuration's order, selected or not. */
  claimants(paths: readonly string[]): readonly string[];
  isWatched(path: string): boolean;
  /** Whether a service has one pattern for a log and another pattern for the directory that its rotated files are moved to. */
  areApart(log: string, rotated: string): boolean;
  /** Whether any service has more than one pattern. Otherwise `areApart` is always false. */
  readonly mayBeApart: boolean;
}

/** A pattern may expand to this many alternatives; braces beyond that are literal. */
const alternativesLimit = 1024;

/**
 * Expands `{a,b{c,d}}`. picomatch matches braces but does not expand them, and a directory walk needs one pattern per
 * alternative. A brace without a comma or a partner is literal.
 */
export function expandBraces(pattern: string): string[] {
  const done: string[] = [];
  const waiting = [pattern];
  while (waiting.length > 0) {
    const next = waiting.pop()!;
    const brace = outerBrace(next);
    if (!brace || done.length + waiting.length > alternativesLimit) done.push(next);
    else for (const option of brace.options.reverse()) waiting.push(brace.before + option + brace.after);
  }
  return done;
}

interface Brace {
  before: string;
  options: string[];
  after: string;
}

function outerBrace(pattern: string): Brace | undefined {
  for (let open = pattern.indexOf('{'); open >= 0; open = pattern.indexOf('{', open + 1)) {
    if (pattern[open - 1] === '\\') continue;
    const commas: number[] = [];
    let depth = 0;
    for (let at = open; at < pattern.length; at++) {
      const char = pattern[at];
      if (char === '\\') at++;
      else if (char === '{') depth++;
      else if (char === ',' && depth === 1) commas.push(at);
      else if (char === '}' && --depth === 0) {
        if (commas.length === 0) break;
        const cuts = [open, ...commas, at];
        const options = cuts.slice(1).map((cut, i) => pattern.slice(cuts[i]! + 1, cut));
        return { before: pattern.slice(0, open), options, after: pattern.slice(at + 1) };
      }
    }
  }
  return undefined;
}

const options: picomatch.PicomatchOptions = { debug: true, nobrace: true, noextglob: true, nonegate: true };

/** picomatch escapes characters that a regular expression with the flag `u` must not escape. */
const escaped = /\\(.)/gsu;
const mayBeEscaped = /[\w^$\\.*+?()[\]{}|/]/;

/** With these flags, `?` takes one code point, and a name may have a newline in it. */
function matcherOf(text: string): (name: string) => boolean {
  const { source } = picomatch.makeRe(text, options);
  const expression = new RegExp(
    source.replace(escaped, (whole, char: string) => (mayBeEscaped.test(char) ? whole : char)),
    'su',
  );
  return (name) => expression.test(name);
}

/** picomatch gives more characters a meaning (groups, quotes, negation) than the configuration offers. */
const literal = (text: string) => text.replace(/[!-,:-@^`{-~]/g, '\\$&');

/** A character class from its opening bracket on, or undefined if the bracket is literal. `]` is literal in first place. */
function classAt(step: string, at: number): string | undefined {
  const from = at + (step[at + 1] === '!' || step[at + 1] === '^' ? 2 : 1);
  const end = step.indexOf(']', from + 1);
  if (end < 0) return undefined;
  const negation = from > at + 1 ? '^' : '';
  return `[${negation}${step.slice(from, end).replace(/[\\\]^[]/g, '\\$&')}]`;
}

const sourceLength = (step: string, at: number) => {
  const from = at + (step[at + 1] === '!' || step[at + 1] === '^' ? 2 : 1);
  return step.indexOf(']', from + 1) + 1 - at;
};

/** A step that matches a name. A hidden name matches only a step that spells its dot, as in a shell. */
function stepOf(step: string): Step {
  if (step === '**') return anyDepth;
  if (!/[*?[\\]/.test(step)) return step;
  let text = '';
  let plain = '';
  let isMagic = false;
  for (let at = 0; at < step.length; ) {
    const char = step[at]!;
    const set = char === '[' ? classAt(step, at) : undefined;
    if (set !== undefined || char === '*' || char === '?') {
      isMagic = true;
      // Two stars within a step mean the same as one star.
      if (set !== undefined || !(char === '*' && text.endsWith('*'))) text += set ?? char;
      at += set === undefined ? 1 : sourceLength(step, at);
      continue;
    }
    const escaped = char === '\\' && at + 1 < step.length;
    const own = String.fromCodePoint(step.codePointAt(escaped ? at + 1 : at)!);
    text += /[\\*?[\]]/.test(own) ? `\\${own}` : literal(own);
    plain += own;
    at += own.length + (escaped ? 1 : 0);
  }
  return isMagic ? matcherOf(text) : plain;
}

function stepsMatch(steps: readonly Step[], names: readonly string[], s: number, n: number): boolean {
  for (; s < steps.length; s++, n++) {
    const step = steps[s]!;
    if (step === anyDepth) {
      for (let skip = n; skip <= names.length; skip++) {
        if (stepsMatch(steps, names, s + 1, skip)) return true;
        if (names[skip]?.startsWith('.')) return false;
      }
      return false;
    }
    const name = names[n];
    if (name === undefined || !(typeof step === 'string' ? step === name : step(name))) return false;
  }
  return n === names.length;
}

/**
 * Compiles a pattern: `*`, `?`, `[…]`, `{a,b}` and, as a whole step, `**`. A relative pattern starts at `directory`; `\`
 * makes the next character literal. Throws `config_invalid` on a pattern that cannot be compiled.
 */
export function parseGlob(pattern: string, directory = process.cwd()): Glob[] {
  try {
    return expandBraces(pattern).map((text) => {
      const steps = resolve(directory, text).split('/').slice(1).map(stepOf);
      return {
        steps,
        namesGzip: text.endsWith('.gz'),
        matches: (path) => stepsMatch(steps, path.split('/').slice(1), 0, 0),
      };
    });
  } catch (thrown) {
    const what = `path pattern cannot be compiled: ${errorText(thrown)}`;
    throw new AgentError('config_invalid', { where: 'logs.paths', what, got: pattern }, thrown);
  }
}

/** Compiles a pattern of `exclude`. A pattern without a slash matches the file's name alone. */
export function parseExclude(pattern: string, directory = process.cwd()): (path: string) => boolean {
  if (pattern.includes('/')) {
    const globs = parseGlob(pattern, directory);
    return (path) => globs.some((glob) => glob.matches(path));
  }
  const globs = parseGlob(pattern, '/');
  return (path) => {
    const name = path.slice(path.lastIndexOf('/') + 1);
    return globs.some(({ steps }) => stepsMatch(steps, [name], 0, 0));
  };
}

const neverExcluded = () => false;

function patternsOf(
  service: string,
  logs: LogsOptions,
  selected: boolean,
  directory: string | undefined,
): LogPattern[] {
  const excludes = logs.exclude.map((pattern) => parseExclude(pattern, directory));
  return logs.paths
    .filter((pattern) => pattern !== '-')
    .map((pattern) => ({
      service,
      pattern: resolve(directory ?? '', pattern),
      globs: parseGlob(pattern, directory),
      startAt: logs.startAt,
      selected,
      excludes: excludes.length === 0 ? neverExcluded : (path) => excludes.some((excluded) => excluded(path)),
    }));
}

/**
 * Compiles the services' patterns; `-` (standard input) is no pattern. A relative pattern starts at `directory`, or at the
 * working directory if there is none. Throws `config_invalid`.
 */
export function compilePatterns(
  services: Readonly<Record<string, LogsOptions>>,
  selected: ReadonlySet<string>,
  directory?: string,
): Patterns {
  const all = Object.entries(services).flatMap(([service, logs]) =>
    patternsOf(service, logs, selected.has(service), directory),
  );
  const takes = (pattern: LogPattern, path: string) =>
    pattern.globs.some((glob) => glob.matches(path)) && !pattern.excludes(path);
  return {
    watched: all.filter(({ selected }) => selected),
    claimants: (paths) => [
      ...new Set(
        all.filter((pattern) => paths.some((path) => takes(pattern, path))).map(({ service }) => service),
      ),
    ],
    isWatched: (path) => all.some((pattern) => pattern.selected && takes(pattern, path)),
    mayBeApart: Object.values(services).some(({ paths }) => paths.length > 1),
    areApart: (log, rotated) => {
      const besideLog = `${dirname(log)}/${basename(rotated)}`;
      return all.some(
        (own) =>
          takes(own, rotated) &&
          !takes(own, log) &&
          !takes(own, besideLog) &&
          all.some((other) => other.service === own.service && takes(other, log)),
      );
    },
  };
}

/** A regular file that a pattern matches. */
export interface Found {
  readonly path: string;
  /** 'end' only if this is the first scan of every pattern that matches, and all of them say 'end'. */
  startAt: 'end' | 'beginning';
  /** The position of the first pattern that matches, in the configuration's order. */
  readonly order: number;
}

export const byOrder = (a: Found, b: Found) => a.order - b.order || (a.path < b.path ? -1 : 1);

export interface PassedOver {
  readonly path: string;
  readonly service: string;
  readonly reason: PassedOverReason;
}

/** What a pattern matches in a directory. */
export interface Interest {
  readonly pattern: LogPattern;
  readonly steps: readonly Step[];
  readonly startAt: 'end' | 'beginning';
  readonly namesGzip: boolean;
  readonly isFirst: boolean;
  test(name: string): boolean;
}

/**
 * How the patterns treat a name in a directory. It is used in the next scan, too, as long as the patterns match the same there.
 */
export interface Meaning {
  readonly path: string;
  /** Whether a pattern matches the name. */
  readonly isMatched: boolean;
  /** What is read under the name; undefined if the file is not read. */
  readonly found: Found | undefined;
  readonly passedOver: PassedOver | undefined;
  /** Whether the file may be older than the log that it was rotated from. */
  readonly isFirst: boolean;
  /** Names that the file may have been rotated from. */
  readonly bases: readonly string[];
  /** Whether a pattern matches one of the bases. */
  readonly isRotated: boolean;
  /** The file that had the name in the last scan. */
  file?: { readonly stat: FileStat; readonly key: string };
}

export function meaningIn(
  directory: string,
  name: string,
  wants: readonly Interest[],
  { watched }: Patterns,
): Meaning {
  const path = `${directory}/${name}`;
  const takes = wants.filter(({ test, pattern }) => test(name) && !pattern.excludes(path));
  const reads = isCompressed(name) ? takes.filter(({ namesGzip }) => namesGzip && isGzip(name)) : takes;
  const bases = rotatedFrom(name);
  const isTaken = (base: string) =>
    wants.some(({ test, pattern }) => test(base) && !pattern.excludes(`${directory}/${base}`));
  const order = Math.min(...reads.map(({ pattern }) => watched.indexOf(pattern)));
  const startAt = reads.every((read) => read.startAt === 'end') ? 'end' : 'beginning';
  const isPassedOver = takes.length > 0 && reads.length === 0;
  return {
    path,
    isMatched: takes.length > 0,
    found: reads.length > 0 ? { path, startAt, order } : undefined,
    passedOver: isPassedOver ? { path, service: takes[0]!.pattern.service, reason: 'compressed' } : undefined,
    isFirst: wants.some(({ isFirst, test }) => isFirst && bases.some(test)),
    bases,
    isRotated: bases.some(isTaken),
  };
}

/** Names that a pattern spells out. They are looked up in a directory that cannot be listed. */
export function literalNames({ globs }: LogPattern, directory: string): string[] {
  return globs.flatMap(({ steps }) => {
    if (!steps.every((step) => typeof step === 'string')) return [];
    const parent = steps.slice(0, -1).map((step) => `/${step}`);
    return parent.join('') === directory ? steps.slice(-1) : [];
  });
}
