/**
 * Compares ways to be woken for the next scan of log directories: one fs.watch per directory, as the agent does it, and chokidar
 * 5, with its watch per file and with directories alone. Each way runs in a separate process, so that the measured memory is its
 * own, including its code. Prints memory, inotify watches, and how many changes had no event after them. `npm run bench --
 * doorbell [FILES] [DIRECTORIES]`; default: 100, 2000 and 10,000 files, 100 in a directory.
 */
import { fork } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ChokidarOptions } from 'chokidar';
import { cpuMs } from './figures.ts';
import { newPlace, pause, usageOf } from './process.ts';

interface Watching {
  ready: Promise<unknown>;
  close(): unknown;
}

async function watchByChokidar(
  paths: string[],
  ring: () => void,
  ignored: ChokidarOptions['ignored'] = [],
): Promise<Watching> {
  const chokidar = await import('chokidar');
  const options = { ignoreInitial: true, atomic: false, persistent: false, depth: 0, ignored };
  const watcher = chokidar.watch(paths, options).on('all', ring);
  return {
    ready: new Promise<void>((resolve) => void watcher.once('ready', () => resolve())),
    close: () => watcher.close(),
  };
}

const kinds: Record<string, (paths: string[], ring: () => void) => Promise<Watching>> = {
  'fs.watch per directory': async (paths, ring) => {
    const watchers = paths.map((path) => watch(path, { persistent: false }, ring));
    return { ready: Promise.resolve(), close: () => void watchers.map((watcher) => watcher.close()) };
  },
  'chokidar 5': (paths, ring) => watchByChokidar(paths, ring),
  'chokidar 5, no files': (paths, ring) =>
    watchByChokidar(paths, ring, (_, stats) => stats?.isFile() === true),
};

/** The private memory in MiB, after a garbage collection. */
function held(): number {
  for (let n = 0; n < 3; n++) globalThis.gc?.();
  return usageOf(process.pid).anonymousMiB;
}

function inotifyWatches(): number {
  const infos = readdirSync('/proc/self/fdinfo').map((fd) => {
    try {
      return readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8');
    } catch {
      return '';
    }
  });
  return infos.join('\n').match(/^inotify wd/gm)?.length ?? 0;
}

/** Changes something twice, `gapMs` apart, and returns whether no event came after the second change. */
async function isMissed(ring: { at: number }, gapMs: number, change: (n: number) => void): Promise<boolean> {
  change(1);
  await pause(gapMs);
  const changedAt = performance.now();
  change(2);
  await pause(250);
  return ring.at < changedAt;
}

/** Measures one way in a separate process. */
async function measure(kind: string, files: number, directories: number): Promise<string> {
  const root = newPlace('doorbell');
  const paths = Array.from({ length: directories }, (_, n) => join(root, `d${n}`));
  for (const path of paths) mkdirSync(path);
  const fileOf = (n: number) => join(paths[n % directories]!, `f${n}.log`);
  for (let n = 0; n < files; n++) writeFileSync(fileOf(n), 'line\n');
  const before = held();
  const ring = { at: 0 };
  const cpu = process.cpuUsage();
  const watching = await kinds[kind]!(paths, () => {
    ring.at = performance.now();
  });
  await watching.ready;
  const tookMs = cpuMs(cpu);
  await pause(500);
  const memory = held() - before;
  const watches = inotifyWatches();
  const rounds = 40;
  let [appends, rotations] = [0, 0];
  for (let n = 0; n < rounds; n++) {
    const path = fileOf(n);
    if (await isMissed(ring, 5 + n, () => appendFileSync(path, 'line\n'))) appends++;
    const rotate = (k: number) => {
      renameSync(path, `${path}.${n}.${k}`);
      writeFileSync(path, '');
    };
    if (await isMissed(ring, 5 + n, rotate)) rotations++;
  }
  await watching.close();
  return (
    `${kind.padEnd(24)}${String(files).padStart(6)} files: ${memory.toFixed(1).padStart(5)} MiB, ` +
    `${String(watches).padStart(6)} watches, ${tookMs.toFixed(0).padStart(5)} ms of CPU; ` +
    `no event after the last of two appends ${appends} of ${rounds}, of two rotations ${rotations} of ${rounds}\n`
  );
}

const [, self, first, second, third] = process.argv;
if (process.send) {
  process.stdout.write(await measure(first!, Number(second), Number(third)));
  process.disconnect();
} else {
  const sizes = first
    ? [[Number(first), Number(second ?? 20)]]
    : [
        [100, 1],
        [2000, 20],
        [10_000, 100],
      ];
  for (const [files, directories] of sizes) {
    for (const kind of Object.keys(kinds)) {
      const child = fork(self!, [kind, `${files}`, `${directories}`], {
        execArgv: [...process.execArgv, '--expose-gc'],
      });
      await new Promise((resolve) => void child.once('exit', resolve));
    }
  }
}
