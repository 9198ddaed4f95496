import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createState } from '../../src/agent/state/state.ts';
import type { Durable } from '../../src/core/ports.ts';
import { manualClock } from '../clock.ts';
import { afterRestart, errors, keptLog, loadedBed, stateBed, temporaryDirectory } from './state/bed.ts';
import { namedCounters, notedText } from './state/values.ts';

const picky: Durable = {
  name: 'logs',
  freeze: () => Buffer.from('good'),
  restore(section) {
    if (Buffer.from(section).toString() !== 'good') throw new Error('not good');
  },
};

test('a section that its durable cannot read: no start on half a state; the next start goes on without it', async () => {
  const directory = temporaryDirectory();
  const before = await loadedBed({ directory, durables: [notedText('logs', 'bad')] });
  before.values.add('n', 3);
  await before.state.commit();
  await before.state.close();

  const { state } = stateBed({ directory, durables: [picky] });
  await expect(state.load()).rejects.toMatchObject({
    code: 'state_unreadable',
    message: /section "logs" cannot be read/,
  });
  expect(readdirSync(directory)).toEqual([expect.stringContaining('snapshot-a.corrupt-')]);
  expect(await afterRestart({ directory, durables: [picky] })).toEqual({});
});

test('a table that the values cannot read: the snapshot before it is taken', async () => {
  const directory = temporaryDirectory();
  const before = await loadedBed({ directory });
  before.values.add('old', 1);
  await before.state.commit();
  before.values.add('new', 1);
  await before.state.commit();
  await before.state.close();

  const values = namedCounters();
  const restore = values.restore;
  values.restore = (table, numbers) => {
    if (Buffer.from(table).includes('new')) throw new Error('unreadable table');
    restore(table, numbers);
  };
  const { log, entries } = keptLog();
  const state = createState({ directory, fsync: false }, { values, durables: [], clock: manualClock(), log });
  expect(await state.load()).toEqual({ sequence: 1 });
  await state.commit();
  await state.close();
  expect(values.shown()).toEqual({ old: 1 });
  expect(errors(entries)).toHaveLength(1);
});

test('a section whose component is not there now is kept for when it is back', async () => {
  const directory = temporaryDirectory();
  const first = await loadedBed({
    directory,
    durables: [notedText('push', 'baselines'), notedText('logs', 'a')],
  });
  first.values.add('n', 1);
  await first.state.commit();
  await first.state.close();
  const without = await loadedBed({ directory, durables: [notedText('logs')] });
  without.values.add('n', 1);
  await without.state.commit();
  await without.state.close();
  const back = notedText('push');
  await loadedBed({ directory, durables: [back] });
  expect(back.text).toBe('baselines');
});

test('two durables of one name are a mistake that shows at once', () => {
  const make = () => stateBed({ directory: '/nowhere', durables: [notedText('logs'), notedText('logs')] });
  expect(make).toThrow('duplicate section name, got "logs"');
});
