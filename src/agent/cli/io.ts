import { fstatSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentError, errorText } from '../../core/errors.ts';
import { makeDirectorySync } from '../../core/make-directory.ts';
import { formatDuration } from '../../core/text-formats.ts';
import type { Progress } from '../../probes/probe.ts';

/** The abilities of the terminal, pipe or file behind stdout. */
export interface Screen {
  /** The present size of a terminal that can move its cursor; undefined for a pipe, a file or `TERM=dumb`. */
  size(): { columns: number; rows: number } | undefined;
  readonly colour: boolean;
  /** Whether the screen shows more than ASCII: a terminal in a UTF-8 locale. */
  readonly unicode: boolean;
  /** The text, in which characters that this screen cannot show are replaced. A pipe or a file shows everything. */
  printable(text: string): string;
}

const asciiOf: Readonly<Record<string, string>> = { '’': "'", '…': '...', '–': '-', '·': '-' };
const ascii = (text: string) => text.replace(/[^\x00-\x7f]/gu, (character) => asciiOf[character] ?? '?');
const everything = (text: string) => text;

/** A screen for plain text only: a pipe or a file. */
export const plainScreen: Screen = {
  size: () => undefined,
  colour: false,
  unicode: false,
  printable: everything,
};

/** The screen behind a stream, by `NO_COLOR`, `TERM` and the locale of `env`. */
export function screenOf(
  stream: { isTTY?: boolean; columns?: number; rows?: number },
  env: Readonly<Record<string, string | undefined>>,
): Screen {
  if (!stream.isTTY) return plainScreen;
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
  // The console of Linux has a font of 512 characters.
  const unicode = /utf-?8/i.test(locale) && env.TERM !== 'linux';
  const printable = unicode ? everything : ascii;
  if (env.TERM === undefined || /^(?:dumb|)$/.test(env.TERM)) return { ...plainScreen, printable };
  return {
    size: () => ({ columns: stream.columns || 80, rows: stream.rows || 24 }),
    colour: !env.NO_COLOR,
    unicode,
    printable,
  };
}

const processScreen = screenOf(process.stdout, process.env);

/**
 * Characters that a terminal interprets and that JSON does not escape: C1 controls, and characters that change the direction of
 * text.
 */
const obeyed = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text with these characters as escapes, which a reader of JSON decodes. */
export const harmless = (text: string): string =>
  text.replace(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Text from outside on one line: control characters, which a terminal would interpret, become spaces. */
export const plain = (text: string): string => text.replace(/[\x00-\x1f\x7f-\x9f]+/g, ' ');

const colours = { bold: 1, red: 31, green: 32, yellow: 33, dim: 2 } as const;
export type Colour = keyof typeof colours;

/** The text in a colour, if the screen has colours. */
export const paint = (text: string, colour: Colour | undefined, screen: Pick<Screen, 'colour'>): string =>
  screen.colour && colour ? `\u001b[${colours[colour]}m${text}\u001b[0m` : text;

/** The text in lines of at most `width` characters, broken at spaces; a word that is longer is broken. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
    for (; line.length > width; line = line.slice(width)) lines.push(line.slice(0, width));
  }
  return [...lines, line];
}

/** Cuts a text to `width` columns; its end shows that it is cut. */
export function cut(text: string, width: number, { unicode }: Pick<Screen, 'unicode'>): string {
  if (text.length <= width) return text;
  const mark = unicode ? '…' : '~';
  return width < 1 ? '' : text.slice(0, width - 1) + mark;
}

/** A bar of `width` characters that is full at 1. */
export function bar(share: number, width: number, { unicode }: Pick<Screen, 'unicode'>): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width);
  return (unicode ? '█' : '#').repeat(full) + (unicode ? '░' : '.').repeat(width - full);
}

/** A size in decimal units: `310 MB`. */
export function byteText(bytes: number): string {
  if (bytes < 10_000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let shown = bytes / 1000;
  let unit = 0;
  for (; shown >= 10_000 && unit < units.length - 1; unit++) shown /= 1000;
  return `${Math.round(shown)} ${units[unit]}`;
}

/** The progress of work: a bar, then `42% of 3400 MB, 310 MB/s, 6s left`. */
export function progressText(
  { doneBytes, totalBytes, bytesPerSecond }: Progress,
  screen: Pick<Screen, 'unicode'>,
): string {
  const rate = `${byteText(bytesPerSecond)}/s`;
  if (totalBytes === 0) return `${byteText(doneBytes)}, ${rate}`;
  const share = doneBytes / totalBytes;
  const leftSeconds = bytesPerSecond > 0 ? Math.ceil((totalBytes - doneBytes) / bytesPerSecond) : undefined;
  const left = leftSeconds === undefined ? '' : `, ${formatDuration(leftSeconds * 1000) || '0s'} left`;
  return `${bar(share, 10, screen)} ${Math.floor(share * 100)}% of ${byteText(totalBytes)}, ${rate}${left}`;
}

/** A line that is rewritten during work. It is shown only on a terminal that can move its cursor. */
export function progressLine(
  screen: Screen,
  write: (text: string) => void,
): { show(text: string): void; clear(): void } {
  const show = (text: string) => {
    const columns = screen.size()?.columns;
    if (columns !== undefined) write(`\r\u001b[K${cut(plain(text), columns - 1, screen)}`);
  };
  return { show, clear: () => show('') };
}

/**
 * Formats rows as columns of equal width, the head in bold if there are colours; numbers are aligned to the right. On a terminal
 * the widest columns are cut until the rows fit.
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  screen: Screen = plainScreen,
): string {
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => String(row[i] ?? '').length)),
  );
  const room = (screen.size()?.columns ?? Infinity) - 2 * (head.length - 1);
  for (let over = widths.reduce((a, b) => a + b, 0) - room; over > 0; over -= 1) {
    widths[widths.indexOf(Math.max(...widths))]! -= 1;
  }
  const cell = (value: string | number, i: number) =>
    typeof value === 'number'
      ? String(value).padStart(widths[i]!)
      : cut(plain(value), widths[i]!, screen).padEnd(widths[i]!);
  const line = (cells: readonly (string | number)[]) => cells.map(cell).join('  ').trimEnd();
  return [paint(line(head), 'bold', screen), ...rows.map(line), ''].join('\n');
}

/** The parts of the process that a command may use; tests pass their own. */
export interface Io {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly screen: Screen;
}

/** A command. It gets the arguments after its name, and its process. Resolves with the exit status. */
export type Command = (args: readonly string[], io: Io) => Promise<number>;

const isFile = fstatSync(1).isFile();

/** Writes to stdout. Node takes a short write to a file, as on a full disk, for a whole one. */
function writeOut(text: string): void {
  if (!isFile) return void process.stdout.write(text);
  if (process.stdout.destroyed) return;
  try {
    writeFileSync(1, text);
  } catch (thrown) {
    process.stdout.destroy(thrown as Error);
  }
}

export const processIo: Io = {
  stdout: (text) => writeOut(processScreen.printable(harmless(text))),
  stderr: (text) => void process.stderr.write(harmless(text)),
  env: process.env,
  cwd: process.cwd(),
  screen: processScreen,
};

/** A local time of day with its zone: `19:44:10 GMT+1`. The default of `timeZone` is the zone of the process. */
export const timeOfDay = (ms: number, timeZone?: string): string =>
  new Intl.DateTimeFormat('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
    timeZone,
  }).format(ms);

/** Calls `gone` when the reader of stdout, such as `head`, has ended. Returns the undo. */
export function onReaderGone(gone: () => void): () => void {
  process.stdout.once('error', gone);
  return () => process.stdout.off('error', gone);
}

/** Keeps the process alive, which the timers of the clock do not. Returns the undo. */
export function keepAwake(): () => void {
  const timer = setInterval(() => {}, 60_000);
  return () => clearInterval(timer);
}

/** Writes a file and returns its path; creates its folder if necessary. Throws `internal`. */
export function writeInto(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  try {
    makeDirectorySync(mkdirSync, folder, 0o777);
    writeFileSync(path, text);
  } catch (cause) {
    const fault = {
      where: path,
      what: `cannot be written, ${errorText(cause)}`,
      allowed: 'name a writable folder',
    };
    throw new AgentError('internal', fault, cause);
  }
  return path;
}
