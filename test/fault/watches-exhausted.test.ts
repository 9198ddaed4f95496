import { EventEmitter } from 'node:events';
import { type FSWatcher, mkdirSync, type watch } from 'node:fs';
import { expect, test } from 'vitest';
import { createDoorbell } from '../../src/sources/logs/discovery/schedule.ts';
import { createTail } from '../tail.ts';

function fault(code: string): Error {
  return Object.assign(new Error(`${code}: no more watches`), { code });
}

const logOf = () => {
  const told: string[] = [];
  const log = { write: (level: string, msg: string) => void told.push(`${level} ${msg}`), named: () => log };
  return { log, told };
};
const warning = 'warn directories cannot be watched, and are only scanned';

test.each(['ENOSPC', 'EMFILE'])('%s at once: one warning, and the scan goes on without', (code) => {
  const { log, told } = logOf();
  let tries = 0;
  const refuse = () => {
    tries++;
    throw fault(code);
  };
  const doorbell = createDoorbell(log, () => {}, refuse as unknown as typeof watch);
  doorbell.watch(['/a', '/b', '/c']);
  doorbell.watch(['/a', '/b', '/c', '/d']);
  doorbell.close();
  expect(told).toEqual([warning]);
  expect(tries).toBe(1);
});

test('an error that comes later', () => {
  const { log, told } = logOf();
  const bells: EventEmitter[] = [];
  const hang = () => {
    const bell = Object.assign(new EventEmitter(), { close: () => {} });
    bells.push(bell);
    return bell as unknown as FSWatcher;
  };
  const doorbell = createDoorbell(log, () => {}, hang as unknown as typeof watch);
  doorbell.watch(['/a', '/b']);
  for (const bell of bells) bell.emit('error', fault('ENOSPC'));
  doorbell.watch(['/a', '/b']);
  expect(told).toEqual([warning]);
  expect(bells).toHaveLength(2);
});

test('a directory that is not there is no trouble; a bounded number is watched', () => {
  const { log, told } = logOf();
  const seen: string[] = [];
  const hang = (path: string) => {
    seen.push(path);
    if (path === '/gone') throw fault('ENOENT');
    return Object.assign(new EventEmitter(), { close: () => {} }) as unknown as FSWatcher;
  };
  const doorbell = createDoorbell(log, () => {}, hang as unknown as typeof watch);
  doorbell.watch(['/gone', ...Array.from({ length: 1000 }, (_, n) => `/d${n}`)]);
  expect(told).toEqual([]);
  expect(seen).toHaveLength(64);
});

test('rings for a write, a rename and in a directory that was made anew', async () => {
  const tail = createTail();
  const { log } = logOf();
  let rung = () => {};
  const doorbell = createDoorbell(log, () => rung());
  const ringsAfter = async (change: () => void) => {
    const ringing = new Promise<void>((resolve) => {
      rung = resolve;
    });
    change();
    await expect(ringing).resolves.toBeUndefined();
  };
  tail.create('logs/app.log', '');
  doorbell.watch([tail.path('logs')]);
  await ringsAfter(() => tail.append('logs/app.log', 'line\n'));
  await ringsAfter(() => tail.rename('logs/app.log', 'logs/app.log.1'));
  await ringsAfter(() => tail.remove('logs'));
  mkdirSync(tail.path('logs'));
  doorbell.watch([]);
  doorbell.watch([tail.path('logs')]);
  await ringsAfter(() => tail.create('logs/new.log', 'line\n'));
  doorbell.close();
});

test('one directory that is denied: the others are watched, and it is again once its rights are back', () => {
  const { log, told } = logOf();
  const seen: string[] = [];
  let isDenied = true;
  const hang = (path: string) => {
    if (path === '/denied' && isDenied) throw fault('EACCES');
    seen.push(path);
    return Object.assign(new EventEmitter(), { close: () => {} }) as unknown as FSWatcher;
  };
  const doorbell = createDoorbell(log, () => {}, hang as unknown as typeof watch);
  doorbell.watch(['/denied', '/b']);
  doorbell.watch(['/denied', '/b', '/c']);
  isDenied = false;
  doorbell.watch(['/denied', '/b', '/c']);
  expect(seen).toEqual(['/b', '/c', '/denied']);
  expect(told).toEqual(['warn directory cannot be watched, and is only scanned']);
});

test('a directory that was replaced by another one is watched under its path', async () => {
  const tail = createTail();
  const { log } = logOf();
  let rings = 0;
  let rung = () => {};
  const doorbell = createDoorbell(log, () => {
    rings++;
    rung();
  });
  tail.create('logs/app.log', '');
  doorbell.watch([tail.path('logs')]);
  tail.rename('logs', 'away');
  mkdirSync(tail.path('logs'));
  // This is what a scan does; the events of the rename are not those of the new file.
  doorbell.watch([tail.path('logs')]);
  await new Promise((resolve) => void setImmediate(resolve));
  const before = rings;
  const ringing = new Promise<void>((resolve) => {
    rung = resolve;
  });
  tail.create('logs/new.log', 'line\n');
  await ringing;
  expect(rings).toBeGreaterThan(before);
  doorbell.close();
});
