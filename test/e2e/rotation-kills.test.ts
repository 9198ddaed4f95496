import { spawn } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import {
  generationsUnseen,
  killWhileRotating,
  lineOf,
  type RotatedService,
  timeoutOf,
} from './rotation/kill-loop.ts';

/** The number of kills per case, and the seeds. */
const kills = Number(process.env.ROTATION_KILLS ?? bySize({ short: 1, long: 2, nightly: 300 }));
const seeds = bySize({ short: 1, long: 1, nightly: 3 });
const olderGenerations = 400;
const keptGenerations = olderGenerations + 100;

const styles = [
  'rename',
  'rename, gzip in the background',
  'dated names',
  'copytruncate',
  'swung links',
] as const;
type Style = (typeof styles)[number];

/** A service that writes and is rotated four times a second beside older generations. */
function createService(directory: string, style: Style, random: () => number): RotatedService {
  const log = join(directory, 'app.log');
  const written = new Map<string, number>();
  const name = (n: number) => `${log}.${n}`;
  const dated = (n: number) => `${log}-${20200000 + n}`;
  const target = (n: number) => join(directory, `service-${n}.txt`);
  let generation = 1;
  let isCompressing = false;
  /** The newest generation that the agent is known to have read. */
  let seen = 1;
  let fd: number;

  const older = '{"level":"info","generation":"older","msg":"long ago"}\n';
  for (let n = 1; n <= olderGenerations; n++) {
    const path = style === 'dated names' ? dated(n) : style === 'swung links' ? target(n) : name(n);
    writeFileSync(path, `${older.repeat(1 + (n % 7))}{"level":"info","generation":"older","n":${n}}\n`);
    utimesSync(path, 1_700_000_000 - n, 1_700_000_000 - n);
  }
  if (style === 'swung links') {
    fd = openSync(target(olderGenerations + 1), 'a');
    symlinkSync(target(olderGenerations + 1), log);
  } else fd = openSync(log, 'a');

  const write = () => {
    const lines = 5 + Math.floor(random() * 30);
    let text = '';
    for (let i = 0; i < lines; i++) text += `${lineOf(generation, random)}\n`;
    writeSync(fd, text);
    written.set(String(generation), (written.get(String(generation)) ?? 0) + lines);
  };

  const reopen = (path: string) => {
    const next = openSync(path, 'a');
    if (random() < 0.5) write();
    closeSync(fd);
    fd = next;
    generation++;
  };

  const makeRoom = () => {
    for (const suffix of ['', '.gz']) rmSync(name(keptGenerations) + suffix, { force: true });
    for (let n = keptGenerations - 1; n > 0; n--) {
      for (const suffix of ['', '.gz']) {
        if (existsSync(name(n) + suffix)) renameSync(name(n) + suffix, name(n + 1) + suffix);
      }
    }
  };

  const compress = (path: string) => {
    isCompressing = true;
    spawn('gzip', ['-f', path], { stdio: 'ignore' }).on('close', () => {
      isCompressing = false;
    });
  };

  const rotate = () => {
    if (isCompressing || generation - seen >= generationsUnseen) return;
    if (style === 'copytruncate') {
      makeRoom();
      copyFileSync(log, name(1));
      truncateSync(log);
      generation++;
    } else if (style === 'swung links') {
      const next = target(olderGenerations + 1 + generation);
      reopen(next);
      symlinkSync(next, `${log}.tmp`);
      renameSync(`${log}.tmp`, log);
    } else if (style === 'dated names') {
      renameSync(log, dated(olderGenerations + generation));
      reopen(log);
    } else {
      makeRoom();
      renameSync(log, name(1));
      reopen(log);
      if (style !== 'rename') compress(name(1));
    }
  };

  let timer: NodeJS.Timeout;
  let nextRotation = performance.now() + 250;
  const run = () => {
    write();
    if (performance.now() >= nextRotation) {
      nextRotation += 250;
      rotate();
    }
    timer = setTimeout(run, 15);
  };
  write();
  return {
    paths: [log],
    written,
    run,
    generation: () => generation,
    stop: () => clearTimeout(timer),
    sees: (newest: number) => {
      seen = newest;
    },
    async end() {
      clearTimeout(timer);
      await until('gzip ends', () => !isCompressing);
      // The last line is complete, so that nothing is pending.
      appendFileSync(log, '');
      closeSync(fd);
    },
  };
}

const tried = bySize<readonly Style[]>({ short: styles.slice(1, 2), long: styles, nightly: styles });
const cases = tried.flatMap((style) => Array.from({ length: seeds }, (_, seed) => [style, seed] as const));

test.for(cases)(
  'killed while logs rotate: %s, seed %i',
  { timeout: timeoutOf(kills) },
  async ([style, seed], { annotate }) => {
    const open = (directory: string, random: () => number) => createService(directory, style, random);
    await annotate(await killWhileRotating(open, seed, kills));
  },
);
