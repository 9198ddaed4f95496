import { chmodSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

/** Root may read everything, so these tests go on as nobody. */
function asNobody(root: string): void {
  if (process.geteuid?.() !== 0) return;
  chmodSync(root, 0o777);
  process.seteuid?.(65534);
  onTestFinished(() => process.seteuid?.(0));
}

const as = <T>(user: number, call: () => T): T => {
  const before = process.geteuid!();
  if (before !== user && process.getuid?.() === 0) process.seteuid!(user);
  try {
    return call();
  } finally {
    if (process.geteuid!() !== before) process.seteuid!(before);
  }
};
const owner = process.getuid?.() ?? 0;

test('denied at first, then granted: said once, then read from where it was', async () => {
  const tail = createTail({ paths: ['*.log'] });
  tail.create('a.log', numbered(0, 5).text);
  tail.create('b.log', numbered(50, 5).text);
  chmodSync(tail.path('a.log'), 0o000);
  asNobody(tail.root);
  await tail.scan();
  expect(await tail.scanned()).toEqual(numbered(50, 5).lines);
  const told = tail.logged.filter(({ level }) => level === 'warn');
  expect(told.map(({ msg, fields }) => [msg, fields?.path])).toEqual([
    ['file cannot be opened', tail.path('a.log')],
  ]);
  expect(tail.tailer.files()[0]!.state).toContain('EACCES');
  as(owner, () => chmodSync(tail.path('a.log'), 0o644));
  expect(await tail.scanned()).toEqual([...numbered(50, 5).lines, ...numbered(0, 5).lines]);
  expect(tail.tailer.files()[0]!.state).toBe('following');
});

test('denied at the first scan with startAt end: what was there stays passed over', async () => {
  const tail = createTail({ startAt: 'end' });
  tail.create('app.log', numbered(0, 5).text);
  chmodSync(tail.path('app.log'), 0o000);
  asNobody(tail.root);
  await tail.scan();
  as(owner, () => {
    tail.append('app.log', numbered(5, 5).text);
    chmodSync(tail.path('app.log'), 0o644);
  });
  expect(await tail.scanned()).toEqual(numbered(5, 5).lines);
});

test('denied while it is followed: the open file goes on', async () => {
  const tail = createTail();
  tail.create('app.log', numbered(0, 5).text);
  chmodSync(tail.path('app.log'), 0o644);
  asNobody(tail.root);
  await tail.scan();
  as(owner, () => {
    chmodSync(tail.path('app.log'), 0o000);
    tail.append('app.log', numbered(5, 5).text);
  });
  expect(await tail.scanned()).toEqual(numbered(0, 10).lines);
});

test.each([true, false])('the directory is closed and opened again (file open: %s)', async (isOpen) => {
  const tail = createTail({ paths: ['logs/*.log'] });
  tail.create('logs/app.log', numbered(0, 5).text);
  asNobody(tail.root);
  await tail.scan();
  if (!isOpen) await tail.restart();
  as(owner, () => {
    chmodSync(tail.path('logs'), 0o000);
  });
  await tail.scan();
  tail.clock.advance(60_000);
  await tail.scan();
  as(owner, () => {
    chmodSync(tail.path('logs'), 0o755);
    tail.append('logs/app.log', numbered(5, 5).text);
  });
  expect(await tail.settled()).toEqual(numbered(0, 10).lines);
  expect(tail.recorder.skips).toEqual([]);
});
