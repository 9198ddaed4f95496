import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { Log } from '../../../src/core/ports.ts';
import { planBackups } from '../../../src/probes/backups/backups.ts';
import type { BackupOptions } from '../../../src/probes/backups/block.ts';
import { probeOnce } from '../../../src/probes/runner/runner.ts';
import {
  errorDocument,
  keys,
  type ObjectStoreServer,
  openObjectStore,
  secretsOf,
} from '../../object-store.ts';

// Off-site copies in a bucket: an S3-compatible server that checks signatures.

const hourMs = 36e5;
let directory: string;
let server: ObjectStoreServer;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-agent-offsite-'));
  server = await openObjectStore({ pageSize: 2, clock: systemClock });
});
afterEach(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

const log: Log = { write() {}, named: () => log };
/** Size of every object of the server. */
const sizeBytes = 7;
const nowMs = Date.now();
/** A backup that ended so many hours ago. */
const backUp = (name: string, hoursAgo: number, bytes = sizeBytes) => {
  writeFileSync(join(directory, name), Buffer.alloc(bytes, 1));
  const endSeconds = (nowMs - hoursAgo * hourMs) / 1000;
  utimesSync(join(directory, name), endSeconds, endSeconds);
  return endSeconds;
};
const upload = (name: string) => server.objects.set(`nightly/${name}`, new Date(nowMs).toISOString());

async function check(secretKey = keys.secretAccessKey) {
  const backup: BackupOptions = {
    ...{ name: 'nightly', store: 'main', database: 'persistence', type: 'full' },
    source: { kind: 'files', directory, pattern: '\\.gz$', settleMs: 0 },
    schedule: { everyMs: 24 * hourMs, usualGraceMs: hourMs },
    objectives: { rpoMs: 24 * hourMs, rtoMs: hourMs },
    retention: { minCount: 1 },
    integrity: { level: 'none', minBytes: 1, maxShrink: 1, bytesPerSecond: 1e9 },
    offsite: {
      objectStore: {
        ...{ endpoint: server.url, region: 'eu-west-1', bucket: 'archive', prefix: 'nightly/' },
        ...{ accessKey: keys.accessKeyId, secretKey },
      },
      maxLagMs: 2 * hourMs,
    },
    intervalMs: 60_000,
  };
  const rows = planBackups({ stores: [], backups: [backup], stateDirectory: directory });
  const deps = { readSecret: secretsOf({}), readings: { values: () => [] }, clock: systemClock, log };
  const [polled] = await probeOnce(rows.slice(0, 1), deps);
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
