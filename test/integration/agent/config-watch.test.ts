import fs, { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { digestOf, unreadDigest } from '../../../src/agent/config/environment.ts';
import { watchConfiguration } from '../../../src/agent/reload.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { manualClock } from '../../clock.ts';
import { newFolder } from '../../folder.ts';
import { atTestEnd } from '../../test-end.ts';
import { until } from '../../until.ts';

const place = newFolder(afterAll);

/** Resolves at the next call of the watch's callback. */
function ringing() {
  let ring = () => {};
  return { call: () => ring(), next: () => new Promise<void>((resolve) => (ring = resolve)) };
}

/** Watches a file that has had this text, with a clock that the test advances. */
function watching(name: string, text: string, digest?: string) {
  const file = join(place, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  const clock = manualClock();
  let rings = 0;
  atTestEnd(watchConfiguration({ [file]: digest }, clock, () => rings++));
  return { file, clock, rings: () => rings };
}

test('a file renamed over', async () => {
  const file = join(place, 'agent.yaml');
  writeFileSync(file, 'roles: []\n');
  const bell = ringing();
  atTestEnd(watchConfiguration({ [file]: undefined }, systemClock, bell.call));
  const rung = bell.next();
  writeFileSync(`${file}.new`, 'roles: [frontend]\n');
  renameSync(`${file}.new`, file);
  await expect(rung).resolves.toBeUndefined();
});

test('a mounted ConfigMap whose ..data link is swung round', async () => {
  const mount = join(place, 'mount');
  for (const version of ['1', '2']) {
    mkdirSync(join(mount, `..${version}`), { recursive: true });
    writeFileSync(join(mount, `..${version}`, 'agent.yaml'), `instance: v${version}\n`);
  }
  symlinkSync('..1', join(mount, '..data'));
  symlinkSync('..data/agent.yaml', join(mount, 'agent.yaml'));
  const bell = ringing();
  atTestEnd(watchConfiguration({ [join(mount, 'agent.yaml')]: undefined }, systemClock, bell.call));
  const rung = bell.next();
  symlinkSync('..2', join(mount, '..data_tmp'));
  renameSync(join(mount, '..data_tmp'), join(mount, '..data'));
  await expect(rung).resolves.toBeUndefined();
});

test('a mount that rings no bell is looked at all the same, and an untouched file rings nothing', () => {
  const { file, clock, rings } = watching('silent.yaml', 'roles: []\n');
  clock.advance(60_000);
  expect(rings()).toBe(0);
  writeFileSync(file, 'roles: [worker]\n');
  clock.advance(60_000);
  expect(rings()).toBe(1);
  rmSync(file);
  clock.advance(60_000);
  expect(rings()).toBe(2);
});

test('a change between the loading and the watch is not missed', () => {
  const loaded = digestOf(Buffer.from('roles: []\n'));
  const { clock, rings } = watching('early.yaml', 'roles: [worker]\n', loaded);
  clock.advance(1_000);
  expect(rings()).toBe(1);
  clock.advance(60_000);
  expect(rings()).toBe(1);
});

test('a directory that is removed and made again', () => {
  const { file, clock, rings } = watching('again/agent.yaml', 'roles: []\n');
  rmSync(dirname(file), { recursive: true });
  mkdirSync(dirname(file));
  writeFileSync(file, 'roles: [worker]\n');
  clock.advance(60_000);
  expect(rings()).toBe(1);
});

test('a watch that is stopped by its own call compares no more', () => {
  const file = join(place, 'once.yaml');
  writeFileSync(file, 'a: 1\n');
  const clock = manualClock();
  const stop = watchConfiguration({ [file]: digestOf(Buffer.from('a: 0\n')) }, clock, () => stop());
  clock.advance(1_000);
  expect(clock.waiting).toBe(0);
});

test('a file that could not be read when it was loaded, and can be before the watch begins', () => {
  const { clock, rings } = watching('late.yaml', 'a: 1\n', unreadDigest);
  clock.advance(1_000);
  expect(rings()).toBe(1);
});

test('logs beside the file that are written all the time start no comparison', async () => {
  const folder = join(place, 'beside');
  mkdirSync(folder);
  const file = join(folder, 'agent.yaml');
  writeFileSync(file, 'a: 1\n');
  const clock = manualClock();
  let begun = 0;
  const after: typeof clock.after = (delayMs, call) => {
    begun++;
    return clock.after(delayMs, call);
  };
  atTestEnd(watchConfiguration({ [file]: undefined }, { ...clock, after }, () => {}));
  const atFirst = begun;
  // Two in turn: equal events that follow each other are one.
  for (let n = 0; n < 100; n++) appendFileSync(join(folder, `service-${n % 2}.log`), 'line\n');
  // Events of a directory come in their order.
  writeFileSync(file, 'a: 2\n');
  await until('the event of the file itself came', () => begun > atFirst);
  // Writing a file anew empties it first, which may be an event of its own.
  expect(begun - atFirst).toBeLessThanOrEqual(2);
});

test('a file that cannot be read because no descriptor is left has not changed; a change meanwhile is seen after that', () => {
  const { file, clock, rings } = watching('exhausted.yaml', 'a: 1\n');
  const restore = () => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  };
  onTestFinished(restore);
  vi.spyOn(fs, 'readFileSync').mockImplementation(() => {
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
  });
  syncBuiltinESMExports();
  clock.advance(60_000);
  expect(rings()).toBe(0);
  writeFileSync(file, 'a: 2\n');
  restore();
  clock.advance(60_000);
  expect(rings()).toBe(1);
});
