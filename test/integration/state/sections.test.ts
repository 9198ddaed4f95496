import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createState, isUnreadable } from '../../../src/agent/state/state.ts';
import { AgentError } from '../../../src/core/errors.ts';
import type { Durable } from '../../../src/core/ports.ts';
import { manualClock } from '../../clock.ts';
import { errors, keptLog, loadedBed, stateBed, temporaryDirectory } from '../../fault/state/bed.ts';
import { faultyFs } from '../../fault/state/faulty-fs.ts';
import { namedCounters, notedText } from '../../fault/state/values.ts';

const refusing: Durable = {
  name: 'push',
  freeze: () => Buffer.from('begun anew'),
  restore() {
    throw new Error('not mine');
  },
};

/** A directory whose only snapshot has a section `push` with this text. */
async function directoryWith(text: string): Promise<string> {
  const directory = temporaryDirectory();
  const { state } = await loadedBed({ directory, durables: [notedText('push', text)] });
  await state.commit();
  await state.close();
  return directory;
}

/** The section `push` in a directory. */
async function pushIn(directory: string): Promise<string> {
  const owner = notedText('push', 'nothing there');
  const { state } = await loadedBed({ directory, durables: [owner] });
  await state.close();
  return owner.text;
}

test('an owner that comes after the start gets its section, and what it holds then is kept', async () => {
  const directory = await directoryWith('baselines');
  const { state } = await loadedBed({ directory });
  const section = state.section('push');
  expect(state.section('push')).toBe(section);
  await state.commit();
  const owner = notedText('push');
  section.assign(owner);
  expect(owner.text).toBe('baselines');
  owner.text = 'newer';
  await state.commit();
  await state.close();
  expect(await pushIn(directory)).toBe('newer');
});

test('a second owner of a section takes it over with what the first one held', async () => {
  const directory = await directoryWith('baselines');
  const { state } = await loadedBed({ directory });
  const section = state.section('push');
  const [first, second] = [notedText('push'), notedText('push')];
  section.assign(first);
  first.text = 'of the first';
  section.assign(second);
  expect(second.text).toBe('of the first');
  first.text = 'too late';
  await state.commit();
  await state.close();
  expect(await pushIn(directory)).toBe('of the first');
});

test('an owner of a section that the snapshot lacks begins with nothing, early or late', async () => {
  const directory = await directoryWith('baselines');
  const { state, entries } = await loadedBed({ directory, durables: [{ ...refusing, name: 'roles' }] });
  state.section('probes').assign({ ...refusing, name: 'probes' });
  expect(errors(entries)).toEqual([]);
});

test('during the start, a section that its owner cannot read is an error that names the file', async () => {
  const directory = await directoryWith('baselines');
  const { state } = await loadedBed({ directory });
  expect(() => state.section('push').assign(refusing)).toThrow(
    `${directory}/snapshot-a: section "push" cannot be read; the file is set aside`,
  );
  expect(await state.refuse(new Error('not mine'))).toBe(`${directory}/snapshot-a`);
  expect(readdirSync(directory)).toEqual([expect.stringContaining('snapshot-a.corrupt-')]);
  await expect(state.commit()).rejects.toMatchObject({ code: 'internal' });
});

test('after the start, such an owner begins with nothing, and the log says so', async () => {
  const directory = await directoryWith('baselines');
  const { state, entries } = await loadedBed({ directory });
  state.started();
  state.section('push').assign(refusing);
  expect(errors(entries)).toMatchObject([{ fields: { section: 'push' } }]);
  await state.commit();
  await state.close();
  expect(await pushIn(directory)).toBe('begun anew');
});

test('where nothing was restored there is nothing to set aside', async () => {
  const directory = temporaryDirectory();
  const { state, entries } = await loadedBed({ directory });
  expect(await state.refuse(new Error('not mine'))).toBeUndefined();
  expect(readdirSync(directory)).toEqual([]);
  expect(errors(entries)).toEqual([]);
});

test('where no file was restored, the error names the directory', async () => {
  const { state } = await loadedBed({ directory: '/proc/no-such-directory' });
  const first = notedText('push', 'held');
  const section = state.section('push');
  section.assign(first);
  expect(() => section.assign(refusing)).toThrow('/proc/no-such-directory: section "push" cannot be read');
});

test('a second agent on the directory does not start', async () => {
  const directory = temporaryDirectory();
  await loadedBed({ directory });
  await expect(stateBed({ directory }).state.load()).rejects.toMatchObject({ code: 'state_locked' });
});

test('a snapshot whose table cannot be read, and that cannot be set aside either: degraded, and without the lock', async () => {
  const directory = await directoryWith('baselines');
  const fs = faultyFs();
  fs.plan = (operation) => (operation === 'rename' ? 'EROFS' : undefined);
  const values = namedCounters();
  values.restore = () => {
    throw new Error('unreadable table');
  };
  const { log } = keptLog();
  const state = createState({ directory, fsync: false }, { values, clock: manualClock(), log, fs });
  expect(await state.load()).toEqual({ sequence: 0 });
  expect(state.status().degraded).toBe('no_directory');
  const { state: other } = await loadedBed({ directory });
  expect(other.status().degraded).toBeUndefined();
});

test.each<[string, unknown, boolean]>([
  ['of a section', new AgentError('state_unreadable', { where: 'a', what: 'b' }), true],
  ['of another kind', new AgentError('state_locked', { where: 'a', what: 'b' }), false],
  ['of something else', { code: 'state_unreadable' }, false],
])('an error %s: unreadable is %s', (_, thrown, expected) => {
  expect(isUnreadable(thrown)).toBe(expected);
});
