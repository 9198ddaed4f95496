import { expect, test } from 'vitest';
import { append, type Content, learn, noChain } from '../../../src/sources/logs/files/chain.ts';
import type { Answer, FileFacts, World } from '../../../src/sources/logs/files/decision.ts';
import { type Generation, newGeneration, newPlace } from '../../../src/sources/logs/files/generation.ts';
import { match } from '../../../src/sources/logs/files/match.ts';

const group = '/logs/app.log';
const counted = Buffer.from(`${'y'.repeat(99)}\n`);
const chain = append(noChain, counted, 0, counted.length);

const generation = (number: number, more: Partial<Generation> = {}): Generation => ({
  ...newGeneration({ number, group, home: group, claimants: [], chain, size: counted.length }),
  ...more,
});
const followed = (number: number, ino: bigint, more: Partial<Generation> = {}): Generation => {
  const place = newPlace({
    ...{ dev: 1n, ino, real: group, at: group, isGzip: false, size: counted.length, mtimeNs: 1n },
    state: 'live',
  });
  return generation(number, { place, status: 'followed', ...more });
};
const lost = (number: number, size: number): Generation =>
  generation(number, {
    ...{ size, status: 'lost', lostBy: 'vanished' },
    lost: { key: '1:99', dev: 1n, wasLive: true },
  });

const content = (size: number, isGzip = false): Content => ({
  ...{ size, isGzip, start: counted.subarray(0, size) },
  prefix: async () => undefined,
});
const file = (key: string, name: string, more: Partial<FileFacts> = {}): FileFacts => ({
  ...{ key, name, group, kin: [], linked: [], directory: '/logs', isHome: false, isMember: true },
  ...{ isOlder: false, startsAtEnd: false, isSettled: true, isNewGroup: false, wasBlank: false },
  ...{ isForeign: false, hasPlainBeside: false, isFresh: false, isReplaced: false },
  ...{ isUnchanged: true, isPart: false, content: content(counted.length) },
  ...more,
});
/** The decisions as text; `answers` are those to "compare this file with that generation". */
function decisions(
  files: readonly FileFacts[],
  generations: readonly Generation[],
  answers: Readonly<Record<string, Answer>>,
  neighbours: readonly Generation[] = [],
): { actions: string[]; again: boolean } {
  const world: World = {
    ...{ files, followedIn: () => neighbours, isThere: () => false, unseen: new Set() },
    generations: {
      group: () => generations.filter(({ status }) => status !== 'ended'),
      ended: () => generations.filter(({ status }) => status === 'ended'),
      lost: new Set(generations.filter(({ status }) => status === 'lost')),
    },
    answer: ({ key }, { number }) => answers[`${key} ${number}`] ?? 'other',
  };
  const plan = match(world);
  expect(plan.asks).toEqual([]);
  const textOf = (action: (typeof plan.actions)[number]) =>
    [action.do, 'file' in action && action.file.key, 'of' in action && action.of?.number]
      .filter((part) => part !== false && part !== undefined)
      .join(' ');
  return { actions: plan.actions.map(textOf), again: plan.again };
}

test.each<[string, FileFacts, Generation, Answer, string]>([
  [
    'that is the beginning of a log is a copy',
    file('1:2', 'app.log.1'),
    followed(1, 1n),
    'prefix',
    'copy 1:2 1',
  ],
  ['that differs is a new generation', file('1:2', 'app.log.1'), followed(1, 1n), 'other', 'follow 1:2'],
  ['that has all of a lost log is that log', file('1:2', 'app.log.1'), lost(1, 100), 'same', 'resume 1:2 1'],
  [
    'that goes on after a lost log is that log',
    file('1:2', 'app.log.1'),
    lost(1, 100),
    'longer',
    'resume 1:2 1',
  ],
  [
    'that goes on after a live log waits while it may be unfinished',
    file('1:2', 'app.log.1', { isFresh: true }),
    followed(1, 1n),
    'longer',
    'wait 1:2 1',
  ],
  [
    'that is older than its log is passed',
    file('1:2', 'app.log.1', { isOlder: true }),
    followed(1, 1n),
    'other',
    'pass 1:2',
  ],
])('a file %s', (_, one, of, answer, action) => {
  expect(decisions([one], [of], { [`1:2 ${of.number}`]: answer }).actions).toEqual([action]);
});

test('a file that differs from what is known of its log is compared with what the log holds now', () => {
  const copy = file('1:2', 'app.log.1', { content: { ...content(100), start: Buffer.alloc(100, 'z') } });
  const log = followed(1, 1n);
  expect(decisions([copy], [log], { '1:2 1': 'rewritten' })).toEqual({ actions: ['lose 1'], again: true });
  expect(decisions([copy], [log], { '1:2 1': 'other' }).actions).toEqual(['follow 1:2']);
});

test('a lost log may be in a file that was named after the same log and taken for a log of its own', () => {
  const own = '/logs/app.log.2.bak';
  const archive = file('1:2', 'app.log.2.bak', { group: own, isHome: true, content: content(100, true) });
  const gone = { ...lost(1, 100), group: '/logs/app.log.1', home: '/logs/app.log.1' };
  expect(decisions([archive], [gone], { '1:2 1': 'same' }).actions).toEqual(['resume 1:2 1']);
});

test('a new log that begins like a lost one of which nothing was counted stays a log of its own', () => {
  const other = file('1:2', 'other.log', { group: '/logs/other.log', isHome: true, isNewGroup: true });
  const banner = learn(noChain, counted);
  const gone: Generation = { ...lost(1, 100), chain: banner, lostBy: 'truncated' };
  expect(decisions([other], [gone], { '1:2 1': 'longer' }).actions).toEqual(['follow 1:2 1']);
});

test('an archive in a directory for rotated files waits for the log that it may be of', () => {
  const log = file('1:1', 'app.log', { isHome: true });
  const archive = file('1:2', 'app.log.1.gz', {
    ...{ group: '/logs/old/app.log', kin: [group], directory: '/logs/old' },
    content: content(100, true),
  });
  expect(decisions([log, archive], [], {})).toEqual({ actions: ['follow 1:1'], again: true });
});

test('of several lost logs that may be in a file, the one of which most is known is', () => {
  const copy = file('1:2', 'app.log.1');
  const withRest = (number: number, bytes: number): Generation => ({
    ...lost(number, bytes),
    ...{ chain: noChain, rest: counted.subarray(0, bytes), restBytes: bytes },
  });
  const answers = { '1:2 1': 'longer', '1:2 2': 'longer' } as const;
  expect(decisions([copy], [withRest(1, 2), withRest(2, 26)], answers).actions).toEqual(['resume 1:2 2']);
});

test('an archive is a copy of a rotated file that was first seen without its log, so that both seem to be logs of their own', () => {
  // The log was renamed and not created again yet when the agent looked.
  const rotated = followed(1, 1n);
  const gone = { ...rotated, place: { ...rotated.place!, state: 'unlinked' as const } };
  const archiveOf = (size: number, of: Generation) => {
    const own = '/logs/app.log.1.gz';
    const more = { group: own, isHome: true, isNewGroup: true, content: content(size, true) };
    const [action] = decisions([file('1:2', 'app.log.1.gz', more)], [], { '1:2 1': 'prefix' }, [of]).actions;
    return action;
  };
  expect(archiveOf(100, gone)).toBe('copy 1:2 1');
  // Only a part of it, or a log that may still grow.
  expect(archiveOf(99, gone)).toBe('follow 1:2');
  expect(archiveOf(100, rotated)).toBe('follow 1:2');
});

test('a lost log whose copy lacks bytes waits for files that cannot be decided, but no longer than a rotation takes', () => {
  // The younger log is read after the lost one, so that its archive stays undecided until that one is decided.
  const generations = [lost(1, 200), followed(2, 1n)];
  const archive = file('1:3', 'app.log.1.gz', { content: content(150, true) });
  const answers = { '1:2 1': 'same', '1:3 2': 'undrained' } as const;
  const at = (isFresh: boolean) =>
    decisions([file('1:2', 'app.log.2', { isFresh }), archive], generations, answers).actions.sort();
  expect(at(true)).toEqual(['wait 1:2 1', 'wait 1:3 2']);
  expect(at(false)).toEqual(['resume 1:2 1', 'wait 1:3 2']);
});

test('an archive is decided after the plain file beside it, also if that one goes on after a live log', () => {
  const plain = file('1:2', 'app.log.1', { content: content(100) });
  const archive = file('1:3', 'app.log.1.gz', { content: content(100, true) });
  const answers = { '1:2 1': 'longer', '1:3 1': 'longer' } as const;
  expect(decisions([plain, archive], [followed(1, 1n)], answers)).toEqual({
    actions: ['fork 1:2 1'],
    again: true,
  });
});
