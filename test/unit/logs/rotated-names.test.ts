import { expect, test } from 'vitest';
import {
  byAge,
  byRestartAndAge,
  isCompressed,
  isRotationOf,
} from '../../../src/sources/logs/discovery/rotated-names.ts';

test.each([
  ['app.log.1', 'app.log', true],
  ['app.log.12.gz', 'app.log', true],
  ['app.log-20260101', 'app.log', true],
  ['app.log.2026-01-01T00:00:00', 'app.log', true],
  ['0.log.20260101-000000', '0.log', true],
  ['app-2026-01-01.log', 'app.log', true],
  ['app.1.log', 'app.log', true],
  ['app-2026-01-01T00-00-00.000.log.gz', 'app.log', true],
  ['app.log.old', 'app.log', true],
  ['app.log~', 'app.log', true],
  ['app.log.gz', 'app.log', true],
  ['app.log.json', 'app.log', false],
  ['app.log.err', 'app.log', false],
  ['app.logger', 'app.log', false],
  ['app2.log', 'app.log', false],
  ['other.log.1', 'app.log', false],
  ['app.log', 'app.log', false],
])('%s of %s: rotated %s', (name, base, isRotated) => {
  expect(isRotationOf(name, base)).toBe(isRotated);
});

test.each([
  [
    'app.log',
    ['app.log', 'app.log.1', 'app.log.10', 'app.log.2.gz'],
    ['app.log.10', 'app.log.2.gz', 'app.log.1', 'app.log'],
  ],
  [
    'app.log',
    ['app.log-20260103', 'app.log', 'app.log-20260101.gz', 'app.log-20260102'],
    ['app.log-20260101.gz', 'app.log-20260102', 'app.log-20260103', 'app.log'],
  ],
  ['app.log', ['app-2026-02-01.log', 'app-2026-01-31.log'], ['app-2026-01-31.log', 'app-2026-02-01.log']],
])('generations of %s, oldest first', (base, names, expected) => {
  const sorted = names.map((name) => ({ name, mtimeNs: 0n })).sort(byAge(base, []));
  expect(sorted.map(({ name }) => name)).toEqual(expected);
});

test('names that do not tell: by time', () => {
  const sorted = [
    { name: 'app.log.old', mtimeNs: 2n },
    { name: 'app.log.prev', mtimeNs: 1n },
  ].sort(byAge('app.log', []));
  expect(sorted.map(({ name }) => name)).toEqual(['app.log.prev', 'app.log.old']);
});

test.each([
  ['upwards', [1n, 2n, 3n], ['app.log.1', 'app.log.2', 'app.log.10']],
  ['downwards', [3n, 2n, 1n], ['app.log.10', 'app.log.2', 'app.log.1']],
  ['unknown, all of one time', [1n, 1n, 1n], ['app.log.10', 'app.log.2', 'app.log.1']],
])('counted names whose times go %s', (_, times, expected) => {
  const files = ['app.log.1', 'app.log.2', 'app.log.10'].map((name, i) => ({ name, mtimeNs: times[i]! }));
  const sorted = [...files].sort(byAge('app.log', files));
  expect(sorted.map(({ name }) => name)).toEqual(expected);
});

test('a container that was started again', () => {
  const names = ['1.log', '0.log', '10.log', '1.log.20260101-000000', '0.log.20260101-000000.gz'];
  const sorted = names.map((name) => ({ name, mtimeNs: 0n })).sort(byRestartAndAge('0.log', []));
  expect(sorted.map(({ name }) => name)).toEqual([
    '0.log.20260101-000000.gz',
    '0.log',
    '1.log.20260101-000000',
    '1.log',
    '10.log',
  ]);
});

test.each(['a.gz', 'a.log.1.zst', 'a.xz', 'a.bz2', 'a.Z'])('%s is compressed', (name) => {
  expect(isCompressed(name)).toBe(true);
});
