import { expect, test } from 'vitest';
import { placeSegments } from '../../src/probes/backups/formats/segments.ts';
import { knownStore } from '../../src/probes/backups/known-store.ts';
import { replayWal, type Written } from '../../src/probes/backups/log-chain.ts';

// A standby was promoted by hand and archives into the same directory, while the store goes on as before. A restore follows the
// newest timeline: what the store has written since is not on it, however new the commits of the other server are.
const names = ['000000010000000000000002', '000000010000000000000003', '000000020000000000000003'];
const replayed = (wrote?: Written, awaitsStore = false) =>
  replayWal(
    [{ timeline: 1, start: '0/2000028', end: '0/2000100' }],
    {
      kind: 'wal',
      placed: placeSegments(
        'wal',
        names.map((name, at) => ({ name, endMs: 1e15, sizeBytes: 1, content: { newestMs: at + 1 } })),
      ),
      histories: new Map([[2, [{ timeline: 1, lsn: '0/3000050' }]]]),
      ...(wrote && { wrote }),
      awaitsStore,
    },
    {},
    '7',
  );
const isLeft = { isEnough: false, ends: expect.stringContaining('a restore leaves timeline 1 at 0/3000050') };
const reaches = { isEnough: true, newestMs: 3 };

test.each<[string, Written | undefined, object]>([
  ['nothing is known of the store', undefined, reaches],
  [
    'the store had not written more before the other was promoted',
    { timeline: 1, position: '0/3000050', identity: '7', atMs: 2 },
    { ...reaches, followedUntilMs: 2 },
  ],
  ['the store has written more', { timeline: 1, position: '0/3000051', identity: '7', atMs: 2 }, isLeft],
  ['it has, and its identity is not known', { timeline: 1, position: '1/0', atMs: 2 }, isLeft],
  [
    'the store is the server that was promoted',
    { timeline: 2, position: '0/9000000', identity: '7', atMs: 2 },
    reaches,
  ],
  ['the store is another cluster', { timeline: 1, position: '0/9000000', identity: '8', atMs: 2 }, reaches],
])('%s', (_, wrote, expected) => expect(replayed(wrote)).toMatchObject(expected));

test('what the store has written is still known when it is gone', () => {
  const options = { store: 'main', database: 'persistence', source: { kind: 'segments' } } as never;
  const at = { nowMs: 0, databases: [] };
  const log = { timeline: 1, position: '0/3000051', askedMs: 5 };
  const wrote = { timeline: 1, position: '0/3000051', identity: '7', atMs: 5 };
  const known = knownStore(options, {}, () => ({ details: { log, identity: '7' } }) as never, at);
  expect(known.wrote).toEqual(wrote);
  expect(knownStore(options, known, () => undefined, at).wrote).toEqual(wrote);
});

test('before the first poll of the store has ended, nothing is known of a restore that leaves a timeline', () => {
  const said = { isEnough: false, ends: expect.stringContaining('the store has not been asked yet') };
  expect(replayed(undefined, true)).toMatchObject(said);
  expect(replayed({ timeline: 2, position: '0/9000000', atMs: 2 }, true)).toMatchObject(reaches);
});
