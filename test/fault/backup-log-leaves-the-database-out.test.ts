import { expect, onTestFinished, test } from 'vitest';
import { knownStore } from '../../src/probes/backups/known-store.ts';
import { replayBinlog } from '../../src/probes/backups/log-chain.ts';
import { hasMariadb, startMariadb } from '../mariadb.ts';
import { bench, checkStore, checksOf, storeOn } from '../store-probe.ts';

// With a filter the log is written, archived and verified, and contains nothing of the database.
test.skipIf(!hasMariadb).each([
  ['--binlog-ignore-db=svc', 'svc'],
  ['--binlog-do-db=other', 'svc'],
  ['--binlog-do-db=svc', undefined],
])('a log with %s leaves out %s', async (filter, leavesOut) => {
  const server = await startMariadb('--log-bin=bin', '--server-id=1', filter);
  onTestFinished(() => server.stop());
  await server.sql('CREATE DATABASE svc');
  const options = storeOn(server.port, { kind: 'mysql', user: 'root', databases: { persistence: 'svc' } });
  const finding = await checkStore(options, { deps: bench().deps });
  expect(checksOf(finding).log_bin).toBe(leavesOut === undefined);
  const backup = { store: 'main', database: 'persistence', source: { kind: 'segments' } } as never;
  const at = { nowMs: 1, databases: ['svc'] };
  const known = knownStore(backup, {}, () => finding, at);
  expect(known.leavesOut).toBe(leavesOut);
  // What was seen once is still known when the store is gone.
  expect(knownStore(backup, known, () => undefined, at).leavesOut).toBe(leavesOut);
  const log = { kind: 'binlog' as const, placed: [], histories: new Map(), leavesOut: known.leavesOut };
  expect(replayBinlog({ file: 'bin.000001', position: 4 }, log)).toMatchObject({
    isEnough: false,
    ends: expect.stringContaining(leavesOut === undefined ? 'is missing' : 'leaves svc out'),
  });
});
