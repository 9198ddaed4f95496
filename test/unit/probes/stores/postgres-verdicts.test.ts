import { describe, expect, test } from 'vitest';
import type { Facts } from '../../../../src/probes/stores/postgres/facts.ts';
import { verdictsOf } from '../../../../src/probes/stores/postgres/verdicts.ts';

const hidden = { unknown: 'permission denied (42501)' };
const slot = { name: 'one', type: 'physical', active: true, status: 'reserved' };

/** A primary on which everything is as it should be. */
const well: Facts = {
  version: '15.1',
  standby: false,
  settings: {
    archive_mode: 'on',
    archive_command: 'set',
    archive_timeout: '60',
    wal_level: 'replica',
    data_checksums: 'on',
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
  },
  sources: {},
  archiver: { failures: 0, failing: false, failedWal: null },
  backlog: { waiting: 0, ageS: 0 },
  slots: { list: [] },
  senders: { applications: [] },
  receiver: hidden,
  connections: { byState: {} },
  checksums: { failures: 0 },
  wraparound: { age: 200_000_000 },
};
const without = (over: Record<string, string | undefined>) => ({
  settings: { ...well.settings, ...over } as never,
});

test('a primary on which everything is as it should be', () => {
  expect(verdictsOf(well).filter(({ holds }) => holds !== true)).toEqual([]);
});

describe('one thing is different', () => {
  const off = without({ archive_mode: 'off', archive_command: '' });
  const standby = { standby: true, receiver: { receivers: 1, paused: false, lagS: 0 } };
  test.each<[string, Partial<Facts>, string, boolean | 'unknown' | undefined]>([
    ['archiving off', off, 'archive_mode', false],
    ['archiving off, a slot in use', { ...off, slots: { list: [slot] } }, 'archive_mode', true],
    [
      'archiving off, a slot not in use',
      { ...off, slots: { list: [{ ...slot, active: false }] } },
      'archive_mode',
      false,
    ],
    [
      'archiving off, pg_receivewal',
      { ...off, senders: { applications: ['pg_receivewal'] } },
      'archive_mode',
      true,
    ],
    [
      'archiving off, another program',
      { ...off, senders: { applications: ['walreceiver'] } },
      'archive_mode',
      false,
    ],
    [
      'archiving off, a program that is hidden',
      { ...off, senders: { applications: [null] } },
      'archive_mode',
      'unknown',
    ],
    ['archiving off, programs that are hidden', { ...off, senders: hidden }, 'archive_mode', 'unknown'],
    ['archiving off: no archiver', off, 'archiver', undefined],
    ['archiving off: no backlog', off, 'wal_backlog', undefined],
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
    ['streamed while it is written', { ...off, slots: { list: [slot] } }, 'archive_timeout', true],
    [
      'an archiver that fails',
      { archiver: { failures: 3, failing: true, failedWal: 'A' } },
      'archiver',
      false,
    ],
    ['one that failed once', { archiver: { failures: 3, failing: false, failedWal: 'A' } }, 'archiver', true],
    [
      'a segment that waits for minutes',
      { backlog: { waiting: 1, oldestMs: 1, ageS: 301 } },
      'wal_backlog',
      false,
    ],
    [
      'a segment that waits for seconds',
      { backlog: { waiting: 9, oldestMs: 1, ageS: 300 } },
      'wal_backlog',
      true,
    ],
    ['a backlog that is hidden', { backlog: hidden }, 'wal_backlog', 'unknown'],
    ['a minimal log', without({ wal_level: 'minimal' }), 'wal_level', false],
    ['a logical log', without({ wal_level: 'logical' }), 'wal_level', true],
    ['a slot that nobody reads', { slots: { list: [{ ...slot, active: false }] } }, 'slots', false],
    ['a slot that is lost', { slots: { list: [{ ...slot, status: 'lost' }] } }, 'slots', false],
    ['a slot about to be lost', { slots: { list: [{ ...slot, status: 'unreserved' }] } }, 'slots', false],
    ['a slot that keeps much', { slots: { list: [{ ...slot, status: 'extended' }] } }, 'slots', true],
    ['no checksums', without({ data_checksums: 'off' }), 'data_checksums', false],
    ['a page that failed', { checksums: { failures: 1 } }, 'checksum_failures', false],
    ['nobody counts', { checksums: { failures: null } }, 'checksum_failures', 'unknown'],
    ['no fsync', without({ fsync: 'off' }), 'durable_settings', false],
    ['no full pages', without({ full_page_writes: 'off' }), 'durable_settings', false],
    ['no wait for commits', without({ synchronous_commit: 'off' }), 'durable_settings', false],
    ['a local wait for commits', without({ synchronous_commit: 'local' }), 'durable_settings', true],
    ['a primary', {}, 'replica', undefined],
    ['a replica', standby, 'replica', true],
    ['a replica does not archive', standby, 'archiver', undefined],
    ['a replica that is told to', { ...standby, ...without({ archive_mode: 'always' }) }, 'archiver', true],
    [
      'a replica that nothing reaches',
      { ...standby, receiver: { receivers: 0, paused: false, lagS: 0 } },
      'replica',
      false,
    ],
    [
      'a replica far behind',
      { ...standby, receiver: { receivers: 1, paused: false, lagS: 301 } },
      'replica',
      false,
    ],
    [
      'a replica that waits',
      { ...standby, receiver: { receivers: 1, paused: true, lagS: 0 } },
      'replica',
      false,
    ],
    [
      'a replica that replayed nothing',
      { ...standby, receiver: { receivers: 1, paused: false, lagS: null } },
      'replica',
      'unknown',
    ],
    ['transactions half way to the end', { wraparound: { age: 1_000_000_000 } }, 'wraparound', false],
    ['transactions not half way', { wraparound: { age: 999_999_999 } }, 'wraparound', true],
  ])('%s: %s', (_, over, check, holds) => {
    expect(verdictsOf({ ...well, ...over }).find((verdict) => verdict.check === check)?.holds).toBe(holds);
  });
});

test('of many slots a few are named', () => {
  const list = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ ...slot, name, active: false }));
  const found = verdictsOf({ ...well, slots: { list } }).find(({ check }) => check === 'slots')!.found;
  expect(found).toBe('a inactive, b inactive, c inactive and 2 more');
});
