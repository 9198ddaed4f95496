import { copyFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createRecorder, createTail, numbered, type Recorder } from '../tail.ts';

const banner = '='.repeat(1600);

test('a generation of which only the banner was read goes on in its own log', async () => {
  const recorders = new Map<string, Recorder>();
  const tail = createTail({
    paths: ['app.log', 'other.log'],
    open: (file) => {
      const recorder = recorders.get(file.path) ?? createRecorder();
      recorders.set(file.path, recorder);
      return recorder.open(file);
    },
  });
  const linesOf = (name: string) => recorders.get(tail.path(name))?.lines;
  tail.create('app.log', `${banner}\n`);
  await tail.scan();
  tail.append('app.log', numbered(0, 50).text);
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  tail.create('other.log', `${banner}\n${numbered(100, 1).text}`);
  await tail.restart();
  tail.remove('app.log');
  await tail.settle();
  expect(linesOf('app.log')).toEqual([banner, ...numbered(0, 50).lines]);
  expect(linesOf('other.log')).toEqual([banner, ...numbered(100, 1).lines]);
});
