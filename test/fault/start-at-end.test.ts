import { expect, test } from 'vitest';
import { createTail, logsOptions, numbered } from '../tail.ts';

test('what is there is passed over and counted; what is written from now on counts', async () => {
  const tail = createTail({ paths: ['*.log'], startAt: 'end' });
  tail.create('a.log', numbered(0, 100).text);
  tail.create('empty.log', '');
  await tail.tailer.discover();
  tail.append('a.log', numbered(100, 5).text);
  tail.append('empty.log', numbered(200, 5).text);
  expect(await tail.scanned()).toEqual([...numbered(100, 5).lines, ...numbered(200, 5).lines]);
  expect(tail.recorder.skips).toEqual([{ reason: 'start_at_end', bytes: numbered(0, 100).text.length }]);
});

test('an unfinished line at the end is not passed over', async () => {
  const tail = createTail({ startAt: 'end' });
  tail.create('app.log', `${numbered(0, 100).text}begun, `);
  await tail.scan();
  tail.append('app.log', 'done\n');
  expect(await tail.scanned()).toEqual(['begun, done']);
});

test('files that appear later are read from their beginning', async () => {
  const tail = createTail({ paths: ['*.log', 'later/*.log'], startAt: 'end' });
  await tail.scan();
  tail.create('new.log', numbered(0, 5).text);
  tail.create('later/new.log', numbered(5, 5).text);
  expect((await tail.scanned()).toSorted()).toEqual(numbered(0, 10).lines);
});

test('and so are those that appear while the agent is down', async () => {
  const tail = createTail({ paths: ['*.log'], startAt: 'end' });
  tail.create('a.log', numbered(0, 5).text);
  await tail.scan();
  await tail.restart();
  tail.append('a.log', numbered(5, 5).text);
  tail.create('b.log', numbered(50, 5).text);
  expect(await tail.scanned()).toEqual([...numbered(5, 5).lines, ...numbered(50, 5).lines]);
});

test('a pattern that is new to the agent starts at the end, a known one goes on', async () => {
  const tail = createTail({ paths: ['a.log'], startAt: 'end' });
  tail.create('a.log', numbered(0, 5).text);
  tail.create('b.log', numbered(50, 5).text);
  await tail.scan();
  tail.append('a.log', numbered(5, 5).text);
  await tail.restart({ paths: ['a.log', 'b.log'], startAt: 'end' });
  await tail.scan();
  tail.append('b.log', numbered(55, 5).text);
  await tail.scan();
  await tail.restart({ paths: ['b.log'], startAt: 'end' });
  tail.append('a.log', numbered(10, 5).text);
  await tail.scan();
  await tail.restart({ paths: ['a.log', 'b.log'], startAt: 'end' });
  expect(await tail.scanned()).toEqual([
    ...numbered(5, 5).lines,
    ...numbered(55, 5).lines,
    ...numbered(10, 5).lines,
  ]);
});

test('the rotated files of a log are passed over, too, and never read later', async () => {
  const tail = createTail({ paths: ['app.log*'], startAt: 'end' });
  tail.create('app.log.2', numbered(0, 5).text);
  tail.create('app.log.1', numbered(5, 5).text);
  tail.create('app.log', numbered(10, 5).text);
  await tail.scan();
  tail.rename('app.log.2', 'app.log.3');
  tail.rename('app.log.1', 'app.log.2');
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(15, 5).text);
  await tail.settle();
  await tail.restart();
  expect(await tail.settled()).toEqual(numbered(15, 5).lines);
});

test('a service that is not selected keeps its positions, and goes on when it is', async () => {
  const services = (root: string) => ({
    history: logsOptions({ paths: [`${root}/h.log`], startAt: 'end' }),
    matching: logsOptions({ paths: [`${root}/m.log`], startAt: 'end' }),
  });
  const tail = createTail({ services });
  tail.create('h.log', numbered(0, 5).text);
  tail.create('m.log', numbered(50, 5).text);
  await tail.scan();
  await tail.restart({ selected: ['history'] });
  tail.append('h.log', numbered(5, 1).text);
  tail.append('m.log', numbered(55, 1).text);
  await tail.scan();
  expect(tail.taken()).toEqual(numbered(5, 1).lines);
  await tail.restart();
  await tail.restart({ selected: undefined });
  await tail.scan();
  expect(tail.taken()).toEqual(numbered(55, 1).lines);
});
