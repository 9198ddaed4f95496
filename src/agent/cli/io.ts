/** What a command may touch of the process it runs in; tests hand in their own. */
export interface Io {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Whether stdout is a terminal that wants colours (`NO_COLOR` respected). */
  readonly colour: boolean;
}

/** A command: its arguments after its name, and what it may touch. Resolves with the exit status. */
export type Command = (args: readonly string[], io: Io) => Promise<number>;

export const processIo: Io = {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
  env: process.env,
  cwd: process.cwd(),
  colour: Boolean(process.stdout.isTTY) && !process.env.NO_COLOR,
};

/** Rows as columns of equal width, the first row underlined; numbers to the right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  colour = false,
): string {
  const widths = head.map((title, i) =>
    Math.max(title.length, ...rows.map((row) => String(row[i] ?? '').length)),
  );
  const cell = (value: string | number, i: number) =>
    typeof value === 'number' ? String(value).padStart(widths[i]!) : value.padEnd(widths[i]!);
  const line = (cells: readonly (string | number)[]) => cells.map(cell).join('  ').trimEnd();
  const title = colour ? `\u001b[1m${line(head)}\u001b[0m` : line(head);
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
