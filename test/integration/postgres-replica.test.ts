import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/probes/probe.ts';
import {
  hasPostgres,
  type Postgres,
  postgresFolder,
  postgresProgram,
  startPostgres,
  startPostgresProgram,
} from '../postgres.ts';
import { bench, checkGauges, checkStore, checksOf, gauge, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

describe.skipIf(!hasPostgres)('PostgreSQL and its replica', () => {
  let primary: Postgres;
  let standby: Postgres;
  let copy: string | undefined;
  const check = (server: Postgres, recalled?: unknown, deps = bench().deps) =>
    checkStore(storeOn(server.port, { user: 'postgres' }), { recalled, deps });

  beforeAll(async () => {
    primary = await startPostgres({ settings: ['wal_keep_size=64MB'] });
    copy = postgresFolder();
    const data = join(copy, 'data');
    const from = `host=127.0.0.1 port=${primary.port} user=postgres`;
    postgresProgram('pg_basebackup', [
      ...['-D', data, '-d', from, '--checkpoint=fast', '--no-sync'],
      ...['-R', '--create-slot', '--slot=standby'],
    ]);
    standby = await startPostgres({ data });
  });
  afterAll(async () => {
    await standby?.stop();
    await primary?.stop();
    if (copy !== undefined) rmSync(copy, { recursive: true });
  });

  test('a replica that follows is read-only, and well', async () => {
    const finding = await pollUntil(
      () => check(standby),
      (finding) => checkGauges(finding).replica === 1,
    );
    expect(gauge(finding, 'svc_store_read_only')).toBe(1);
    expect(finding.details).toMatchObject({ replica: true });
    expect(finding.reason).toBeUndefined();
    expect(checkGauges(finding)).not.toHaveProperty('archiver');
  });

  test('on the primary there is nothing to follow; a standby is no archive', async () => {
    // The base backup that made the standby receives the log, too: its process may outlive it for a moment.
    const finding = await pollUntil(
      () => check(primary),
      (finding) => checkGauges(finding).slots === 1 && checkGauges(finding).archive_mode === 0,
    );
    expect(checksOf(finding)).not.toHaveProperty('replica');
    expect(checkGauges(finding)).not.toHaveProperty('archive_timeout');
    const { remember } = await check(standby);
    expect(remember).toMatchObject({ identity: finding.details!.identity });
  });

  test('a standby says whom it follows, and the primary is known by the same name while it is down', async () => {
    const { rows } = await primary.query('SELECT system_identifier::text AS id FROM pg_control_system()');
    const { id } = rows[0];
    const known = await check(primary);
    expect(known.details).toMatchObject({ identity: id });
    expect(known.details).not.toHaveProperty('follows');
    expect((await check(standby)).details).toMatchObject({ follows: [id] });
    const nowhere = storeOn(1, { user: 'postgres' });
    const down = await checkStore(nowhere, { recalled: known.remember });
    expect(down).toMatchObject({ reason: 'refused', details: { identity: id } });
    expect((await checkStore(nowhere)).details).toMatchObject({ identity: undefined });
  });

  test('the primary tells of its standbys: how far behind they are, and whether commits wait for one', async () => {
    const found = (finding: Finding) =>
      (finding.details!.checks as { check: string; found: string }[]).find(
        ({ check }) => check === 'standbys',
      )?.found;
    const follows = await check(primary);
    expect(checkGauges(follows).standbys).toBe(1);
    expect(found(follows)).toMatch(/^walreceiver \(asynchronous\) \d+ s and 0 MiB behind$/);
    primary.configure(['synchronous_standby_names=another']);
    const waits = await pollUntil(
      () => check(primary),
      (finding) => checkGauges(finding).standbys === 0,
    );
    expect(found(waits)).toContain('commits wait: no standby is synchronous');
    primary.configure(['synchronous_standby_names=walreceiver']);
    const waitsForOne = await pollUntil(
      () => check(primary),
      (finding) => checkGauges(finding).standbys === 1,
    );
    expect(found(waitsForOne)).toContain('walreceiver (synchronous)');
    primary.configure([
      'synchronous_standby_names=',
      'max_wal_size=32MB',
      'min_wal_size=32MB',
      'wal_keep_size=0',
    ]);
    await standby.query('SELECT pg_wal_replay_pause()');
    for (let segment = 0; segment < 3; segment++)
      await primary.query("SELECT pg_logical_emit_message(false, 'x', 'x'); SELECT pg_switch_wal()");
    const stuck = await pollUntil(
      () => check(primary),
      (finding) => checkGauges(finding).standbys === 0,
    );
    expect(found(stuck)).toMatch(/walreceiver \(asynchronous\) \d+ s and (?:3|4|5)\d MiB behind/);
    await standby.query('SELECT pg_wal_replay_resume()');
    primary.configure(['max_wal_size=1GB', 'wal_keep_size=64MB']);
    await pollUntil(
      () => check(primary),
      (finding) => checkGauges(finding).standbys === 1,
    );
    expect(checksOf(await check(standby))).not.toHaveProperty('standbys');
  });

  test('a program that receives the log and writes it is an archive, whatever it calls itself', async () => {
    const folder = postgresFolder();
    const from = `host=127.0.0.1 port=${primary.port} user=postgres application_name=barman_receive_wal`;
    const receiver = startPostgresProgram('pg_receivewal', ['-D', folder, '-d', from, '--no-sync']);
    try {
      const finding = await pollUntil(
        () => check(primary),
        (finding) => checkGauges(finding).archive_mode === 1,
      );
      expect(JSON.stringify(finding.details)).toContain('barman_receive_wal receives the log');
    } finally {
      receiver.kill();
      rmSync(folder, { recursive: true });
    }
    await pollUntil(
      () => check(primary),
      (finding) => checkGauges(finding).archive_mode === 0,
    );
  });

  test('a standby that is fed from an archive is not broken', async () => {
    const folder = postgresFolder();
    const data = join(folder, 'data');
    const from = `host=127.0.0.1 port=${primary.port} user=postgres`;
    postgresProgram('pg_basebackup', ['-D', data, '-d', from, '--checkpoint=fast', '--no-sync']);
    writeFileSync(join(data, 'standby.signal'), '');
    const shipped = await startPostgres({ data, settings: ['restore_command=false'] });
    try {
      const finding = await check(shipped);
      expect(finding.reason).toBeUndefined();
      expect(checksOf(finding).replica).not.toBe(false);
      expect(JSON.stringify(finding.details)).toContain('restores from an archive');
    } finally {
      await shipped.stop();
      rmSync(folder, { recursive: true });
    }
  });

  test('replay that is paused', async () => {
    await standby.query('SELECT pg_wal_replay_pause()');
    const finding = await pollUntil(
      () => check(standby),
      (finding) => checkGauges(finding).replica === 0,
    );
    expect(JSON.stringify(finding.details)).toContain('replay is paused');
    await standby.query('SELECT pg_wal_replay_resume()');
  });

  test('the primary dies: nothing streams in', async () => {
    await primary.kill();
    const finding = await pollUntil(
      () => check(standby),
      (finding) => checkGauges(finding).replica !== 1,
    );
    expect(checkGauges(finding).replica).toBe(0);
  });

  test('promotion changes the timeline, not the data; it is told once', async () => {
    const { deps, logged } = bench();
    const before = await check(standby, undefined, deps);
    await standby.query('SELECT pg_promote()');
    const after = await pollUntil(
      () => check(standby, before.remember, bench().deps),
      (finding) => checkGauges(finding).timeline === 0,
    );
    expect(checkGauges(after)).toMatchObject({ identity: 1, uptime: 1 });
    const first = await check(standby, before.remember, deps);
    const second = await check(standby, first.remember, deps);
    expect(checkGauges(second).timeline).toBe(0);
    expect(gauge(second, 'svc_store_read_only')).toBe(0);
    expect(logged).toMatchObject([{ fields: { check: 'timeline', found: 'timeline 2, it was 1' } }]);
  });

  test('another server at the same address', async () => {
    const { remember } = await check(standby);
    const other = await startPostgres({ initdb: ['--data-checksums'] });
    try {
      const finding = await check(other, remember);
      expect(checkGauges(finding)).toMatchObject({ identity: 0, timeline: 1, uptime: 1 });
    } finally {
      await other.stop();
    }
  });
});
