import { expect, test } from 'vitest';
import { knownStore } from '../../src/probes/backups/known-store.ts';
import { replayBinlog } from '../../src/probes/backups/log-chain.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { bench, checkStore, kindOf, probeOf, storeOn } from '../store-probe.ts';

// A log states times of the server's clock. If that clock is ahead, a commit looks newer than it is.
test.each<[string, number, number, number | undefined]>([
  ['a clock that is right', 0, 0, undefined],
  ['a clock that is a little ahead, as it may be between two corrections', 1_900, 0, undefined],
  ['a clock that is ahead', 300_000, 0, 300_000],
  ['a clock that is behind: nothing looks newer than it is', -300_000, 0, undefined],
  ['a poll that takes long: how long of it came before the answer, nobody knows', 300_000, 5_000, 305_000],
])('%s', async (_, serverAheadMs, tookMs, aheadMs) => {
  const { clock, deps } = bench();
  const kind = kindOf(async () => {
    clock.advance(tookMs);
    return { nowMs: clock.nowMs() + serverAheadMs };
  });
  const finding = await probeOf(storeOn(1), kind, deps).check(new AbortController().signal, undefined);
  const backup = { store: 'main', database: 'persistence', source: { kind: 'segments' } } as never;
  const at = { nowMs: clock.nowMs(), databases: [] };
  const known = knownStore(backup, {}, () => finding, at);
  expect(known.aheadMs).toBe(aheadMs ?? 0);
  // What was seen once is still known when the store is gone.
  expect(knownStore(backup, known, () => undefined, at).aheadMs).toBe(aheadMs ?? 0);

  const content = { newestMs: 1_000_000, bytes: 900, binlog: { isClosed: true, places: { 4: '' } } };
  const segment = { name: 'bin.000001', endMs: 1e15, sizeBytes: 900, content };
  const placed = [{ segment, at: { timeline: 0, number: 1 } }];
  const archive = { kind: 'binlog' as const, placed, histories: new Map(), aheadMs: known.aheadMs };
  const replay = replayBinlog({ file: 'bin.000001', position: 4 }, archive);
  expect(replay.newestMs).toBe(1_000_000 - (aheadMs ?? 0));
});

test.skipIf(!hasPostgres)('a server says what its clock shows', async () => {
  const server = await startPostgres();
  const { clock, deps } = bench();
  try {
    const options = storeOn(server.port, { user: 'postgres' });
    // The agent's clock here stands still since the beginning of the year.
    const { details } = await checkStore(options, { deps });
    expect(details).toMatchObject({ clockAheadMs: expect.any(Number) });
    expect(details!.clockAheadMs as number).toBeGreaterThan(Date.now() - clock.nowMs() - 600_000);
  } finally {
    await server.stop();
  }
});
