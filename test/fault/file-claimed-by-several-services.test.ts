import { linkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createRecorder, createTail, logsOptions, numbered } from '../tail.ts';

const services = (root: string) => ({
  matching: logsOptions({ paths: [`${root}/all.log`, `${root}/m.log`] }),
  history: logsOptions({ paths: [`${root}/a*.log`, `${root}/h.log`] }),
  worker: logsOptions({ paths: [`${root}/*.log`], exclude: ['h.log', 'm.log'] }),
});

test('read once; claimants in the order of the configuration, selected or not', async () => {
  const tail = createTail({ services, selected: ['history', 'matching'] });
  tail.create('all.log', numbered(0, 5).text);
  tail.create('h.log', numbered(5, 1).text);
  tail.create('other.log', numbered(90, 1).text);
  linkSync(tail.path('all.log'), tail.path('all-linked.log'));
  await tail.scan();
  const claimants = tail.recorder.files.map(({ path, claimants }) => [
    path.slice(tail.root.length + 1),
    claimants,
  ]);
  expect(Object.fromEntries(claimants)).toEqual({
    'all.log': ['matching', 'history', 'worker'],
    'h.log': ['history'],
  });
  expect(tail.recorder.lines).toEqual(numbered(0, 6).lines);
});

test('the lag is its service\'s, or "unknown"', async () => {
  const tail = createTail({ services });
  tail.create('all.log', 'ab');
  tail.create('h.log', 'line\nabc');
  tail.create('m.log', 'abcd');
  await tail.scan();
  expect(Object.fromEntries(tail.lags)).toEqual({ matching: 4, history: 3, worker: 0, unknown: 2 });
  tail.append('all.log', '\n');
  await tail.scan();
  expect(tail.lags.get('unknown')).toBe(0);
});

test('reloaded: a file goes on under its new claimants, a sink with what the one before it held', async () => {
  const tail = createTail({ services });
  tail.create('h.log', numbered(0, 5).text);
  tail.create('m.log', numbered(50, 5).text);
  await tail.scan();
  const second = createRecorder();
  const next = {
    history: logsOptions({ paths: [tail.path('h.log')] }),
    frontend: logsOptions({ paths: [tail.path('h.log')] }),
  };
  await tail.tailer.prepare({ services: next, selected: new Set(['frontend']) })(() => second.open);
  tail.append('h.log', numbered(5, 5).text);
  tail.append('m.log', numbered(55, 5).text);
  await tail.scan();
  expect(second.files.map(({ claimants }) => claimants)).toEqual([['history', 'frontend']]);
  expect(second.lines).toEqual(numbered(5, 5).lines);
  const third = createRecorder();
  await tail.tailer.prepare({ services: services(tail.root), selected: new Set(['matching']) })(
    () => third.open,
  );
  await tail.scan();
  expect(third.lines).toEqual(numbered(55, 5).lines);
});

test('what a sink holds is handed on: to the next start, and to the copy of a truncated file', async () => {
  const states: (string | undefined)[] = [];
  const recorder = createRecorder();
  const tail = createTail({
    open: (file) => {
      states.push(file.state && Buffer.from(file.state).toString());
      return { ...recorder.open(file), state: () => Buffer.from(`state of ${file.path.slice(-7)}`) };
    },
  });
  tail.create('app.log', numbered(0, 5).text);
  await tail.scan();
  await tail.restart();
  tail.append('app.log', numbered(5, 5).text);
  tail.copyTruncate('app.log', 'app.log.1');
  tail.append('app.log', numbered(10, 1).text);
  await tail.scan();
  expect(states).toEqual([undefined, 'state of app.log', undefined]);
  expect(recorder.lines).toEqual(numbered(0, 11).lines);
});
