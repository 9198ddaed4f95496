import { describe, expect, test } from 'vitest';
import type { BackupType, IntegrityLevel } from '../../../../src/core/reasons.ts';
import { forEntry, withArchive } from '../../../../src/probes/backups/evidence.ts';
import { parseCheckpoints, timeOfName } from '../../../../src/probes/backups/files.ts';
import type { ReportFormat } from '../../../../src/probes/backups/source-blocks.ts';
import { parseReport as parseAt } from '../../../../src/probes/backups/tool-reports.ts';
import type { ArchivedLog } from '../../../../src/probes/stores/store-report.ts';

// The reports are shortened from the tools' manuals; the reports in test/e2e/backup-reports.long.test.ts are from the tools
// themselves.

const nowMs = Date.UTC(2026, 0, 3);
const parseReport = (format: ReportFormat, text: string) => parseAt(format, text, nowMs);

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
    { msg: 'stanza svc: missing data', endMs: nowMs },
  ]);
  const gone = { ...stanza, status: { code: 1, message: 'missing stanza path' }, backup: [] };
  expect(parseReport('pgbackrest', JSON.stringify([gone]))).toMatchObject({
    missingDirectory: 'the repository of stanza svc',
    failures: [],
  });
});

test('pgBackRest: the cluster of a backup, whose number has more digits than JavaScript counts', () => {
  const db = [1, 2].map((id) => ({ id, 'repo-key': 1, 'system-id': `SYSTEM${id}`, version: '15' }));
  const backup = (label: string, id: number) => ({
    ...{ label, database: { id, 'repo-key': 1 }, info: { size: 1 }, timestamp: { start: 1, stop: 2 } },
  });
  const stanza = { status: { code: 0 }, db, backup: [backup('A', 1), backup('B', 2)] };
  const text = JSON.stringify([stanza])
    .replace('"SYSTEM1"', '7345678901234567891')
    .replace('"SYSTEM2"', '7345678901234567893');
  expect(parseReport('pgbackrest', text).artifacts.map(({ content }) => content?.systemId)).toEqual([
    '7345678901234567891',
    '7345678901234567893',
  ]);
});

test('a report of several servers counts for none of them', () => {
  const stanzas = ['main', 'other'].map((name) => ({ name, status: { code: 2 }, backup: [] }));
  expect(() => parseReport('pgbackrest', JSON.stringify(stanzas))).toThrow(
    /it has the stanzas main, other; select one by --stanza/,
  );
  expect(() => parseReport('barman', JSON.stringify({ main: [], other: [] }))).toThrow(
    /it has the servers main, other; select one by its name/,
  );
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
  const later = backup('base_000000010000000000000006_D_000000010000000000000004');
  expect(parseReport('walg', JSON.stringify([...report, later])).artifacts.at(-1)).toMatchObject({
    parent: 'base_000000010000000000000004_D_000000010000000000000002',
  });
});

test('WAL-G: what wal-show --detailed-json of version 3 printed of a full backup and a delta', () => {
  const common = {
    ...{ storage_name: 'default', date_fmt: '%Y-%m-%dT%H:%M:%S.%fZ', hostname: 'db', data_dir: '/data' },
    ...{ pg_version: 150018, is_permanent: false, system_identifier: 7711240810066628000 },
  };
  const delta = {
    backup_name: 'base_000000010000000000000004_D_000000010000000000000002',
    ...{ time: '2026-11-23T05:52:55.334246917Z', wal_file_name: '000000010000000000000004' },
    ...{ start_time: '2026-11-23T05:52:54.429133Z', finish_time: '2026-11-23T05:52:55.335716Z' },
    ...{ start_lsn: 67108904, finish_lsn: 67109120, uncompressed_size: 272391, compressed_size: 46898 },
  };
  const full = {
    backup_name: 'base_000000010000000000000002',
    ...{ time: '2026-11-23T05:52:53.362246938Z', wal_file_name: '000000010000000000000002' },
    ...{ start_time: '2026-11-23T05:52:51.795569Z', finish_time: '2026-11-23T05:52:53.359856Z' },
    ...{ start_lsn: 33554472, finish_lsn: 33554688, uncompressed_size: 23223696, compressed_size: 4342109 },
  };
  const timeline = {
    ...{ id: 1, parent_id: 0, switch_point_lsn: 0 },
    ...{ start_segment: '000000010000000000000001', end_segment: '000000010000000000000005' },
    ...{ segments_count: 5, missing_segments: [], segment_range_size: 5, status: 'OK' },
    backups: [delta, full].map((backup) => ({ ...common, ...backup })),
  };
  expect(parseReport('walg', JSON.stringify([timeline]))).toMatchObject({
    artifacts: [
      {
        ...{ id: full.backup_name, startMs: Date.parse(full.start_time), sizeBytes: 4342109 },
        wal: [{ timeline: 1, start: '0/2000028', end: '0/2000100' }],
      },
      { id: delta.backup_name, parent: full.backup_name, endMs: Date.parse(delta.finish_time) },
    ],
    archives: [{ first: '000000010000000000000001', last: '000000010000000000000005' }],
  });
  expect(parseReport('walg', '[]').artifacts).toEqual([]);
});

test('WAL-G: positions are numbers, and give the log that a backup needs', () => {
  const backup = {
    backup_name: 'base_000000010000000100000040',
    start_time: '2026-01-01T02:00:00Z',
    finish_time: '2026-01-01T02:05:00Z',
    start_lsn: 2 ** 32 + 0x40000028,
    finish_lsn: 2 ** 32 + 0x40000138,
    compressed_size: 10,
  };
  expect(parseReport('walg', JSON.stringify([backup])).artifacts[0]!.wal).toEqual([
    { timeline: 1, start: '1/40000028', end: '1/40000138' },
  ]);
});

describe('Barman', () => {
  // The reports are shortened from Barman 3.4, on a host that is one hour ahead of UTC.
  const done = (backup_id: string, end_time: string, end_time_timestamp: string) => ({
    ...{ backup_id, end_time, end_time_timestamp, status: 'DONE', size_bytes: 10, wal_size_bytes: 5 },
  });
  const listed = done('20260101T030000', 'Thu Jan  1 03:05:00 2026', '1767233100');
  const shown = (wal: object) => ({
    backup_id: '20260101T030000',
    status: 'DONE',
    base_backup_information: {
      ...{ begin_lsn: '0/8000028', end_lsn: '0/9000000', timeline: 1 },
      ...{ begin_wal: '000000010000000000000008', end_wal: '000000010000000000000008' },
      ...{ begin_time_timestamp: '1767232800', end_time_timestamp: '1767233100' },
    },
    wal_information: { last_available: '00000001000000000000000B', no_of_files: 3, ...wal },
  });
  const parse = (...documents: object[]) =>
    parseReport('barman', documents.map((each) => JSON.stringify(each)).join(''));

  test('a list has no start but the id, on the clock of its host', () => {
    expect(parse({ main: [listed] }).artifacts).toMatchObject([
      { id: '20260101T030000', startMs: 1767232800_000, endMs: 1767233100_000, walStart: undefined },
    ]);
  });

  test('a backup that failed has neither end nor size', () => {
    const { artifacts, failures } = parse({
      main: [listed, { backup_id: '20260102T030000', status: 'FAILED' }],
    });
    expect(artifacts).toHaveLength(1);
    expect(failures).toEqual([
      {
        id: '20260102T030000',
        endMs: Date.UTC(2026, 0, 2, 2),
        msg: 'backup 20260102T030000 failed',
      },
    ]);
  });

  test('the list and one backup behind it, which has the range of the log', () => {
    expect(parse({ main: [listed] }, { main: shown({}) })).toMatchObject({
      artifacts: [
        {
          walStart: '000000010000000000000008',
          wal: [{ timeline: 1, start: '0/8000028', end: '0/9000000' }],
        },
      ],
      gap: undefined,
    });
  });

  test.each<[string, object, RegExp]>([
    ['fewer segments than lie between the ends', { no_of_files: 1 }, /2 segments are missing .* between/],
    ['none at all', { last_available: null, no_of_files: 0 }, /lacks segments of 20260101T030000/],
  ])('%s is a gap', (_, wal, gap) => {
    expect(parse({ main: [listed] }, { main: shown(wal) })).toMatchObject({
      gap: expect.stringMatching(gap),
    });
  });

  test('messages beside it are no servers; nothing but messages is unreadable', () => {
    const message = { _ERROR: ["Unknown backup 'latest' for server 'main'"] };
    expect(parse({ main: [] }, message).artifacts).toEqual([]);
    expect(() => parse(message)).toThrow(/Unknown backup 'latest'/);
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
    artifacts: [{ id: 'a', verified: 'ok', sizeBytes: 5, recoverableToMs: Date.UTC(2026, 0, 1, 5) }],
    failures: [{ id: 'b', msg: 'disk full' }],
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
  const walG = (status: string, missing: readonly number[] = []) => {
    const backup = {
      ...{ backup_name: `base_${segment(2)}`, compressed_size: 10 },
      ...{ start_time: '2026-01-01T02:00:00Z', finish_time: '2026-01-01T02:05:00Z' },
    };
    const timeline = {
      ...{ id: 1, start_segment: segment(1), end_segment: segment(9), status, backups: [backup] },
      missing_segments: missing.map((number) => segment(number)),
    };
    return parseReport('walg', JSON.stringify([timeline]));
  };
  const log = (archived: string, over = {}) => ({ archived, archivedAtMs: atMs, ...over });
  const idle = log(segment(9), { wholeUntilMs: atMs + 5 });

  test.each<[string, ReturnType<typeof parseReport>, ArchivedLog | undefined, number | undefined]>([
    ['of pgBackRest, which names its first and last segment only', pgBackRest(1, 9), idle, undefined],
    ['when a segment was archived says nothing of its content', walG('OK'), log(segment(9)), undefined],
    ['reaches as far as the poll of a server that is idle', walG('OK'), idle, atMs + 5],
    ['is behind the server', walG('OK'), { ...idle, archived: segment(10) }, undefined],
    ['is of another timeline', walG('OK'), { ...idle, archived: segment(9, 2) }, undefined],
    ['of a server that is not polled', walG('OK'), undefined, undefined],
    ['of WAL-G with a segment missing after the backup', walG('LOST_SEGMENTS', [4]), idle, undefined],
    ['of WAL-G with a segment missing before it', walG('LOST_SEGMENTS', [1]), idle, atMs + 5],
  ])('%s', (_, evidence, server, toMs) => {
    const { artifacts } = withArchive(evidence, server);
    expect(artifacts.map(({ recoverableToMs }) => recoverableToMs)).toEqual([toMs]);
  });

  test('a segment that is missing is a gap if a backup needs it', () => {
    expect(walG('LOST_SEGMENTS', [4, 5]).gap).toBe(
      `2 segments are missing in the archive, from ${segment(4)} to ${segment(5)}`,
    );
    expect(walG('LOST_SEGMENTS', [1]).gap).toBeUndefined();
  });
});

describe('what an entry takes of a report', () => {
  const backup = (label: string, prior: string | null, error = false) => ({
    ...{ label, prior, error, timestamp: { start: 1767232800, stop: 1767233100 }, info: { size: 1 } },
  });
  const stanza = {
    ...{ name: 'svc', status: { code: 0 } },
    backup: [backup('F', null), backup('F_I', 'F'), backup('bad', null, true)],
  };
  const report = parseReport('pgbackrest', JSON.stringify([stanza]));
  const taken = (...[type, level, verify]: [BackupType, IntegrityLevel, string[]?]) =>
    forEntry(report, type, level, { format: 'pgbackrest', verify }).artifacts.map((each) => [
      each.id,
      each.verified ?? each.verify?.tool?.argv.at(-1),
    ]);

  test.each<[string, ReturnType<typeof taken>, ReturnType<typeof taken>]>([
    [
      'full backups, with what the tool says',
      taken('full', 'header'),
      [
        ['F', 'ok'],
        ['bad', 'corrupt'],
      ],
    ],
    [
      'unknown where more is asked for',
      taken('full', 'full'),
      [
        ['F', 'unknown'],
        ['bad', 'corrupt'],
      ],
    ],
    [
      'the tool verifies',
      taken('full', 'full', ['verify', '{id}']),
      [
        ['F', 'F'],
        ['bad', 'corrupt'],
      ],
    ],
    [
      'full ones stand in for incremental ones',
      taken('incremental', 'header'),
      [
        ['F', 'ok'],
        ['F_I', 'ok'],
        ['bad', 'corrupt'],
      ],
    ],
  ])('%s', (_, found, expected) => {
    expect(found).toEqual(expected);
  });
});
