/** What a command may touch of the process it runs in; tests hand in their own. */
export interface Io {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly screen: Screen;
}

/** What stdout can show. */
export interface Screen {
  /** The size of a terminal that can move its cursor, at this moment; undefined for a pipe, a file or `TERM=dumb`. */
  size(): { columns: number; rows: number } | undefined;
  readonly colour: boolean;
  /** Whether it shows more than ASCII: a terminal in a UTF-8 locale. */
  readonly unicode: boolean;
}

/** A screen that shows nothing but plain text: a pipe or a file. */
export const plainScreen: Screen = { size: () => undefined, colour: false, unicode: false };

/** The screen behind a stream, by `NO_COLOR`, `TERM` and the locale of `env`. */
export function screenOf(
  stream: { isTTY?: boolean; columns?: number; rows?: number },
  env: Readonly<Record<string, string | undefined>>,
): Screen {
  if (!stream.isTTY || env.TERM === undefined || /^(?:dumb|)$/.test(env.TERM)) return plainScreen;
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
  return {
    size: () => ({ columns: stream.columns || 80, rows: stream.rows || 24 }),
    colour: !env.NO_COLOR,
    // The console of Linux has a font of 512 characters.
    unicode: /utf-?8/i.test(locale) && env.TERM !== 'linux',
  };
}

/** A command: its arguments after its name, and what it may touch. Resolves with the exit status. */
export type Command = (args: readonly string[], io: Io) => Promise<number>;

export const processIo: Io = {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
  env: process.env,
  cwd: process.cwd(),
  screen: screenOf(process.stdout, process.env),
};

/** Cuts text to `width` columns, which shows at its end. */
export function cut(text: string, width: number, { unicode }: Pick<Screen, 'unicode'>): string {
  if (text.length <= width) return text;
  const mark = unicode ? '…' : '~';
  return width < 1 ? '' : text.slice(0, width - 1) + mark;
}

/**
 * Rows as columns of equal width, the head in bold where there are colours; numbers to the right. On a terminal the
 * widest columns are cut until the rows fit.
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
      : cut(value, widths[i]!, screen).padEnd(widths[i]!);
  const line = (cells: readonly (string | number)[]) => cells.map(cell).join('  ').trimEnd();
  const title = screen.colour ? `\u001b[1m${line(head)}\u001b[0m` : line(head);
  return [title, ...rows.map(line), ''].join('\n');
}

/** What the process was asked to do from outside. */
export interface Signals {
  /** SIGTERM or SIGINT: stop in good order. */
  stop(): void;
  /** SIGHUP: read the configuration again. */
  reload(): void;
}

/** Hands on the process's signals; a second SIGINT or SIGTERM does not repeat the first. Returns the undo. */
export function onSignals(signals: Signals): () => void {
  let stopping = false;
  const stop = () => {
    if (!stopping) signals.stop();
    stopping = true;
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  process.on('SIGHUP', signals.reload);
  return () => {
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
    process.off('SIGHUP', signals.reload);
  };
}
