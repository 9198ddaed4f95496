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
