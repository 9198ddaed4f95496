import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type JournalLine, openJournal, unfinishedRun } from '../../../src/agent/recovery/journal.ts';
import { newFolder } from '../../folder.ts';

const subject = { target: { store: 'main' } };
const started = (atMs: number, over = {}): JournalLine => ({
  event: 'started',
  atMs,
  procedure: 'failback',
  subject,
  ...over,
});
const command = (event: 'command_started' | 'command_ended', atMs: number, word: string, fault?: string) =>
  ({ event, atMs, step: 'restore', command: [word], fault }) as JournalLine;
const stepDone = (atMs: number, step: string, notProved?: readonly string[]): JournalLine => ({
  event: 'step_done',
  atMs,
  step,
  notProved,
});

function runOf(lines: readonly (JournalLine | string)[]) {
  const path = join(newFolder(), 'runs', 'a.jsonl');
  const journal = openJournal(path);
  for (const line of lines) {
    if (typeof line === 'string') appendFileSync(path, line);
    else journal.write(line);
  }
  journal.close();
  return unfinishedRun(path);
}

const none = {
  subject,
  chosen: undefined,
  notProved: [],
  hasStopped: false,
  succeeded: [],
  done: new Set(),
  begun: new Set(),
};

test.each([
  ['nothing', [], undefined],
  [
    'a start alone',
    [started(5, { chosen: { backup: '/b' }, before: ['stop'] })],
    { ...none, chosen: { backup: '/b' }, startMs: 5, lastMs: 5, begun: new Set(['stop']) },
  ],
  [
    'a run that was completed',
    [started(5), stepDone(6, 'a'), { event: 'done', atMs: 7, notProved: [] }],
    undefined,
  ],
  [
    'a run after one that was completed',
    [started(5), { event: 'done', atMs: 7, notProved: [] }, started(8)],
    { ...none, startMs: 8, lastMs: 8 },
  ],
  ['lines before any start', [stepDone(4, 'a'), started(5)], { ...none, startMs: 5, lastMs: 5 }],
  [
    'a command during which it ended',
    [
      started(5),
      command('command_started', 6, 'a'),
      command('command_ended', 7, 'a'),
      command('command_started', 8, 'b'),
    ],
    {
      ...none,
      startMs: 5,
      lastMs: 8,
      begun: new Set(['restore']),
      succeeded: [['a']],
      interrupted: { command: ['b'], atMs: 8 },
    },
  ],
  [
    'a command that failed',
    [started(5), command('command_started', 6, 'a'), command('command_ended', 7, 'a', 'exit status 1')],
    { ...none, startMs: 5, lastMs: 7, begun: new Set(['restore']) },
  ],
  [
    'a step that is done begins the next one without commands that succeeded',
    [
      started(5),
      command('command_started', 6, 'a'),
      command('command_ended', 7, 'a'),
      stepDone(8, 'restore', ['schema']),
      stepDone(9, 'verify'),
    ],
    {
      ...none,
      startMs: 5,
      lastMs: 9,
      begun: new Set(['restore']),
      done: new Set(['restore', 'verify']),
      notProved: ['schema'],
    },
  ],
  [
    'a run that stopped does its step again as a whole',
    [
      started(5),
      command('command_started', 6, 'a'),
      command('command_ended', 7, 'a'),
      { event: 'stopped', atMs: 8, msg: 'no' },
    ],
    { ...none, startMs: 5, lastMs: 8, begun: new Set(['restore']), hasStopped: true },
  ],
  [
    'a step by hand has begun, one with commands only with the first of them',
    [
      started(5),
      { event: 'step_started', atMs: 6, step: 'a' },
      { event: 'step_started', atMs: 7, step: 'b', byHand: true },
    ],
    { ...none, startMs: 5, lastMs: 7, begun: new Set(['b']) },
  ],
] as [string, JournalLine[], unknown][])('%s', (_, lines, run) => expect(runOf(lines)).toEqual(run));

test('a line that was cut off ends before the next one', () => {
  const path = join(newFolder(), 'a.jsonl');
  writeFileSync(path, `${JSON.stringify(started(5))}\n{"event":"step_do`);
  const journal = openJournal(path);
  journal.write(stepDone(6, 'a'));
  journal.write(stepDone(7, 'b'));
  journal.close();
  expect(unfinishedRun(path)?.done).toEqual(new Set(['a', 'b']));
  expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(5);
});

test('a journal that is deleted meanwhile is written again, with what was in it', () => {
  const folder = join(newFolder(), 'runs');
  const path = join(folder, 'a.jsonl');
  const journal = openJournal(path);
  journal.write(started(5));
  journal.write(stepDone(6, 'a'));
  const text = readFileSync(path, 'utf8');
  rmSync(folder, { recursive: true });
  journal.write(stepDone(7, 'b'));
  journal.close();
  expect(readFileSync(path, 'utf8').startsWith(text)).toBe(true);
  expect(unfinishedRun(path)?.done).toEqual(new Set(['a', 'b']));
});

test('a journal that cannot be read is an error with its path', () => {
  const path = join(newFolder(), 'a.jsonl');
  mkdirSync(path);
  for (const use of [() => unfinishedRun(path), () => openJournal(path)])
    expect(use).toThrow(
      expect.objectContaining({ code: 'internal', message: expect.stringContaining(path) }),
    );
});
