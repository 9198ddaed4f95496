import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgentError, errorText } from '../../core/errors.ts';
import { processScreen, type Screen } from './terminal.ts';

/** The parts of its process that a command may use; tests pass their own. */
export interface Io {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly screen: Screen;
}

/** A command: its arguments after its name, and its process. Resolves with the exit status. */
export type Command = (args: readonly string[], io: Io) => Promise<number>;

export const processIo: Io = {
  stdout: (text) => void process.stdout.write(processScreen.printable(text)),
  stderr: (text) => void process.stderr.write(text),
  env: process.env,
  cwd: process.cwd(),
  screen: processScreen,
};

/** Signals to the process. */
export interface Signals {
  /** SIGTERM or SIGINT: a clean stop. */
  stop(): void;
  /** SIGHUP: read the configuration again. */
  reload(): void;
}

/** Passes on the process's signals; a second SIGINT or SIGTERM does not repeat the first. Returns the undo. */
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

/** Writes a file, makes its folder where there is none, and returns its path. Throws `internal`. */
export function writeInto(folder: string, name: string, text: string): string {
  const path = join(folder, name);
  try {
    mkdirSync(folder, { recursive: true });
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
