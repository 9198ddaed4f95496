/**
 * Measures the way from the bytes of a log file to counts, in one process: what the tailer does per read (256 KiB into one
 * buffer) and the sinks per line, with the default families. `JSON.parse` per line over the same file is measured in the same
 * run. Usage: npm run bench -- tail-lines [LINES]
 */
import { closeSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/core/clock.ts';
import type { Counter, Gauge, Intake } from '../src/core/model.ts';
import { createLineSinks } from '../src/sources/logs/metrics/line-sinks.ts';
import { logDefaults } from '../test/log-defaults.ts';
import { numberAt } from './arguments.ts';
import { cpuMs } from './figures.ts';
import { logLines, shapes } from './lines.ts';
import { newPlace } from './process.ts';

const chunkBytes = 256 * 1024;
const rounds = 8;

/** Counts updates of one array cell, which are as cheap as updates through any registry's handle can be. */
function createArrayIntake(): Intake & { total(): number } {
  const live = new Float64Array(1024);
  let cells = 0;
  const number = (): Counter & Gauge => {
    const cell = cells++;
    return {
      add(delta) {
        if (delta >= 0 && delta < Number.POSITIVE_INFINITY) live[cell]! += delta;
      },
      set(value) {
        live[cell] = value;
      },
      release() {},
    };
  };
  return {
    counter: number,
    gauge: number,
    untyped: number,
    histogram: () => ({ observe() {}, set() {}, release() {} }),
    summary: () => ({ set() {}, release() {} }),
    total: () => live.reduce((sum, value) => sum + value, 0),
  };
}

/** Reads the file in chunks; `take` returns the index of the first byte that it needs again. */
function readChunks(path: string, take: (bytes: Buffer, end: number) => number): void {
  const buffer = Buffer.allocUnsafe(2 * chunkBytes);
  const file = openSync(path, 'r');
  let held = 0;
  for (;;) {
    const read = readSync(file, buffer, held, chunkBytes, null);
    if (read === 0) break;
    const end = held + read;
    const used = take(buffer, end);
    held = buffer.copy(buffer, 0, used, end);
  }
  closeSync(file);
}

/** Counts a file repeatedly with sinks that are opened once, in the same way as the agent opens them once per configuration. */
function createCount(): (path: string) => void {
  const intake = createArrayIntake();
  const sinks = createLineSinks(
    { services: { history: logDefaults }, selected: new Set(['history']) },
    { intakes: () => intake, drops: { count() {} }, clock: systemClock },
  );
  return (path) => {
    const before = intake.total();
    const sink = sinks.open({ path, claimants: ['history'] });
    readChunks(path, (bytes, end) => sink.write(bytes, 0, end));
    if (intake.total() === before) throw new Error('nothing was counted');
  };
}

function parse(path: string): void {
  const levels = new Map<string, number>();
  readChunks(path, (bytes, end) => {
    let at = 0;
    for (let next = bytes.indexOf(10, at); next >= 0 && next < end; next = bytes.indexOf(10, at)) {
      const { level } = JSON.parse(bytes.toString('utf8', at, next)) as { level: string };
      levels.set(level, (levels.get(level) ?? 0) + 1);
      at = next + 1;
    }
    return at;
  });
  if (levels.size === 0) throw new Error('nothing was counted');
}

/** MB per CPU-second, the best of a few rounds. */
function speedOf(work: (path: string) => void, path: string): number {
  let best = 0;
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    work(path);
    best = Math.max(best, statSync(path).size / cpuMs(before) / 1000);
  }
  return best;
}

const lineCount = numberAt(0, 'LINES', 300_000);
const place = newPlace('lines');
for (const shape of shapes) {
  const path = join(place, `${shape}.log`);
  writeFileSync(path, logLines(shape, lineCount));
  const counted = speedOf(createCount(), path);
  const parsed = speedOf(parse, path);
  const lineBytes = Math.round(statSync(path).size / lineCount);
  process.stdout.write(
    `${shape}: ${lineBytes} B a line, counted ${counted.toFixed(0)} MB/CPU-s, ` +
      `JSON.parse ${parsed.toFixed(0)} MB/CPU-s, ratio ${(counted / parsed).toFixed(1)}\n`,
  );
}
