/**
 * A wake-up for the next scan of log directories: one fs.watch per directory, as the agent does it, beside chokidar 5.
 * Prints memory, watches, and how many appends and rotations had no event after them.
 * `npm run bench -- doorbell [FILES] [DIRECTORIES]`, default 2000 files in 20 directories.
 */
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { watch as chokidarWatch } from 'chokidar';

const files = Number(process.argv[2] ?? 2000);
const directories = Number(process.argv[3] ?? 20);
const root = mkdtempSync(join(tmpdir(), 'svc-agent-doorbell-'));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const paths = Array.from({ length: directories }, (_, n) => join(root, `d${n}`));
for (const path of paths) mkdirSync(path);
const fileOf = (n: number) => join(paths[n % directories]!, `f${n}.log`);
for (let n = 0; n < files; n++) writeFileSync(fileOf(n), 'line\n');

interface Bell {
  ready: Promise<unknown>;
  close(): unknown;
}

const bells: [string, (ring: () => void) => Bell][] = [
  [
    'fs.watch per directory',
    (ring) => {
      const watchers = paths.map((path) => watch(path, { persistent: false }, ring));
      return {
        ready: Promise.resolve(),
        close: () => {
          for (const watcher of watchers) watcher.close();
        },
      };
    },
  ],
  [
    'chokidar 5',
    (ring) => {
      const watcher = chokidarWatch(paths, {
        ignoreInitial: true,
        atomic: false,
        persistent: false,
        depth: 0,
      });
      const ready = new Promise<void>((resolve) => void watcher.once('ready', () => resolve()));
      watcher.on('all', ring);
      return { ready, close: () => watcher.close() };
    },
  ],
];

function held(): number {
  globalThis.gc?.();
  return process.memoryUsage().rss;
}

/** Changes something twice, `gapMs` apart, and tells whether an event came after the second change. */
async function isMissed(ring: { at: number }, gapMs: number, change: (n: number) => void): Promise<boolean> {
  change(1);
  await pause(gapMs);
  const changedAt = performance.now();
  change(2);
  await pause(250);
  return ring.at < changedAt;
}

for (const [name, open] of bells) {
  const before = held();
  const ring = { at: 0 };
  const began = performance.now();
  const bell = open(() => {
    ring.at = performance.now();
  });
  await bell.ready;
  const readyMs = performance.now() - began;
  const memory = (held() - before) / 2 ** 20;
  const rounds = 40;
  let appends = 0;
  let rotations = 0;
  for (let n = 0; n < rounds; n++) {
    const path = fileOf(n);
    if (await isMissed(ring, 5 + n, () => appendFileSync(path, 'line\n'))) appends++;
    const rotate = (k: number) => {
      renameSync(path, `${path}.${n}.${k}`);
      writeFileSync(path, '');
    };
    if (await isMissed(ring, 5 + n, rotate)) rotations++;
  }
  process.stdout.write(
    `${name.padEnd(24)} ${memory.toFixed(1)} MiB for ${files} files, ready after ${readyMs.toFixed(0)} ms; ` +
      `no event after the last of two appends ${appends} of ${rounds}, of two rotations ${rotations} of ${rounds}\n`,
  );
  await bell.close();
}
rmSync(root, { recursive: true, force: true });
