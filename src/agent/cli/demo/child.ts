import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A program that the demo started. */
export interface Child {
  readonly name: string;
  readonly pid: number | undefined;
  /** What it wrote last, to either stream, oldest first; bounded. */
  readonly lastLines: readonly string[];
  /** Resolves with how it ended (`exit status 1`, `signal SIGKILL`, or why it could not be started). */
  readonly ended: Promise<string>;
  /** A line on its standard input. */
  tell(line: string): void;
  /** Asks it to stop, and after `graceMs` makes it. Resolves when it is gone. */
  end(graceMs: number): Promise<void>;
}

const keptLines = 20;

/** Starts `file` under this Node. `hear` gets each line it writes, to either stream. */
export function startChild(
  name: string,
  [file, ...args]: readonly [file: string, ...args: string[]],
  hear: (line: string) => void = () => {},
): Child {
  const child = spawn(process.execPath, [file, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  const lastLines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lastLines.push(line);
      if (lastLines.length > keptLines) lastLines.shift();
      hear(line);
    });
  }
  // It may be gone before a line reaches it; that it is gone is heard through `ended`.
  child.stdin.on('error', () => {});
  const ended = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.once('close', (status, signal) => resolve(signal ? `signal ${signal}` : `exit status ${status}`));
  });
  return {
    name,
    pid: child.pid,
    lastLines,
    ended,
    tell: (line) => void child.stdin.write(`${line}\n`),
    end: async (graceMs) => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}
