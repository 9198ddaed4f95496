import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from './bed.ts';

interface Holder {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The next line of its output. */
  line(): Promise<string>;
  /** All lines of its output until it ends. */
  rest(): Promise<string[]>;
  kill(): Promise<void>;
}

type StartHolder = (directory: string, ...args: string[]) => Holder;

function wrap(child: ChildProcess): Holder {
  const lines: Interface = createInterface({ input: child.stdout! });
  const iterator = lines[Symbol.asyncIterator]();
  const ended = once(child, 'exit');
  return {
    child,
    pid: child.pid!,
    line: async () => (await iterator.next()).value,
    async rest() {
      const all: string[] = [];
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) all.push(next.value);
      return all;
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Bundles `holder.ts` once for a test. What it starts, as another user if one is given, ends with the test. */
export async function holderStarter({ uid }: { uid?: number } = {}): Promise<StartHolder> {
  const folder = temporaryDirectory();
  chmodSync(folder, 0o755);
  const outfile = join(folder, 'holder.mjs');
  const entry = fileURLToPath(new URL('holder.ts', import.meta.url));
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  return (directory, ...args) => {
    const child = spawn(process.execPath, [outfile, directory, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
      uid,
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return wrap(child);
  };
}
