import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { anyMoment, until } from '../../until.ts';
import { generationsUnseen, lineOf, type OpenService, type RotatedService } from './kill-loop.ts';

/** Services that write their log themselves, while a program or a runtime rotates it. */

const keptFiles = 300;

interface Rotated {
  log: string;
  paths: readonly string[];
  /** The form of a line in the file; default: the line itself. */
  wrap?(line: string): string;
  /** Rotates the log. `reopen` opens a new file; what is written before that goes to the old file. */
  rotate(reopen: () => void): Promise<void>;
  /** The shortest time between two rotations; default 250 ms. */
  everyMs?: number;
  /** Whether the service pauses during a rotation; the next generation then begins after it, in the same file. */
  pauses?: boolean;
}

function rotated(
  random: () => number,
  { log, paths, wrap, rotate, everyMs = 250, pauses }: Rotated,
): RotatedService {
  const written = new Map<string, number>();
  let generation = 1;
  let seen = 1;
  let fd = openSync(log, 'a');
  let isRotating = false;
  let timer: NodeJS.Timeout;
  const write = () => {
    if (isRotating && pauses) return;
    const label = String(generation);
    const lines = 5 + Math.floor(random() * 30);
    let text = '';
    for (let n = 0; n < lines; n++) {
      const line = lineOf(label, random);
      text += `${wrap?.(line) ?? line}\n`;
    }
    writeSync(fd, text);
    written.set(label, (written.get(label) ?? 0) + lines);
  };
  const reopen = () => {
    const next = openSync(log, 'a');
    if (random() < 0.5) write();
    closeSync(fd);
    fd = next;
    generation++;
    write();
  };
  let nextRotation = performance.now() + everyMs;
  const rotateIfDue = () => {
    if (isRotating || performance.now() < nextRotation || generation - seen >= generationsUnseen) return;
    nextRotation = performance.now() + everyMs;
    isRotating = true;
    void rotate(reopen).finally(() => {
      isRotating = false;
      if (pauses) generation++;
    });
  };
  const run = () => {
    write();
    rotateIfDue();
    timer = setTimeout(run, 15);
  };
  write();
  return {
    paths,
    written,
    run,
    generation: () => generation,
    sees: (newest) => {
      seen = newest;
    },
    stop: () => clearTimeout(timer),
    async end() {
      clearTimeout(timer);
      await until('the rotation ends', () => !isRotating);
      closeSync(fd);
    },
  };
}

interface LogrotateOptions {
  directives: readonly string[];
  /** Whether rotated files go to a separate directory, in which the agent looks, too. */
  olddir?: boolean;
  /** Whether logrotate decides when to rotate. */
  isDue?: boolean;
  everyMs?: number;
}

/** Rotates with Debian's logrotate; its postrotate script waits until the service has opened a new file. */
export function logrotate({ directives, olddir, isDue, everyMs }: LogrotateOptions): OpenService {
  return (place, random) => {
    const directory = join(place, 'logs');
    const old = join(place, 'old');
    for (const path of [directory, old]) mkdirSync(path);
    const log = join(directory, 'app.log');
    const marker = join(place, 'reopen');
    const config = join(place, 'logrotate.conf');
    // With these, the service goes on in the same file.
    const keepsFile = directives.includes('copytruncate') || directives.includes('copy');
    const script = `  postrotate\n    touch ${marker}; while [ -e ${marker} ]; do sleep 0.005; done\n  endscript\n`;
    const lines = [...directives, `rotate ${keptFiles}`, 'notifempty', ...(olddir ? [`olddir ${old}`] : [])];
    writeFileSync(config, `${log} {\n  ${lines.join('\n  ')}\n${keepsFile ? '' : script}}\n`);
    const args = ['-s', join(place, 'logrotate.state'), ...(isDue ? [] : ['-f']), config];
    const rotate = (reopen: () => void) =>
      new Promise<void>((resolve, reject) => {
        const watch = setInterval(() => {
          if (!existsSync(marker)) return;
          reopen();
          rmSync(marker);
        }, 5);
        spawn('logrotate', args, { stdio: ['ignore', 'inherit', 'inherit'] }).on('close', (status) => {
          clearInterval(watch);
          if (status === 0) resolve();
          else reject(new Error(`logrotate ended with ${status}`));
        });
      });
    const paths = [`${log}*`, ...(olddir ? [join(old, 'app.log*')] : [])];
    return rotated(random, { log, paths, rotate, everyMs, pauses: keepsFile });
  };
}

/** Rotates like the json-file driver: numbered names; the newest of them is compressed in the background. */
export const docker: OpenService = (place, random) => {
  const directory = join(place, 'containers', 'c0ffee');
  mkdirSync(directory, { recursive: true });
  const log = join(directory, 'c0ffee-json.log');
  let packing: Promise<void> = Promise.resolve();
  const pack = async () => {
    const packed = gzipSync(readFileSync(`${log}.1`));
    const fd = openSync(`${log}.1.gz`, 'w');
    const half = Math.floor(packed.length * random());
    writeSync(fd, packed, 0, half);
    await anyMoment(random, 40);
    writeSync(fd, packed, half);
    closeSync(fd);
    rmSync(`${log}.1`);
  };
  const rotate = async (reopen: () => void) => {
    await packing;
    rmSync(`${log}.${keptFiles}.gz`, { force: true });
    for (let n = keptFiles - 1; n > 0; n--)
      if (existsSync(`${log}.${n}.gz`)) renameSync(`${log}.${n}.gz`, `${log}.${n + 1}.gz`);
    renameSync(log, `${log}.1`);
    reopen();
    packing = pack();
  };
  const wrap = (line: string) =>
    JSON.stringify({ log: `${line}\n`, stream: 'stdout', time: new Date().toISOString() });
  const service = rotated(random, { log, paths: [join(place, 'containers/*/*-json.log')], wrap, rotate });
  const end = async () => {
    await service.end();
    await packing;
  };
  return { ...service, end };
};

/** Rotates like the kubelet a log that is found by the link of its container. */
export const kubelet: OpenService = (place, random) => {
  const pod = join(place, 'pods/default_history_1/history');
  const links = join(place, 'containers');
  for (const path of [pod, links]) mkdirSync(path, { recursive: true });
  const log = join(pod, '0.log');
  symlinkSync(log, join(links, 'history_default_history-1.log'));
  let count = 0;
  const plainArchives = () =>
    readdirSync(pod)
      .filter((name) => /^0\.log\.\d+-\d+$/.test(name))
      .sort();
  const rotate = async (reopen: () => void) => {
    for (const name of readdirSync(pod)) if (name.endsWith('.tmp')) rmSync(join(pod, name));
    // The runtime may still write to the newest archive.
    for (const name of plainArchives().slice(0, -1)) {
      const path = join(pod, name);
      const packed = gzipSync(readFileSync(path));
      const half = Math.floor(packed.length * random());
      writeFileSync(`${path}.tmp`, packed.subarray(0, half));
      await anyMoment(random, 40);
      // A kubelet that is stopped leaves the unfinished archive.
      if (random() < 0.1) return;
      writeFileSync(`${path}.tmp`, packed.subarray(half), { flag: 'a' });
      renameSync(`${path}.tmp`, `${path}.gz`);
      rmSync(path);
    }
    renameSync(log, `${log}.20261123-${String(100_000 + ++count)}`);
    await anyMoment(random, 40);
    reopen();
  };
  const wrap = (line: string) => `${new Date().toISOString().replace('Z', '000000Z')} stdout F ${line}`;
  return rotated(random, { log, paths: [join(links, '*.log')], wrap, rotate });
};
