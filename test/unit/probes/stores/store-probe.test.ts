import { describe, expect, test } from 'vitest';
import type { StoreOptions } from '../../../../src/probes/stores/store-options.ts';
import type { StoreReport, StoreTarget } from '../../../../src/probes/stores/store-report.ts';
import { bench, checkGauges, checksOf, gauge, kindOf, probeOf, storeOn } from '../../../store-probe.ts';

const seen = (report: Partial<StoreReport>, options: Partial<StoreOptions> = {}, recalled?: unknown) => {
  const probe = probeOf(
    storeOn(1, options),
    kindOf(async () => report),
    bench().deps,
  );
  return probe.check(new AbortController().signal, recalled);
};

describe('what a check shows', () => {
  test('little: nothing is made up', async () => {
    const finding = await seen({});
    expect(finding).toMatchObject({ msg: 'any 1', gauges: [], phasesMs: { round_trip: 1 } });
    expect(finding).not.toHaveProperty('totals');
    expect(finding).not.toHaveProperty('tlsNotAfterMs');
    expect(finding.reason).toBeUndefined();
  });

  test('much', async () => {
    const finding = await seen(
      {
        readOnly: true,
        replica: true,
        schemaVersion: '0.10',
        connections: { active: 80, idle: 10 },
        connectionsMax: 100,
        walOldestUnarchivedMs: 1_500,
        walArchiveFailures: 7,
        tlsNotAfterMs: 9,
        checks: [
          { check: 'slots', holds: false, found: 'x inactive' },
          { check: 'archiver', holds: 'unknown', found: 'not shown' },
          { check: 'wal_level', holds: true, found: 'wal_level = replica' },
        ],
        details: { more: 1 },
      },
      { schema: { persistence: '0.9' } },
    );
    const labels = { store: 'main', kind: 'postgres', database: 'persistence' };
    expect(finding.gauges).toEqual(
      expect.arrayContaining([
        { name: 'svc_store_schema_version_info', labels: { ...labels, version: '0.10' }, value: 1 },
        { name: 'svc_store_schema_compatible', labels, value: 1 },
        { name: 'svc_store_connections', labels: { ...labels, state: 'active' }, value: 80 },
        { name: 'svc_store_connections_max', labels, value: 100 },
        { name: 'svc_store_read_only', labels, value: 1 },
        { name: 'svc_store_wal_oldest_unarchived_timestamp_seconds', labels, value: 1.5 },
      ]),
    );
    expect(checkGauges(finding)).toEqual({ schema: 1, connections: 0, slots: 0, wal_level: 1 });
    expect(checksOf(finding).archiver).toBe('unknown');
    expect(finding.totals).toEqual([{ name: 'svc_store_wal_archive_failures_total', labels, value: 7 }]);
    expect(finding.tlsNotAfterMs).toBe(9);
    expect(finding.msg).toBe('any 1, replica, schema 0.10, failing checks: connections slots');
    expect(finding.details).toMatchObject({ more: 1, expectedSchema: '0.9' });
  });

  test.each([
    ['as expected', { schemaVersion: '0.9' }, { persistence: '0.9' }, 1],
    ['older', { schemaVersion: '0.9' }, { persistence: '0.10' }, 0],
    ['no version', { schemaVersion: 'main' }, { persistence: '0.9' }, undefined],
    ['unknown', { schemaUnknown: 'no table' }, { persistence: '0.9' }, undefined],
    ['nothing expected', { schemaVersion: '0.9' }, {}, undefined],
  ])('the schema: %s', async (_, report, schema, compatible) => {
    expect(gauge(await seen(report, { schema }), 'svc_store_schema_compatible')).toBe(compatible);
  });

  test.each([
    ['89 of 100', { active: 89 }, 100, 1],
    ['90 of 100', { active: 80, idle: 10 }, 100, 0],
    ['no limit', { active: 90 }, 0, undefined],
    ['a limit that is not shown', { active: 90 }, undefined, undefined],
  ])('connections: %s', async (_, connections, connectionsMax, holds) => {
    expect(checkGauges(await seen({ connections, connectionsMax })).connections).toBe(holds);
  });
});

test('a check that the owner accepts is shown with the reason and its severity, and has no series', async () => {
  const finding = await seen(
    {
      schemaVersion: '0.7',
      checks: [
        { check: 'data_checksums', holds: false, found: 'data_checksums = off' },
        { check: 'archive_mode', holds: false, found: 'archive_mode = off' },
      ],
    },
    { schema: { persistence: '0.8' }, accept: { data_checksums: 'the disks check', schema: 'migrating' } },
  );
  expect(checkGauges(finding)).toEqual({ archive_mode: 0 });
  expect(gauge(finding, 'svc_store_schema_compatible')).toBeUndefined();
  expect(finding.msg).not.toContain('data_checksums');
  expect(finding.details!.checks).toMatchObject([
    { check: 'schema', holds: false, severity: 'data_at_risk', accepted: 'migrating' },
    { check: 'data_checksums', holds: false, severity: 'advice', accepted: 'the disks check' },
    { check: 'archive_mode', holds: false, severity: 'recovery_weak', accepted: undefined },
  ]);
});

describe('a secret', () => {
  const failing = kindOf(async ({ password }: StoreTarget) => {
    throw new Error(`cannot open any://me:${encodeURIComponent(password!)}@host: ${password} refused`);
  });

  test('is read at each check, and taken out of what is thrown', async () => {
    const read: unknown[] = [];
    const { deps, logged } = bench(async (secret) => `p@ss ${read.push(secret)}`);
    const probe = probeOf(storeOn(1, { password: { env: 'P' } }), failing, deps);
    for (const _ of [1, 2]) {
      const finding = await probe.check(new AbortController().signal, undefined);
      expect(finding).toMatchObject({
        reason: 'query_failed',
        msg: 'Error: cannot open any://***@host: *** refused',
      });
      expect(JSON.stringify([finding, logged])).not.toMatch(/p(?:@|%40)ss/);
    }
    expect(read).toEqual([{ env: 'P' }, { env: 'P' }]);
  });

  test('is taken out of what is found, too', async () => {
    const finding = await seen(
      {
        details: { note: 'hunter2' },
        schemaUnknown: 'because of hunter2',
        checks: [{ check: 'slots', holds: false, found: 'hunter2 inactive' }],
      },
      { password: 'hunter2' },
    );
    expect(JSON.stringify(finding)).not.toContain('hunter2');
  });

  test('that is also a word of ours changes no name', async () => {
    const options = { password: 'slots', schema: { persistence: '0.8' } };
    const checks = [{ check: 'slots', holds: true, found: 'no slots' }] as const;
    const finding = await seen({ checks, identity: 'slots', schemaVersion: '0.8' }, options);
    expect(checkGauges(finding)).toEqual({ schema: 1, identity: 1, slots: 1 });
    expect(finding.remember).toMatchObject({ identity: 'slots' });
  });

  test('that is not there: credentials, and nothing is dialled', async () => {
    const { deps } = bench(async () => {
      throw new Error('secret: variable is not set, got "P"; set it');
    });
    const probe = probeOf(storeOn(1, { password: { env: 'P' } }), failing, deps);
    const finding = await probe.check(new AbortController().signal, { changes: {} });
    expect(finding).toMatchObject({
      reason: 'credentials',
      msg: 'secret: variable is not set, got "P"; set it',
    });
    expect(finding.remember).toEqual({ changes: {} });
  });
});

test.each([
  ['query_failed', 'too_slow'],
  ['reset', 'too_slow'],
  ['connect_timeout', 'connect_timeout'],
  ['resolve', 'resolve'],
  ['tls', 'tls'],
] as const)('what is thrown as %s once the time is over counts as %s', async (reason, expected) => {
  const stop = new AbortController();
  const kind = kindOf(
    async () => {
      stop.abort();
      throw new Error('any');
    },
    () => ({ reason, msg: 'any' }),
  );
  const probe = probeOf(storeOn(1), kind, bench().deps);
  expect((await probe.check(stop.signal, undefined)).reason).toBe(expected);
});

test('a change is logged once, with where it was seen', async () => {
  const { deps, logged } = bench();
  let identity = 'a';
  const row = kindOf(async () => ({ identity }));
  const probe = probeOf(storeOn(1), row, deps, 'visibility');
  let recalled: unknown;
  for (const next of ['a', 'b', 'b', 'b']) {
    identity = next;
    recalled = (await probe.check(new AbortController().signal, recalled)).remember;
  }
  expect(logged).toEqual([
    {
      level: 'warn',
      msg: 'a store has changed',
      fields: { store: 'main', database: 'visibility', check: 'identity', found: 'b, it was a' },
    },
  ]);
});

test('a poll measures a disk once, also one whose directories have changed since the last poll', async () => {
  const measured: string[] = [];
  let path = '/old';
  const kind = kindOf(
    () => Promise.resolve({ directories: [{ holds: 'data', path }] }),
    () => ({ reason: 'refused', msg: 'refused' }),
  );
  const measureSpace = async (directory: string) => {
    measured.push(directory);
    return { device: 1, freeBytes: 50, totalBytes: 100 };
  };
  const probe = probeOf(storeOn(1), kind, { ...bench().deps, measureSpace });
  const { signal } = new AbortController();
  const first = await probe.check(signal, undefined);
  const second = await probe.check(signal, first.remember);
  expect(measured).toEqual(['/old', '/old']);
  expect(checkGauges(second)).toMatchObject({ free_space: 1 });
  path = '/new';
  await probe.check(signal, second.remember);
  expect(measured).toEqual(['/old', '/old', '/old', '/new']);
});

describe('a store that is down', () => {
  const directories = [{ holds: 'data', path: '/data' }];

  /** A store on a disk of 100 bytes that answers once. It is down, or hangs until the time is over, from then on. */
  async function down(ends: 'refuses' | 'hangs', freeBytes: number, options: Partial<StoreOptions> = {}) {
    let isUp = true;
    const kind = kindOf(
      (_, signal) =>
        isUp
          ? Promise.resolve({ directories })
          : ends === 'refuses'
            ? Promise.reject(new Error('refused'))
            : new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      () => ({ reason: 'refused', msg: 'refused' }),
    );
    let free = 50;
    const measureSpace = async () => ({ device: 1, freeBytes: free, totalBytes: 100 });
    const probe = probeOf(storeOn(1, options), kind, { ...bench().deps, measureSpace });
    const { remember } = await probe.check(new AbortController().signal, undefined);
    const recalled = JSON.parse(JSON.stringify(remember)) as unknown;
    isUp = false;
    free = freeBytes;
    const limit = new AbortController();
    // A new agent knows where the data is, too.
    const next = probeOf(storeOn(1, options), kind, { ...bench().deps, measureSpace });
    const checking = next.check(limit.signal, recalled);
    await new Promise((resolve) => setImmediate(resolve));
    limit.abort(new Error('time is over'));
    return checking;
  }

  test.each(['refuses', 'hangs'] as const)('and %s: its disk is checked all the same', async (ends) => {
    const finding = await down(ends, 4);
    expect(finding.reason).toBe(ends === 'hangs' ? 'too_slow' : 'refused');
    expect(checkGauges(finding)).toEqual({ free_space: 0 });
    expect(finding.details).toMatchObject({
      checks: [{ check: 'free_space', holds: false, found: 'data: 0.0 of 0.0 GiB free' }],
    });
  });

  test('shows nothing of its disk while that has space, or if its owner accepts it', async () => {
    expect((await down('refuses', 50)).details).not.toHaveProperty('checks');
    const accepted = await down('refuses', 4, { accept: { free_space: 'a test' } });
    expect(accepted.gauges).toEqual([]);
    expect(accepted.details).toMatchObject({ checks: [{ accepted: 'a test' }] });
  });
});
