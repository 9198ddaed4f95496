import { expect, test } from 'vitest';
import type { View } from '../../src/core/model.ts';
import { aggregator, count, inMemory, pushedView, startPush } from '../push.ts';
import { until } from '../until.ts';

test('stopped with data pending: a last flush brings it', async () => {
  const target = await aggregator();
  const rig = await startPush({ hostPort: `127.0.0.1:${target.port}`, tagFormat: 'none' });
  rig.show([count('a', 5)]);
  await rig.flush();
  rig.show([count('a', 7)]);
  await rig.stop();
  await until('both arrive', () => target.lines().length === 2);
  expect(target.lines()).toEqual(['a:5|c', 'a:2|c']);
  expect(rig.clock.waiting).toBe(0);
  rig.clock.advance(10_000);
  expect(rig.delivered()).toBe(2);
});

test('stopped while a flush is under way: it ends first, and nothing is sent twice', async () => {
  const sent: string[] = [];
  const views: ((view: View) => void)[] = [];
  const rig = await startPush(
    { tagFormat: 'none' },
    {
      open: inMemory((datagram) => void sent.push(datagram)),
      gather: () => new Promise((resolve) => views.push(resolve)),
    },
  );
  rig.clock.advance(1000);
  expect(views).toHaveLength(1);
  const stopping = rig.stop();
  views[0]!(pushedView([count('a', 5)]));
  await until('the last flush gathers', () => views.length === 2);
  views[1]!(pushedView([count('a', 6)]));
  await stopping;
  expect(sent).toEqual(['a:5|c', 'a:1|c']);
});

test('stopped while nobody answers: it is over after 3 s', async () => {
  const rig = await startPush({}, { gather: () => new Promise(() => {}) });
  const stopping = rig.stop();
  await until('the last flush is under way', () => rig.clock.waiting === 1);
  rig.clock.advance(3000);
  await stopping;
});

test('killed at the commit: no packet had left, and the next start sends what this one would have', async () => {
  const sent: string[] = [];
  const open = inMemory((datagram) => void sent.push(datagram));
  const first = await startPush({ tagFormat: 'none' }, { open });
  first.show([count('a', 5)]);
  await first.flush();
  const section = first.committed()!;
  let atCommit = -1;
  let endCommit = () => {};
  const killed = await startPush(
    { tagFormat: 'none' },
    {
      open,
      section,
      commit: () => {
        atCommit = sent.length;
        return new Promise<void>((resolve) => {
          endCommit = resolve;
        });
      },
    },
  );
  killed.show([count('a', 8)]);
  killed.clock.advance(1000);
  await until('the commit is under way', () => atCommit >= 0);
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toEqual(['a:5|c']);
  const next = await startPush({ tagFormat: 'none' }, { open, section });
  next.show([count('a', 9)]);
  await next.flush();
  expect(sent).toEqual(['a:5|c', 'a:4|c']);
  endCommit();
});

test('killed between commit and packets: that delta is lost, none comes twice', async () => {
  const sent: string[] = [];
  const first = await startPush({ tagFormat: 'none' }, { open: inMemory(() => {}) });
  first.show([count('a', 5)]);
  await first.flush();
  const open = inMemory((datagram) => void sent.push(datagram));
  const next = await startPush({ tagFormat: 'none' }, { open, section: first.committed()! });
  next.show([count('a', 7)]);
  await next.flush();
  expect(sent).toEqual(['a:2|c']);
});

test('a commit that rejects: nothing leaves, all of it is in the next delta', async () => {
  const sent: string[] = [];
  let broken = true;
  const commit = async () => {
    if (broken) throw new Error('the state is closed');
  };
  const rig = await startPush({ tagFormat: 'none' }, { open: inMemory((d) => void sent.push(d)), commit });
  rig.show([count('a', 5)]);
  await rig.flush();
  expect(rig.failures).toEqual(['no_view']);
  broken = false;
  rig.show([count('a', 6)]);
  await rig.flush();
  expect(sent).toEqual(['a:6|c']);
});
