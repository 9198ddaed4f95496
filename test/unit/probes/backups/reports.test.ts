import { describe, expect, test } from 'vitest';
import { parseCheckpoints, timeOfName } from '../../../../src/probes/backups/files.ts';
import { parseReport, withArchive } from '../../../../src/probes/backups/reports.ts';
import type { ArchivedLog } from '../../../../src/probes/stores/store-report.ts';

// Shapes as the tools' manuals show them, shortened.

test('pgBackRest: labels, parents, errors of pages, WAL', () => {
  const stanza = {
    name: 'svc',
    status: { code: 0, message: 'ok' },
    backup: [
      {
        label: '20260101-020000F',
        prior: null,
        error: false,
        timestamp: { start: 1767232800, stop: 1767233100 },
        info: { size: 1000 },
        lsn: { start: '0/2000028', stop: '0/2000100' },
        archive: { start: '000000010000000000000002', stop: '000000010000000000000002' },
      },
      {
        label: '20260101-020000F_20260101-030000I',
        prior: '20260101-020000F',
        error: true,
        timestamp: { start: 1767236400, stop: 1767236500 },
        info: { size: 1000 },
      },
    ],
  };
  expect(parseReport('pgbackrest', JSON.stringify([stanza]))).toMatchObject({
    artifacts: [
      {
        id: '20260101-020000F',
        startMs: 1767232800_000,
        verified: 'ok',
        wal: [{ timeline: 1, start: '0/2000028' }],
      },
      { parent: '20260101-020000F', verified: 'corrupt' },
    ],
    failures: [],
  });
  const broken = { ...stanza, status: { code: 3, message: 'missing data' }, backup: [] };
  expect(parseReport('pgbackrest', JSON.stringify([broken])).failures).toMatchObject([
    { msg: 'missing data' },
  ]);
});

test('WAL-G: a delta names its parent', () => {
  const backup = (name: string) => ({
    backup_name: name,
    start_time: '2026-01-01T02:00:00Z',
    finish_time: '2026-01-01T02:05:00Z',
    compressed_size: 10,
  });
  const report = [
    backup('base_000000010000000000000002'),
    backup('base_000000010000000000000004_D_000000010000000000000002'),
  ];
  expect(parseReport('walg', JSON.stringify(report)).artifacts).toMatchObject([
    { id: 'base_000000010000000000000002', parent: undefined, verified: 'unknown' },
    { parent: 'base_000000010000000000000002' },
  ]);
  expect(parseReport('walg', 'null').artifacts).toEqual([]);
});

test('Barman: done and failed', () => {
  const backup = (backup_id: string, status: string) => ({
    backup_id,
    status,
    begin_time_timestamp: '1767232800',
    end_time_timestamp: '1767233100',
    size_bytes: 10,
  });
  const report = { svc: [backup('20260101T020000', 'DONE'), backup('20260102T020000', 'FAILED')] };
  expect(parseReport('barman', JSON.stringify(report))).toMatchObject({
    artifacts: [{ id: '20260101T020000', startMs: 1767232800_000 }],
    failures: [{ id: '20260102T020000' }],
  });
});

test('a form for scripts', () => {
  const report = {
    backups: [
      { id: 'a', start: '2026-01-01T02:00:00Z', end: '2026-01-01T02:05:00Z', size: 5, verified: true },
      { id: 'b', start: 1767236400, ok: false, msg: 'disk full' },
    ],
    log: { from: '2026-01-01T02:00:00Z', to: '2026-01-01T05:00:00Z' },
  };
  expect(parseReport('json', JSON.stringify(report))).toMatchObject({
    artifacts: [{ id: 'a', verified: 'ok', sizeBytes: 5 }],
    failures: [{ id: 'b', msg: 'disk full' }],
    runs: [{ lastEndMs: Date.UTC(2026, 0, 1, 5) }],
  });
});

test.each([
  ['pgbackrest', '{}'],
  ['walg', '[{"backup_name": 1}]'],
  ['barman', '{"svc": 1}'],
  ['json', '{"backups": [{"start": "never"}]}'],
  ['json', 'no JSON'],
] as const)('%s: %s is unreadable, not empty', (format, text) => {
  expect(() => parseReport(format, text)).toThrow(expect.objectContaining({ reason: 'evidence_unreadable' }));
});

test.each([
  ['20260102T030405Z', Date.UTC(2026, 0, 2, 3, 4, 5)],
  ['2026-01-02_03-04-05', Date.UTC(2026, 0, 2, 3, 4, 5)],
  ['20260102', Date.UTC(2026, 0, 2)],
  ['1767323045', 1767323045_000],
  ['2026', undefined],
  ['20261332', undefined],
  [undefined, undefined],
])('the time in a name: %s', (text, ms) => {
  expect(timeOfName(text)).toBe(ms);
});

test('checkpoints of a physical MySQL backup', () => {
  const text = 'backup_type = full-prepared\nfrom_lsn = 0\nto_lsn = 49460\nlast_lsn = 49476\n';
  expect(parseCheckpoints(text)).toEqual({
    lsn: { from: '0', to: '49460' },
    type: 'full-prepared',
    isPrepared: true,
  });
});

describe('the archive that a tool keeps itself', () => {
  const atMs = Date.UTC(2026, 0, 2);
  const segment = (number: number, timeline = 1) =>
    `0000000${timeline}00000000${number.toString(16).toUpperCase().padStart(8, '0')}`;
  const pgBackRest = (min: number, max: number) => {
    const backup = {
      ...{ label: '20260101-020000F', prior: null, error: false, info: { size: 1 } },
      timestamp: { start: 1767232800, stop: 1767233100 },
      lsn: { start: '0/2000028', stop: '0/2000100' },
      archive: { start: segment(2), stop: segment(2) },
    };
    const archive = [{ id: '15-1', min: segment(min), max: segment(max) }];
    const stanza = { status: { code: 0, message: 'ok' }, archive, backup: [backup] };
    return parseReport('pgbackrest', JSON.stringify([stanza]));
  };
  const walG = (status: string) => {
    const backup = {
      ...{ backup_name: `base_${segment(2)}`, compressed_size: 10 },
      ...{ start_time: '2026-01-01T02:00:00Z', finish_time: '2026-01-01T02:05:00Z' },
    };
    const timeline = { id: 1, start_segment: segment(1), end_segment: segment(9), status, backups: [backup] };
    return parseReport('walg', JSON.stringify([timeline]));
  };
  const log = (archived: string, over = {}) => ({ archived, archivedAtMs: atMs, ...over });
  const idle = log(segment(9), { wholeUntilMs: atMs + 5 });

  test.each<[string, ReturnType<typeof parseReport>, ArchivedLog | undefined, number | undefined]>([
    ['reaches as far as the server has archived', pgBackRest(1, 9), log(segment(9)), atMs],
    ['and as far as the poll of a server that is idle', pgBackRest(1, 9), idle, atMs + 5],
    ['is behind the server', pgBackRest(1, 8), log(segment(9)), undefined],
    ['is of another timeline', pgBackRest(1, 9), log(segment(9, 2)), undefined],
    ['begins behind the backup', pgBackRest(3, 9), log(segment(9)), undefined],
    ['of a server that is not polled', pgBackRest(1, 9), undefined, undefined],
    ['of WAL-G', walG('OK'), log(segment(9)), atMs],
    ['of WAL-G with segments missing', walG('LOST_SEGMENTS'), log(segment(9)), undefined],
  ])('%s', (_, evidence, server, toMs) => {
    const { artifacts } = withArchive(evidence, server);
    expect(artifacts.map(({ recoverableToMs }) => recoverableToMs)).toEqual([toMs]);
  });
});
