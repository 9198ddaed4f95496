import { gzipSync } from 'node:zlib';
import { identifyingBytes } from '../../src/sources/logs/files/chain.ts';
import { type ModelFile, parentOf } from './disk.ts';
import {
  copied,
  goesOut,
  isCounted,
  type Line,
  type Log,
  lineOf,
  openFile,
  type World,
  writeBanner,
  writtenIn,
  wrote,
} from './world.ts';

/** Rotations, compressors and whatever else happens to logs. At each `yield` anything else may happen. */

const newline = 10;
const keptNumber = 5;
/** More than the longest banner, a line with its time, and the distance of two marks have. */
const tellingBytes = 2048;

/** Whether a file at the end of the chain has been counted finally, so that it may be deleted. */
function mayDelete(world: World, name: string): boolean {
  const file = world.disk.file(name);
  const content = file && world.contents.get(file);
  return !content || isCounted(content) || (content.isOut && !content.isHeld);
}

const suffixes = (log: Log) => (log.suffix === '.gz' ? ['', '.gz'] : ['', log.suffix]);

function* makeRoom(world: World, log: Log): Generator<void> {
  const { disk } = world;
  const { archive } = log;
  for (const suffix of suffixes(log)) {
    const last = `${archive}.${keptNumber}${suffix}`;
    if (disk.names.has(last)) {
      disk.unlink(last);
      world.note(`unlink ${last}`);
      yield;
    }
  }
  for (let n = keptNumber - 1; n > 0; n--) {
    for (const suffix of suffixes(log)) {
      const from = `${archive}.${n}${suffix}`;
      if (!disk.names.has(from)) continue;
      disk.rename(from, `${archive}.${n + 1}${suffix}`);
      world.note(`rename ${from} .${n + 1}${suffix}`);
      yield;
    }
  }
}

/** Deletes the oldest rotated files as far as they have been counted finally. */
function* deleteOldest(world: World, log: Log): Generator<void> {
  const { disk } = world;
  while (log.rotated.length > keptNumber) {
    const [oldest] = log.rotated;
    for (const name of [oldest!, `${oldest}${log.suffix}`]) {
      if (!mayDelete(world, name)) return;
      if (!disk.names.has(name)) continue;
      disk.unlink(name);
      world.note(`unlink ${name}`);
      yield;
    }
    const isOwn = (name: string) => name.startsWith(`${oldest}.`);
    const links = log.links.get(oldest!) ?? [];
    // The link of a dead container leads to its rotated files, too.
    if (links.length > 0 && ![...disk.names.keys()].filter(isOwn).every((name) => mayDelete(world, name)))
      return;
    for (const link of links) {
      disk.unlink(link);
      world.note(`unlink ${link}`);
      yield;
    }
    log.rotated.shift();
  }
}

const isNumbered = ({ style }: Log) =>
  [
    'numbered',
    'olddir',
    'olddirCopy',
    'twins',
    'copytruncate',
    'docker',
    'otherSuffix',
    'full',
    'fullCopy',
    'copyLeft',
    'renamecopy',
    'hurried',
  ].includes(style);

function rotatedName(log: Log): string {
  const name = newName(log);
  if (name === undefined) return `${log.archive}.1`;
  log.rotated.push(name);
  return name;
}

function newName(log: Log): string | undefined {
  const { style, archive, generation } = log;
  if (style === 'upwards') return `${archive}.${generation}`;
  if (style === 'dated' || style === 'datedCopy')
    return `${archive}-2026${String(10_000 + generation).slice(1)}`;
  if (style === 'kubelet' || style === 'kubernetes')
    return `${archive}.20260101-${String(1_000_000 + generation).slice(1)}`;
  return style === 'strangeCopy' ? `saved${generation}-${archive}` : undefined;
}

/** Writes the bytes of an archive in two pieces; false if the disk was full. */
function* packInto(world: World, log: Log, target: ModelFile, plain: ModelFile): Generator<void, boolean> {
  const { disk } = world;
  const level = log.stores ? 0 : 1;
  const packed = gzipSync(plain.bytes.subarray(0, plain.length), { level, memLevel: 1, windowBits: 9 });
  const content = world.contents.get(plain);
  yield;
  const half = world.random(packed.length);
  disk.append(target, packed.subarray(0, half));
  yield;
  if (world.isFull) return false;
  disk.append(target, packed.subarray(half));
  copied(world, target, content?.lines ?? []);
  yield;
  return true;
}

function* compress(world: World, log: Log, name: string): Generator<void> {
  const { disk } = world;
  const plain = disk.file(name);
  if (!plain || log.file === plain) return;
  const packed = `${name}${log.suffix}`;
  const target = disk.create(packed);
  world.note(`gzip ${name} begins`);
  if (!(yield* packInto(world, log, target, plain))) {
    disk.unlink(packed);
    return;
  }
  if (log.keepsTime) target.mtimeMs = plain.mtimeMs;
  yield;
  disk.unlink(name);
  world.note(`gzip ${name} ends`);
  yield;
}

function* compressRotated(world: World, log: Log, to: string): Generator<void> {
  if (!log.compresses) return;
  const packed = log.delays && isNumbered(log) ? `${log.archive}.2` : to;
  if (world.disk.names.has(packed)) yield* compress(world, log, packed);
}

/** Renames the log, and the writer opens a new file. */
function* replaceFile(world: World, log: Log, to: string): Generator<void> {
  const { disk, random } = world;
  disk.rename(log.name, to);
  world.note(`rename ${log.name} ${to}`);
  if (log.hides) goesOut(world, log.file, true);
  yield;
  if (log.lingers) for (let n = random(4); n > 0; n--) yield;
  const file = disk.create(log.name);
  world.note(`create ${log.name}`);
  yield;
  if (log.lingers) for (let n = random(4); n > 0; n--) yield;
  openFile(world, log, file);
  yield;
}

function* rotateByRename(world: World, log: Log): Generator<void> {
  if (isNumbered(log)) yield* makeRoom(world, log);
  const to = rotatedName(log);
  yield* replaceFile(world, log, to);
  yield* compressRotated(world, log, to);
}

/** Truncates a log after its copy was made. What was written after the copy is lost by copytruncate itself. */
function truncateCopied(world: World, log: Log, target: ModelFile, copiedBytes: number): void {
  const { disk } = world;
  const { file } = log;
  if (log.torn !== '') wrote(world, file, log.torn);
  log.torn = '';
  const lines = world.contents.get(file)?.lines ?? [];
  let at = 0;
  for (const line of lines) {
    at += line.text.length + 1;
    if (at > copiedBytes) line.mayLose = true;
  }
  if (log.begun) lineOf(world, log.begun.text).mayLose = true;
  disk.truncate(file);
  world.note(`truncate ${log.name}`);
  const kept = lines.filter(({ mayLose }) => !mayLose);
  copied(world, target, kept);
  if (log.hides) goesOut(world, file, false);
  else world.contents.delete(file);
  if (log.begun) {
    // The rest of the line is written to the new file as a line of its own.
    const { rest } = log.begun;
    disk.append(file, rest, newline);
    wrote(world, file, rest).mayLose = true;
    log.begun = undefined;
  }
  log.generation++;
}

function* rotateByCopy(world: World, log: Log): Generator<void> {
  const { disk, random } = world;
  if (isNumbered(log)) yield* makeRoom(world, log);
  const to = rotatedName(log);
  const target = disk.create(to);
  world.note(`copy ${log.name} ${to}`);
  yield;
  const { file } = log;
  const content = writtenIn(world, file);
  while (target.length < file.length) {
    if (world.isFull) {
      disk.unlink(to);
      return;
    }
    const end = Math.min(file.length, target.length + 40 + random(14 * log.lineBytes));
    disk.append(target, file.bytes.subarray(target.length, end));
    yield;
  }
  if (log.keepsTime) target.mtimeMs = file.mtimeMs;
  yield;
  // If somebody has emptied the file meanwhile, the copy has nothing of its present content.
  const copiedBytes = world.contents.get(file) === content ? target.length : 0;
  truncateCopied(world, log, target, copiedBytes);
  yield;
  if (log.style !== 'strangeCopy') yield* compressRotated(world, log, to);
}

/** Copies a file as it grows; returns the number of bytes that the copy has. */
function* copyFile(world: World, log: Log, file: ModelFile, to: string): Generator<void, number> {
  const { disk, random } = world;
  const target = disk.create(to);
  world.note(`copy inode ${file.ino} ${to}`);
  yield;
  while (target.length < file.length) {
    const end = Math.min(file.length, target.length + 40 + random(14 * log.lineBytes));
    disk.append(target, file.bytes.subarray(target.length, end));
    yield;
  }
  if (log.keepsTime) target.mtimeMs = file.mtimeMs;
  return target.length;
}

/** The lines that a copy of the first bytes has. What is beyond them is lost with the original. */
function linesWithin(lines: readonly Line[], bytes: number): { kept: Line[]; beyond: Line[] } {
  let at = 0;
  const kept = lines.filter(({ text }) => {
    at += text.length + 1;
    return at <= bytes;
  });
  return { kept, beyond: lines.slice(kept.length) };
}

/** Makes a copy and leaves the log as it is, as logrotate does with `copy`. */
function* rotateAndLeave(world: World, log: Log): Generator<void> {
  const { file } = log;
  // A copy of fewer bytes cannot be identified.
  if (file.length < identifyingBytes) return;
  yield* makeRoom(world, log);
  const to = rotatedName(log);
  const bytes = yield* copyFile(world, log, file, to);
  copied(world, world.disk.file(to)!, linesWithin(writtenIn(world, file).lines, bytes).kept);
  yield;
  yield* compressRotated(world, log, to);
}

/** Renames the log, copies it to another directory, and deletes it, as logrotate does with `renamecopy`. */
function* rotateByMovedCopy(world: World, log: Log): Generator<void> {
  const { disk } = world;
  yield* makeRoom(world, log);
  const { file } = log;
  const moved = `${log.name}.tmp`;
  disk.rename(log.name, moved);
  world.note(`rename ${log.name} .tmp`);
  yield;
  const next = disk.create(log.name);
  world.note(`create ${log.name}`);
  yield;
  if (!log.lingers) openFile(world, log, next);
  const to = rotatedName(log);
  const bytes = yield* copyFile(world, log, file, to);
  yield;
  if (log.lingers) openFile(world, log, next);
  disk.unlink(moved);
  world.note(`unlink ${moved}`);
  const { kept, beyond } = linesWithin(writtenIn(world, file).lines, bytes);
  for (const line of beyond) line.mayLose = true;
  world.contents.delete(file);
  copied(world, disk.file(to)!, kept);
  yield;
  yield* compressRotated(world, log, to);
}

/** Renames the log and compresses it at once, while the service still writes to it. */
function* rotateHurriedly(world: World, log: Log): Generator<void> {
  const { disk, random } = world;
  const { file } = log;
  // An archive with little more than a banner cannot be told from that of another generation.
  if (file.length < tellingBytes) return;
  yield* makeRoom(world, log);
  const to = rotatedName(log);
  disk.rename(log.name, to);
  world.note(`rename ${log.name} ${to}`);
  yield;
  const next = disk.create(log.name);
  const target = disk.create(`${to}.gz`);
  world.note(`gzip ${to} begins`);
  const bytes = file.length;
  yield* packInto(world, log, target, file);
  disk.unlink(to);
  world.note(`gzip ${to} ends`);
  const { kept, beyond } = linesWithin(writtenIn(world, file).lines, bytes);
  for (const line of beyond) line.mayLose = true;
  copied(world, target, kept);
  world.contents.delete(file);
  for (let n = random(6); n > 0; n--) yield;
  openFile(world, log, next);
  for (const line of writtenIn(world, file).lines) line.mayLose = true;
  world.contents.delete(file);
  yield;
}

function* rotateByLink(world: World, log: Log): Generator<void> {
  const { disk } = world;
  log.rotated.push(`${log.name}-${log.generation}.txt`);
  const name = `${log.name}-${log.generation + 1}.txt`;
  const file = disk.create(name);
  world.note(`create ${name}`);
  yield;
  openFile(world, log, file);
  yield;
  disk.link(`${log.name}.tmp`, name);
  yield;
  disk.rename(`${log.name}.tmp`, log.name);
  world.note(`swing ${log.name} to ${name}`);
  yield;
}

/** Rewrites the same file from its beginning, as `service > file` does, perhaps after a pause. */
function* rewrite(world: World, log: Log): Generator<void> {
  const { disk, random } = world;
  if (log.begun) {
    wrote(world, log.file, log.begun.text.slice(0, -log.begun.rest.length || undefined));
    log.begun = undefined;
  }
  goesOut(world, log.file, false);
  disk.truncate(log.file);
  world.note(`rewrite ${log.name}`);
  log.generation++;
  log.isGone = true;
  if (random(2) === 0) for (let n = random(12); n > 0; n--) yield;
  log.isGone = false;
  writeBanner(world, log);
  yield;
}

/** Rotates like the kubelet: archives are written under another name; the newest rotated file is not compressed. */
function* rotateByKubelet(world: World, log: Log): Generator<void> {
  const { disk, random } = world;
  // Only files of this container count: what a dead container left stays as it is.
  const own = log.rotated.filter((name) => name.startsWith(`${log.archive}.`));
  const older = own.filter((name) => disk.names.has(name)).slice(0, -1);
  for (const name of older) {
    const plain = disk.file(name)!;
    if (plain === log.file) continue;
    const unfinished = `${name}.tmp`;
    if (disk.names.has(unfinished)) {
      disk.unlink(unfinished);
      world.note(`unlink ${unfinished}`);
      yield;
    }
    const target = disk.create(unfinished);
    world.note(`gzip ${name} to .tmp`);
    yield* packInto(world, log, target, plain);
    // A kubelet that is stopped leaves the archive as it is; the next one writes it again.
    if (random(8) === 0) return;
    disk.rename(unfinished, `${name}.gz`);
    world.note(`rename ${unfinished} .gz`);
    yield;
    disk.unlink(name);
    world.note(`unlink ${name}`);
    yield;
  }
  const to = rotatedName(log);
  if (random(8) === 0) {
    // The runtime did not open a new log, so the kubelet gives the file its old name again.
    disk.rename(log.name, to);
    world.note(`rename ${log.name} ${to} and back`);
    yield;
    disk.rename(to, log.name);
    log.rotated.pop();
    yield;
  } else yield* replaceFile(world, log, to);
}

/** Starts the container again, with another file, and another link that leads to it. */
function* restartContainer(world: World, log: Log): Generator<void> {
  const { disk } = world;
  const before = log.name;
  log.rotated.push(before);
  const n = log.generation + 1;
  const directory = parentOf(before);
  const name = log.style === 'docker' ? `${directory}/${n}-json.log` : `${directory}/${n}.log`;
  const file = disk.create(name);
  world.note(`create ${name}`);
  yield;
  log.name = name;
  log.archive = name;
  openFile(world, log, file);
  yield;
  yield* linkContainer(world, log, n);
}

export function* linkContainer(world: World, log: Log, n: number): Generator<void> {
  const pod = log.name.split('/')[1]!;
  const links: string[] = [];
  let target = log.name;
  if (log.style === 'docker') {
    target = `pods/${pod}/${n}.log`;
    world.disk.link(target, log.name);
    links.push(target);
    yield;
  }
  const link = `containers/${pod}-${n}.log`;
  world.disk.link(link, target);
  links.push(link);
  world.note(`link ${link} to ${target}`);
  log.links.set(log.name, links);
  yield;
}

/** Rotates like svlogd: with a processor, the file under the final name is what the processor wrote. */
function* rotateBySvlogd(world: World, log: Log): Generator<void> {
  const { disk } = world;
  const base = `${parentOf(log.name)}/@40000000${log.generation + 1000}`;
  log.rotated.push(`${base}.s`);
  yield* replaceFile(world, log, `${base}.${log.compresses ? 'u' : 's'}`);
  if (!log.compresses) return;
  const plain = disk.file(`${base}.u`)!;
  const target = disk.create(`${base}.t`);
  world.note(`process ${base}.u`);
  yield* packInto(world, log, target, plain);
  disk.rename(`${base}.t`, `${base}.s`);
  world.note(`rename ${base}.t .s`);
  yield;
  disk.unlink(`${base}.u`);
  world.note(`unlink ${base}.u`);
  yield;
}

/** Deletes the log. The writer continues in the deleted file for a while, and may open another one. */
function* deleteLog(world: World, log: Log): Generator<void> {
  const { disk, random } = world;
  disk.unlink(log.name);
  world.note(`unlink ${log.name}`);
  goesOut(world, log.file, true);
  yield;
  if (log.lingers) for (let n = random(12); n > 0; n--) yield;
  if (log.begun) wrote(world, log.file, log.begun.text.slice(0, -log.begun.rest.length || undefined));
  log.begun = undefined;
  log.isGone = true;
  const isForGood = random(4) === 0;
  for (let n = random(12); n > 0; n--) yield;
  if (isForGood) {
    world.note(`${log.name} is gone`);
    return;
  }
  const file = disk.create(log.name);
  world.note(`create ${log.name}`);
  yield;
  log.isGone = false;
  openFile(world, log, file);
  yield;
}

/** Fills the disk for a while; somebody may empty a log to make room. */
export function* diskFiller(world: World, logs: readonly Log[]): Generator<void> {
  const { random, disk } = world;
  while (!world.isEnding) {
    for (let n = random(80); n > 0; n--) yield;
    if (world.isEnding) return;
    world.isFull = true;
    world.note('the disk is full');
    for (let n = random(40); n > 0; n--) yield;
    const log = logs[random(logs.length)]!;
    if (random(3) === 0) {
      if (log.torn !== '') wrote(world, log.file, log.torn);
      log.torn = '';
      if (log.begun) lineOf(world, log.begun.text).mayLose = true;
      goesOut(world, log.file, false);
      disk.truncate(log.file);
      world.note(`truncate ${log.name}`);
      log.generation++;
      if (log.begun) {
        // The rest of a line that was begun is a line of its own.
        const { rest } = log.begun;
        disk.append(log.file, rest, newline);
        wrote(world, log.file, rest).mayLose = true;
        log.begun = undefined;
      }
      yield;
    }
    world.isFull = false;
    world.note('the disk has room');
  }
}

function rotateOnce(world: World, log: Log): Generator<void> {
  switch (log.style) {
    case 'links':
      return rotateByLink(world, log);
    case 'rewritten':
      return rewrite(world, log);
    case 'kubelet':
      return rotateByKubelet(world, log);
    case 'kubernetes':
      return world.random(3) === 0 ? restartContainer(world, log) : rotateByKubelet(world, log);
    case 'docker':
      return world.random(4) === 0 ? restartContainer(world, log) : rotateByRename(world, log);
    case 'svlogd':
      return rotateBySvlogd(world, log);
    case 'deleted':
      return deleteLog(world, log);
    case 'copyLeft':
      return rotateAndLeave(world, log);
    case 'renamecopy':
      return rotateByMovedCopy(world, log);
    case 'hurried':
      return rotateHurriedly(world, log);
    default:
      return log.style.toLowerCase().includes('copy') ? rotateByCopy(world, log) : rotateByRename(world, log);
  }
}

/** Whether a log is known only under the name for the copy: nothing relates that to copies in another directory. */
const isUnnamed = (world: World, { style, generation, file }: Log): boolean =>
  style === 'renamecopy' && generation === 1 && !writtenIn(world, file).lines.some(({ saved }) => saved > 0);

export function* rotator(world: World, log: Log): Generator<void> {
  for (;;) {
    for (let n = world.random(40); n > 0; n--) yield;
    if (log.file.length === 0 || log.isGone || isUnnamed(world, log)) continue;
    const oldest = suffixes(log).map((suffix) => `${log.archive}.${keptNumber}${suffix}`);
    if (!oldest.every((name) => mayDelete(world, name))) continue;
    if (world.isEnding) return;
    world.rotations++;
    world.busy++;
    yield* deleteOldest(world, log);
    yield* rotateOnce(world, log);
    world.busy--;
  }
}
