import { describe, expect, test } from 'vitest';
import { checksumCheck, postgresChecks } from '../../../../src/probes/stores/postgres-checks.ts';
import type { PostgresFacts } from '../../../../src/probes/stores/postgres-facts.ts';

const hidden = { unknown: 'permission denied (42501)' };
const mebibyte = 1024 * 1024;
const slot = { name: 'one', active: true, status: 'reserved', held: 0 };
const receives = (archiving: string | null, hidden = 0) => ({ receivers: { archiving, hidden } });

/** The facts of a primary on which everything is right. */
const well: PostgresFacts = {
  version: '15.1',
  standby: false,
  settings: {
    archive_mode: 'on',
    archive_command: 'set',
    archive_timeout: '60',
    wal_level: 'replica',
    max_wal_size: '1024',
    data_checksums: 'on',
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
  },
  sources: {},
  archiver: { failures: 0, failing: false, failedWal: null, archivedWal: null },
  standbys: { list: [] },
  transactions: { list: [], isPartial: false },
  blockers: { list: [] },
  backlog: { waiting: 0, ageS: 0 },
  slots: { list: [] },
  ...receives(null),
  replication: hidden,
  connections: { byState: {} },
  wraparound: { age: 200_000_000 },
  asynchronous: { roles: [] },
};
const without = (over: Record<string, string | undefined>) => ({
  settings: { ...well.settings, ...over } as never,
});

test('a primary on which everything is as it should be', () => {
  expect(postgresChecks(well).filter(({ holds }) => holds !== true)).toEqual([]);
});

const follower = { name: 'one', hidden: false, synchronous: false, lag: 0, behind: 0 };
const hiddenFollower = { ...follower, hidden: true, lag: null, behind: null };
const has = (...list: (typeof follower | typeof hiddenFollower)[]) => ({ standbys: { list } });
const idles = (age: number, isPartial = false) => ({
  transactions: { list: [{ what: 'session 1', age }], isPartial },
});
const holding = (over: object) => ({ slots: { list: [{ ...slot, ...over }] } });
const archiver = (failing: boolean, archivedWal: string | null) => ({
  archiver: { failures: 3, failing, failedWal: 'A', archivedWal },
});
const waits = (waiting: number, ageS: number) => ({ backlog: { waiting, oldestMs: 1, ageS } });
const blocks = (age: number | null, more: object = {}) => ({
  blockers: { list: [{ what: 'session 1 of backup, active', age, waiting: 3, waited: 7 }] },
  ...more,
});

describe('one thing is different', () => {
  const off = without({ archive_mode: 'off', archive_command: '' });
  const awaited = without({ synchronous_standby_names: 'a' });
  const idle = without({ archive_command: 'nothing' });
  const unawaited = { ...without({ synchronous_commit: 'off' }), sources: { synchronous_commit: 'user' } };
  const standby = {
    standby: true,
    replication: { receivers: 1, paused: false, ageS: 2, received: 9, replayed: 9 },
  };
  test.each<[string, Partial<PostgresFacts>, string, boolean | 'unknown' | undefined]>([
    ['archiving off', off, 'archive_mode', false],
    ['no standby', {}, 'standbys', undefined],
    ['a standby', has(follower), 'standbys', true],
    ['one that is behind by time', has({ ...follower, lag: 301 }), 'standbys', false],
    ['one that is behind by bytes', has({ ...follower, behind: 1025 * mebibyte }), 'standbys', false],
    ['standbys that are hidden', has(hiddenFollower), 'standbys', 'unknown'],
    ['who may not see any', { standbys: hidden }, 'standbys', 'unknown'],
    ['a standby that is missing', awaited, 'standbys', false],
    [
      'a missing one that nobody waits for',
      without({ synchronous_standby_names: 'a', synchronous_commit: 'local' }),
      'standbys',
      undefined,
    ],
    [
      'the synchronous one is there',
      { ...awaited, ...has({ ...follower, synchronous: true }) },
      'standbys',
      true,
    ],
    ['the synchronous one may be hidden', { ...awaited, ...has(hiddenFollower) }, 'standbys', 'unknown'],
    ['a transaction of a quarter of an hour', idles(900), 'open_transactions', true],
    ['of a second more', idles(901), 'open_transactions', false],
    ['others are hidden, one that is old is not', idles(901, true), 'open_transactions', false],
    ['others are hidden', idles(1, true), 'open_transactions', 'unknown'],
    ['a session that blocks others for half a minute', blocks(30), 'lock_waits', true],
    ['for a second more', blocks(31), 'lock_waits', false],
    ['a prepared transaction that blocks others', blocks(null), 'lock_waits', false],
    ['others are hidden, one that blocks is not', blocks(31, idles(1, true)), 'lock_waits', false],
    ['others are hidden, one just began to block', blocks(1, idles(1, true)), 'lock_waits', 'unknown'],
    ['no session may be looked at', { transactions: hidden }, 'lock_waits', 'unknown'],
    ['who blocks is hidden', { blockers: hidden }, 'lock_waits', 'unknown'],
    // A slot in use probably belongs to a standby or a subscriber, neither of which is an archive.
    ['archiving off, a slot in use', { ...off, slots: { list: [slot] } }, 'archive_mode', false],
    ['archiving off, pg_receivewal', { ...off, ...receives('pg_receivewal') }, 'archive_mode', true],
    ['archiving off, receivers that are hidden', { ...off, ...receives(null, 1) }, 'archive_mode', 'unknown'],
    ['archiving off, nobody may look', { ...off, receivers: hidden }, 'archive_mode', 'unknown'],
    ['archiving off: no archive timeout', off, 'archive_timeout', undefined],
    ['archiving off: no archiver', off, 'archiver', undefined],
    ['archiving off: no backlog', off, 'wal_backlog', undefined],
    ['on, with a command that does nothing', idle, 'archive_mode', false],
    [
      'on, a command that does nothing, and pg_receivewal',
      { ...idle, ...receives('pg_receivewal') },
      'archive_mode',
      true,
    ],
    ['on, but with no command', without({ archive_command: '' }), 'archive_mode', false],
    [
      'a library in place of a command',
      without({ archive_command: '', archive_library: 'set' }),
      'archive_mode',
      true,
    ],
    ['settings that are hidden', { settings: {} }, 'archive_mode', 'unknown'],
    ['no archive timeout', without({ archive_timeout: '0' }), 'archive_timeout', false],
    ['five minutes', without({ archive_timeout: '300' }), 'archive_timeout', true],
    ['a second more', without({ archive_timeout: '301' }), 'archive_timeout', false],
    ['an archiver that fails', archiver(true, null), 'archiver', false],
    ['one that failed once', archiver(false, 'B'), 'archiver', true],
    ['a segment that waits for minutes', waits(1, 301), 'wal_backlog', false],
    ['a segment that waits for seconds', waits(9, 300), 'wal_backlog', true],
    ['a backlog that is hidden', { backlog: hidden }, 'wal_backlog', 'unknown'],
    ['a minimal log', without({ wal_level: 'minimal' }), 'wal_level', false],
    ['a logical log', without({ wal_level: 'logical' }), 'wal_level', true],
    ['a slot that nobody reads, and that holds little', holding({ active: false }), 'slots', true],
    ['a slot that holds much', holding({ held: 1025 * mebibyte }), 'slots', false],
    ['a slot that holds what is kept anyway', holding({ held: 1024 * mebibyte }), 'slots', true],
    [
      'a server that keeps more',
      { ...without({ wal_keep_size: '2048' }), ...holding({ held: 1025 * mebibyte }) },
      'slots',
      true,
    ],
    ['a slot that is lost', holding({ status: 'lost', held: null }), 'slots', false],
    ['a slot about to be lost', holding({ status: 'unreserved' }), 'slots', false],
    ['slots that are hidden', { slots: hidden }, 'slots', 'unknown'],
    ['no checksums', without({ data_checksums: 'off' }), 'data_checksums', false],
    ['no fsync', without({ fsync: 'off' }), 'durable_settings', false],
    ['no full pages', without({ full_page_writes: 'off' }), 'durable_settings', false],
    ['no wait for commits', without({ synchronous_commit: 'off' }), 'durable_settings', false],
    ['a local wait for commits', without({ synchronous_commit: 'local' }), 'durable_settings', true],
    ['no wait for commits of a role', { asynchronous: { roles: ['svc'] } }, 'durable_settings', false],
    ['no wait for commits of the agent alone', unawaited, 'durable_settings', 'unknown'],
    [
      'no wait for commits of the service, whose role the agent uses',
      { ...unawaited, isServiceUser: true },
      'durable_settings',
      false,
    ],
    ['roles that are hidden', { asynchronous: hidden }, 'durable_settings', 'unknown'],
    ['a replica does not archive', standby, 'archiver', undefined],
    ['a replica that is told to', { ...standby, ...without({ archive_mode: 'always' }) }, 'archiver', true],
    ['transactions half way to the end', { wraparound: { age: 1_000_000_000 } }, 'wraparound', false],
    ['transactions not half way', { wraparound: { age: 999_999_999 } }, 'wraparound', true],
  ])('%s: %s', (_, over, check, holds) => {
    expect(postgresChecks({ ...well, ...over }).find((result) => result.check === check)?.holds).toBe(holds);
  });
});

test.each([
  [{ failures: 0 }, true],
  [{ failures: 1 }, false],
  [{ failures: null }, 'unknown'],
  [hidden, 'unknown'],
])('pages that failed: %j', (checksums, holds) => {
  expect(checksumCheck(checksums)).toMatchObject({ check: 'checksum_failures', holds });
});

test('of many slots a few are named', () => {
  const list = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
    ...slot,
    name,
    active: false,
    held: 2048 * mebibyte,
  }));
  const found = postgresChecks({ ...well, slots: { list } }).find(({ check }) => check === 'slots')!.found;
  expect(found).toBe(
    `${['a', 'b', 'c'].map((name) => `${name} is inactive and holds back 2048 MiB`).join(', ')} and 2 more`,
  );
});
