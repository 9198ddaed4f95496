import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { AgentError, errorText } from '../../../core/errors.ts';

/** A program that the demo started. */
export interface ChildProgram {
  readonly name: string;
  readonly pid: number | undefined;
  /** The lines that the program wrote last, to either stream, oldest first; a bounded number. */
  readonly lastLines: readonly string[];
  /** Resolves with how the program ended (`exit status 1`, `signal SIGKILL`, or why it could not be started). */
  readonly ended: Promise<string>;
  /** Writes a line to the program's standard input. */
  send(line: string): void;
  /** Sends SIGTERM to the program, and SIGKILL after `graceMs`. Resolves when it has ended. */
  end(graceMs: number): Promise<void>;
}

const keptLines = 20;

/** Starts a program. `collect` gets each line that it writes, to either stream. */
function startChild(
  name: string,
  [file, ...args]: readonly [file: string, ...args: string[]],
  collect: (line: string) => void = () => {},
): ChildProgram {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  const lastLines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lastLines.push(line);
      if (lastLines.length > keptLines) lastLines.shift();
      collect(line);
    });
  }
  // The program may end before a line reaches it; `ended` reports that.
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
    send: (line) => void child.stdin.write(`${line}\n`),
    end: async (graceMs) => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** What the demo prints when a program ends unexpectedly. */
function exitMessage({ name, lastLines }: ChildProgram, how: string): string {
  const last = lastLines.length > 0 ? `; its last lines:\n  ${lastLines.join('\n  ')}` : '; it wrote nothing';
  return `svc-agent demo: ${name} ended by itself (${how})${last}\n`;
}

/** Programs that run and end together. */
export interface Children {
  /** Starts a program that the others need. Throws after `end`. */
  start(...child: Parameters<typeof startChild>): ChildProgram;
  /** Starts a program that the others do not need. Throws after `end`. */
  startOptional(...child: Parameters<typeof startChild>): ChildProgram;
  /** Resolves with a text to print if a program ends unexpectedly. */
  readonly broken: Promise<string>;
  /** Aborted by `end`. */
  readonly ending: AbortSignal;
  /** Ends all programs; those that have not ended after `graceMs` are killed. */
  end(graceMs: number): Promise<void>;
}

export function createChildren(): Children {
  const children: ChildProgram[] = [];
  const ending = new AbortController();
  let breakDown: (text: string) => void = () => {};
  const broken = new Promise<string>((resolve) => {
    breakDown = resolve;
  });
  function startOptional(...args: Parameters<typeof startChild>): ChildProgram {
    ending.signal.throwIfAborted();
    const child = startChild(...args);
    children.push(child);
    return child;
  }
  return {
    startOptional,
    start: (...args) => {
      const child = startOptional(...args);
      void child.ended.then((how) => {
        if (!ending.signal.aborted) breakDown(exitMessage(child, how));
      });
      return child;
    },
    broken,
    ending: ending.signal,
    end: async (graceMs) => {
      ending.abort();
      await Promise.all(children.map((child) => child.end(graceMs)));
    },
  };
}

const withinMs = 20_000;
const askEveryMs = 50;

/**
 * Repeats the request until the status is 200. Throws `internal` with the last response after the time limit, or once aborted.
 */
export async function untilReady(url: string, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  let got = 'none';
  while (!signal.aborted && performance.now() < deadlineMs) {
    try {
      const { status } = await fetch(url, { signal });
      if (status === 200) return;
      got = String(status);
    } catch (thrown) {
      got = errorText((thrown as Error).cause ?? thrown);
    }
    await new Promise((resolve) => setTimeout(resolve, askEveryMs));
  }
  throw new AgentError('internal', {
    where: url,
    what: signal.aborted ? 'no longer waited for' : `no answer 200 within ${withinMs / 1000} s`,
    got,
  });
}
