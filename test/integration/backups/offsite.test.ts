import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { Log } from '../../../src/core/ports.ts';
import { planBackups } from '../../../src/probes/backups/backups.ts';
import type { BackupOptions } from '../../../src/probes/backups/block.ts';
import { probeOnce } from '../../../src/probes/runner/runner.ts';
import { backupOptions } from '../../backup-probes.ts';
import { newFolder } from '../../folder.ts';
import {
  errorDocument,
  keys,
  type ObjectStoreServer,
  openObjectStore,
  secretsOf,
} from '../../object-store.ts';

// Off-site copies in a bucket of an S3-compatible server that checks signatures.

const hourMs = 36e5;
let directory: string;
let server: ObjectStoreServer;
beforeEach(async () => {
  directory = newFolder();
  server = await openObjectStore({ pageSize: 2, clock: systemClock });
});
afterEach(() => server.close());

const log: Log = { write() {}, named: () => log };
/** The size of every object of the server. */
const sizeBytes = 7;
const nowMs = Date.now();
/** A backup that ended this many hours ago. */
const backUp = (name: string, hoursAgo: number, bytes = sizeBytes) => {
  writeFileSync(join(directory, name), Buffer.alloc(bytes, 1));
  const endSeconds = (nowMs - hoursAgo * hourMs) / 1000;
  utimesSync(join(directory, name), endSeconds, endSeconds);
  return endSeconds;
};
const upload = (name: string) => server.objects.set(`nightly/${name}`, new Date(nowMs).toISOString());

const backupIn = (offsite: BackupOptions['offsite'], source: BackupOptions['source']) =>
  backupOptions('nightly', 'full', source, {
    ...{ offsite, level: 'none', objectives: { rpoMs: 24 * hourMs, rtoMs: hourMs } },
  });
const bucket = (secretKey = keys.secretAccessKey): BackupOptions['offsite'] => ({
  objectStore: {
    ...{ endpoint: server.url, region: 'eu-west-1', bucket: 'archive', prefix: 'nightly/' },
    ...{ accessKey: keys.accessKeyId, secretKey },
  },
  maxLagMs: 2 * hourMs,
  checksums: true,
});
const rowsOf = (backup: BackupOptions) =>
  planBackups({ stores: [], backups: [backup], stateDirectory: directory }).slice(0, 1);
const deps = { readSecret: secretsOf({}), readings: { values: () => [] }, clock: systemClock, log };

async function check(secretKey?: string) {
  const files: BackupOptions['source'] = { kind: 'files', directory, pattern: '\\.gz$', settleMs: 0 };
  const [polled] = await probeOnce(rowsOf(backupIn(bucket(secretKey), files)), deps);
  const { reason, msg, gauges = [] } = polled!.finding;
  const newest = gauges.find(({ name }) => name === 'svc_backup_offsite_last_success_timestamp_seconds');
  const success = gauges.find(({ name }) => name === 'svc_backup_last_success_timestamp_seconds');
  return { reason, msg, newest: newest?.value, success: success?.value };
}

test('every backup has its copy, over several pages of the list', async () => {
  backUp('a.gz', 49);
  backUp('b.gz', 25);
  const last = backUp('c.gz', 1);
  for (const name of ['a.gz', 'b.gz', 'c.gz', 'other.txt']) upload(name);
  const { reason, newest } = await check();
  expect(reason).toBeUndefined();
  expect(newest).toBeCloseTo(last, 2);
});

test('the newest may take as long as the lag; then its copy is missing', async () => {
  backUp('a.gz', 25);
  upload('a.gz');
  backUp('b.gz', 1);
  expect((await check()).reason).toBeUndefined();
  backUp('b.gz', 3);
  expect(await check()).toMatchObject({ reason: 'offsite_missing', msg: 'no off-site copy of b.gz' });
});

test('a copy of another size is no copy', async () => {
  backUp('a.gz', 3, sizeBytes + 1);
  upload('a.gz');
  expect(await check()).toMatchObject({ reason: 'offsite_missing', newest: undefined });
});

test('one that is missing between others is found', async () => {
  for (const [name, hours] of [
    ['a.gz', 68],
    ['b.gz', 44],
    ['c.gz', 20],
  ] as const)
    backUp(name, hours);
  for (const name of ['a.gz', 'c.gz']) upload(name);
  expect(await check()).toMatchObject({ reason: 'offsite_missing', msg: 'no off-site copy of b.gz' });
});

test.each([
  ['a wrong secret', () => check('wrong'), /bucket archive: .*SignatureDoesNotMatch/],
  [
    'a store that fails',
    () => {
      server.answer((_, response) => void response.writeHead(500).end(errorDocument('InternalError')));
      return check();
    },
    /bucket archive: .*InternalError/,
  ],
])('%s leaves the copies unknown, and the backup here assessed', async (_, ask, message) => {
  const end = backUp('a.gz', 3);
  const assessed = await ask();
  expect(assessed).toMatchObject({ reason: 'evidence_unreadable', msg: expect.stringMatching(message) });
  expect(assessed.newest).toBeUndefined();
  expect(assessed.success).toBeCloseTo(end, 2);
});

describe('segments of a log', () => {
  const nameOf = (number: number) => `binlog.${String(number).padStart(6, '0')}`;
  let copies: string;
  beforeEach(() => {
    copies = newFolder();
  });
  const copy = (name: string) => writeFileSync(join(copies, name), Buffer.alloc(sizeBytes));

  test.each<[string, () => BackupOptions['offsite'], (name: string) => void, (name: string) => void]>([
    ['a bucket', bucket, upload, (name) => server.objects.delete(`nightly/${name}`)],
    [
      'a directory',
      () => ({ directory: copies, maxLagMs: 2 * hourMs, checksums: true }),
      copy,
      (name) => rmSync(join(copies, name)),
    ],
  ])('one without a copy between the others is found in %s', async (_, place, put, remove) => {
    const log = backupIn(place(), { kind: 'segments', directory, log: 'binlog', settleMs: 0 });
    const [row] = rowsOf({ ...log, schedule: { everyMs: 100 * hourMs, usualGraceMs: hourMs } });
    const probe = await row!.open(deps);
    let recalled: unknown;
    const checked = async () => {
      const finding = await probe.check(new AbortController().signal, recalled);
      recalled = JSON.parse(JSON.stringify(finding.remember));
      return finding.reason && `${finding.reason}: ${finding.msg}`;
    };
    const add = (from: number, to: number) => {
      for (let number = from; number <= to; number++) {
        backUp(nameOf(number), 50 - number);
        put(nameOf(number));
      }
    };
    // These copies are older than what is retained here.
    for (const number of [1, 2, 3]) put(nameOf(number));
    add(4, 10);
    expect(await checked()).toBeUndefined();
    add(11, 40);
    remove(nameOf(20));
    expect(await checked()).toBe(`offsite_missing: no off-site copy of ${nameOf(20)}`);
    add(41, 45);
    expect(await checked()).toBe(`offsite_missing: no off-site copy of ${nameOf(20)}`);
    put(nameOf(20));
    expect(await checked()).toBeUndefined();
    await probe.close?.();
  });
});
