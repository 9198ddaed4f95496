import { resolve } from 'node:path';

/** Any number of directories, none included (`**`). */
export const anyDepth = Symbol('**');

/** One step of a path: a literal name, what names are held against, or any depth. */
export type Step = string | RegExp | typeof anyDepth;

/** A pattern without braces, from the root. */
export interface Glob {
  readonly steps: readonly Step[];
  matches(path: string): boolean;
}

/** Alternatives that braces may make of one pattern; more are taken literally. */
const alternativesLimit = 1024;

/** `{a,b{c,d}}` written out; a brace without a comma or a partner stands for itself. */
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

const quote = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** A class such as `[a-z]` or `[!0-9]` at `at`, as a regular expression and the index after it. */
function classAt(step: string, at: number): { source: string; next: number } | undefined {
  const negated = step[at + 1] === '!' || step[at + 1] === '^';
  const from = at + (negated ? 2 : 1);
  const end = step.indexOf(']', from + 1);
  if (end < 0) return undefined;
  const inside = step.slice(from, end).replace(/[\\\]^[]/g, '\\$&');
  return { source: `[${negated ? '^' : ''}${inside}]`, next: end + 1 };
}

/** A hidden name matches only what spells its dot, as in a shell. */
function stepOf(step: string): Step {
  if (step === '**') return anyDepth;
  if (!/[*?[\\]/.test(step)) return step;
  let source = step.startsWith('.') ? '' : '(?!\\.)';
  let literal = '';
  let magic = false;
  for (let at = 0; at < step.length; ) {
    const char = step[at]!;
    const set = char === '[' ? classAt(step, at) : undefined;
    if (char === '*' || char === '?' || set) {
      magic = true;
      source += set ? set.source : char === '*' ? '[^/]*' : '[^/]';
      at = set ? set.next : at + 1;
    } else {
      const plain = char === '\\' && at + 1 < step.length ? step[++at]! : char;
      source += quote(plain);
      literal += plain;
      at++;
    }
  }
  return magic ? new RegExp(`^${source}$`, 'su') : literal;
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
    if (name === undefined || !(typeof step === 'string' ? step === name : step.test(name))) return false;
  }
  return n === names.length;
}

/**
 * The patterns that a glob stands for: `*`, `?`, `[…]`, `{a,b}` and, as a whole step, `**`. Relative ones start
 * at `directory`; `\` takes the next character literally.
 */
export function parseGlob(pattern: string, directory = process.cwd()): Glob[] {
  return expandBraces(pattern).map((text) => {
    const steps = resolve(directory, text).split('/').slice(1).map(stepOf);
    return { steps, matches: (path) => stepsMatch(steps, path.split('/').slice(1), 0, 0) };
  });
}

/** What `exclude` matches: a pattern without a slash is held against the file's name alone. */
export function parseExclude(pattern: string, directory = process.cwd()): (path: string) => boolean {
  const globs = pattern.includes('/')
    ? parseGlob(pattern, directory)
    : parseGlob(pattern, '/').map(({ steps }) => {
        return {
          matches: (path: string) => stepsMatch(steps, [path.slice(path.lastIndexOf('/') + 1)], 0, 0),
        };
      });
  return (path) => globs.some((glob) => glob.matches(path));
}
