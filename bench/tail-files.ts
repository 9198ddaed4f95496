/**
 * Measures what following files costs, in one process: a scan over idle files, the positions of all of them (all changed, one
 * changed, none changed), once for the logs of as many containers and once for as many generations of one log; and reading one
 * large file into a sink that only finds the last newline.
 *
 *   npm run bench -- tail-files [FILES] [MEGABYTES]
 */
import { appendFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/core/clock.ts';
import type { Log } from '../src/core/ports.ts';
import { createTailer } from '../src/sources/logs/files/tailer.ts';
import type { LineSink } from '../src/sources/logs/sink.ts';
import { logDefaults } from '../test/log-defaults.ts';
import { numberAt } from './arguments.ts';
import { cpuMs } from './figures.ts';
import { newPlace } from './process.ts';

const files = numberAt(0, 'FILES', 10_000);
const megabytes = numberAt(1, 'MEGABYTES', 1000);
const root = newPlace('tail');
const log: Log = { write: () => {}, named: () => log };

let newlines = 0;
const countingSink: LineSink = {
  write(bytes, start, end) {
    let last = start;
    for (let at = bytes.indexOf(10, start); at >= 0 && at < end; at = bytes.indexOf(10, last)) {
      newlines++;
      last = at + 1;
    }
    return last;
  },
  finish: () => {},
  skip: () => {},
  state: () => undefined,
};

function tailerOver(pattern: string) {
  const options = { ...logDefaults, paths: [join(root, pattern)] };
  return createTailer(
    { services: { history: options }, selected: new Set(['history']) },
    { openSink: () => countingSink, clock: systemClock, log, lag: () => {} },
  );
}

const megabyteText = (count: number) => `${count.toFixed(0)} MB/s`;

async function timed(call: () => unknown): Promise<{ wallMs: number; cpuMs: number }> {
  const cpu = process.cpuUsage();
  const began = performance.now();
  await call();
  return { wallMs: performance.now() - began, cpuMs: cpuMs(cpu) };
}

async function best(rounds: number, call: () => unknown) {
  let least = { wallMs: Number.POSITIVE_INFINITY, cpuMs: Number.POSITIVE_INFINITY };
  for (let round = 0; round < rounds; round++) {
    const one = await timed(call);
    if (one.cpuMs < least.cpuMs) least = one;
  }
  return least;
}

const print = (what: string, figure: string) => process.stdout.write(`${what.padEnd(44)}${figure}\n`);
const ms = (took: { wallMs: number; cpuMs: number }) =>
  `${took.wallMs.toFixed(1)} ms, ${took.cpuMs.toFixed(1)} ms of CPU`;

/** The number of bytes in use, without garbage. */
function held(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function idleFiles(what: string, pattern: string, name: (n: number) => string): Promise<void> {
  print(what, '');
  const path = (n: number) => join(root, name(n));
  for (let n = 0; n < files; n++) writeFileSync(path(n), `{"level":"info","msg":"file ${n}"}\n`);
  const before = held();
  const tailer = tailerOver(pattern);
  print(`first scan, ${files} files`, ms(await timed(() => tailer.scan())));
  print(`a scan, ${files} idle files`, ms(await best(10, () => tailer.scan())));
  print(`memory of ${files} files`, `${((held() - before) / 2 ** 20).toFixed(1)} MiB`);
  const freezeAll = async () => {
    for (let n = 0; n < files; n++) {
      appendFileSync(path(n), '{"level":"info"}\n');
      utimesSync(path(n), 0, performance.now());
    }
    await tailer.scan();
    return timed(() => void tailer.freeze());
  };
  await freezeAll();
  print(`freeze, all ${files} files changed`, ms(await freezeAll()));
  appendFileSync(path(0), '{"level":"info"}\n');
  await tailer.scan();
  print(`freeze, one of ${files} files changed`, ms(await timed(() => void tailer.freeze())));
  print('freeze, none changed', ms(await best(10, () => void tailer.freeze())));
  print('positions', `${(tailer.freeze().length / 1024).toFixed(0)} KiB`);
  const section = Uint8Array.from(tailer.freeze());
  await tailer.close();
  const next = tailerOver(pattern);
  const restoreAndScan = () => {
    next.restore(section);
    return next.scan();
  };
  print(`restore and first scan, ${files} files`, ms(await timed(restoreAndScan)));
  await next.close();
}

async function largeFile(): Promise<void> {
  const line = `${JSON.stringify({ level: 'info', ts: '2026-01-01T00:00:00.000Z', msg: 'x'.repeat(150) })}\n`;
  const chunk = line.repeat(Math.floor(2 ** 20 / line.length));
  const path = join(root, 'large.txt');
  for (let n = 0; n < megabytes; n++) appendFileSync(path, chunk);
  const bytes = megabytes * chunk.length;
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round++) {
    const tailer = tailerOver('large.txt');
    newlines = 0;
    least = Math.min(least, (await timed(() => tailer.scan())).cpuMs);
    if (newlines !== bytes / line.length) throw new Error(`counted ${newlines} lines`);
    await tailer.close();
  }
  print(`reading, newlines counted, ${(bytes / 1e6).toFixed(0)} MB`, megabyteText(bytes / 1000 / least));
}

await idleFiles('containers', 'container-*.log', (n) => `container-${n}.log`);
await idleFiles('generations', 'app.log*', (n) => (n === 0 ? 'app.log' : `app.log-${20_000_000 + n}`));
await largeFile();
