import { expect, test } from 'vitest';
import { watchFaults } from '../log-faults.ts';
import { createTail } from '../tail.ts';

test('a log that is deleted and not written again is gone; one that is written again is not', async () => {
  const tail = createTail({ paths: ['app.log'] });
  const faults = watchFaults(tail, ['app.log']);
  tail.create('app.log', 'a\n');
  expect(await faults.round()).toEqual([]);
  tail.remove('app.log');
  // A rotation may be under way.
  expect(await faults.round()).toEqual([]);
  const found = { kind: 'gone', path: tail.path('app.log'), services: ['history'] };
  expect(await faults.round()).toEqual([{ ...found, sinceMs: 1_767_225_640_000 }]);
  expect(await faults.round()).toEqual([{ ...found, sinceMs: 1_767_225_640_000 }]);
  tail.create('app.log', 'b\n');
  expect(await faults.round()).toEqual([]);
});

test('of a pattern with wildcards, the last file counts', async () => {
  const tail = createTail({ paths: ['app-*.log'] });
  const faults = watchFaults(tail, ['app-*.log']);
  tail.create('app-1.log', 'a\n');
  tail.create('app-2.log', 'b\n');
  await faults.round();
  tail.remove('app-1.log');
  await faults.round();
  expect(await faults.round()).toEqual([]);
  tail.remove('app-2.log');
  await faults.round();
  expect(await faults.round()).toMatchObject([{ kind: 'gone', path: tail.path('app-*.log') }]);
});

test('a log that is gone when the agent starts is gone, too', async () => {
  const tail = createTail({ paths: ['app.log'] });
  const faults = watchFaults(tail, ['app.log']);
  await faults.round();
  expect(await faults.round()).toMatchObject([{ kind: 'gone', path: tail.path('app.log') }]);
});

test('one of two logs that was never there is not gone while the other one is there', async () => {
  const tail = createTail({ paths: ['app.log', 'current'] });
  const faults = watchFaults(tail, ['app.log', 'current']);
  tail.create('app.log', 'a\n');
  await faults.round();
  expect(await faults.round()).toEqual([]);
});
