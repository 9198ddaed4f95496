import { expect, test } from 'vitest';
import { loadedBed, stateBed, temporaryDirectory } from './state/bed.ts';
import { holderStarter } from './state/holder-process.ts';

test('a second agent in one process is refused with the pid of the first, which goes on', async () => {
  const directory = temporaryDirectory();
  const first = await loadedBed({ directory });
  const second = stateBed({ directory });
  await expect(second.state.load()).rejects.toMatchObject({
    code: 'state_locked',
    message: expect.stringContaining(`(pid ${process.pid})`),
  });
  first.values.add('n', 1);
  expect(await first.state.commit()).toEqual({ sequence: 1 });
  await first.state.close();
  expect(await second.state.load()).toEqual({ sequence: 1 });
});

test('a holder in another process keeps the directory even while it is stopped', async () => {
  const directory = temporaryDirectory();
  const start = await holderStarter();
  const holder = start(directory);
  expect(await holder.line()).toBe('locked');
  holder.child.kill('SIGSTOP');
  const { state } = stateBed({ directory });
  await expect(state.load()).rejects.toMatchObject({
    code: 'state_locked',
    message: expect.stringContaining(`(pid ${holder.pid})`),
  });
  await holder.kill();
  await state.load();
  expect(state.status().degraded).toBeUndefined();
});
