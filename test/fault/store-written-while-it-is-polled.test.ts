import { expect, test } from 'vitest';
import { createStoreServer } from '../../src/probes/stores/store-connections.ts';
import { createStoreProbe } from '../../src/probes/stores/store-probe.ts';
import type { StoreKind } from '../../src/probes/stores/store-report.ts';
import { bench, storeOn } from '../store-probe.ts';

// What is written while a poll runs, or while its report is used for another database of the store, may be in no archive.
test('a log is whole up to the moment at which the server was asked', async () => {
  const { clock, deps } = bench();
  const log = { archived: '000000010000000000000003', position: '0/4000028', isArchivedWhole: true };
  const kind: StoreKind = {
    connect: async () => ({
      async poll({ server }) {
        clock.advance(7_000);
        const report = server && { serverVersion: 'any 1', checks: [], log };
        return { ...(report && { server: report }), database: { checks: [] }, roundTripMs: 1 };
      },
      close: async () => {},
    }),
    faultOf: () => ({ reason: 'reset', msg: '' }),
  };
  const options = storeOn(1, { databases: { persistence: 'svc', visibility: 'svc_visibility' } });
  const server = createStoreServer(options, kind, clock);
  const check = async (role: 'persistence' | 'visibility') => {
    const probe = createStoreProbe(options, role, { ...deps, kind, server });
    return (await probe.check(new AbortController().signal, undefined)).details;
  };
  const askedMs = clock.nowMs();
  expect(await check('persistence')).toMatchObject({ log: { wholeUntilMs: askedMs } });
  clock.advance(20_000);
  // The server is asked once for both.
  expect(await check('visibility')).toMatchObject({ log: { wholeUntilMs: askedMs } });
});
