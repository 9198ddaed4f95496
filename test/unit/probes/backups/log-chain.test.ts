import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  placeSegments,
  type Segment,
  type SegmentContent,
} from '../../../../src/probes/backups/formats/segments.ts';
import {
  gapIn,
  lineageOf,
  replayBinlog,
  replayWal,
  type Switch,
} from '../../../../src/probes/backups/log-chain.ts';
import { runs } from '../../../size.ts';

const mib = 2 ** 20;
const minuteMs = 60_000;
/** Names and positions in PostgreSQL's notation, from its documentation. */
const hex = (value: number, digits: number) => value.toString(16).toUpperCase().padStart(digits, '0');
const lsnOf = (byte: number) => `${hex(Math.floor(byte / 2 ** 32), 1)}/${hex(byte % 2 ** 32, 1)}`;
const nameOf = (timeline: number, number: number, bytes: number) => {
  const perId = 2 ** 32 / bytes;
  return `${hex(timeline, 8)}${hex(Math.floor(number / perId), 8)}${hex(number % perId, 8)}`;
};
const segmentsOf = (contents: Record<string, SegmentContent | undefined>): Segment[] =>
  Object.entries(contents).map(([name, content]) => ({
    ...{ name, endMs: 1e15, sizeBytes: 1 },
    ...(content && { content }),
  }));

describe('a base backup and an archive of a server that fails over', () => {
  /** The state of a segment in the archive. */
  const states = ['good', 'good', 'good', 'good', 'good', 'gone', 'damaged', 'unread', 'unverified'] as const;
  const world = fc.record({
    bytes: fc.constantFrom(mib, 16 * mib, 1024 * mib),
    first: fc.constantFrom(0, 2, 253),
    /** How many halves of segments each timeline but the newest wrote before a server left it. */
    switches: fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 3 }),
    states: fc.array(fc.constantFrom(...states), { minLength: 40, maxLength: 40 }),
    tail: fc.integer({ min: 1, max: 4 }),
    /** Halves of segments from the first; the end is `lengthHalves` later. */
    startHalves: fc.integer({ min: 0, max: 6 }),
    lengthHalves: fc.integer({ min: 1, max: 4 }),
  });

  test('reach as far as there is a good segment for each place that the newest server knows', () => {
    fc.assert(
      fc.property(world, ({ bytes, first, switches, states: kept, tail, startHalves, lengthHalves }) => {
        const begin = first * bytes;
        const half = bytes / 2;
        // This is the history of the newest timeline, as the server writes it, and the writer of each half.
        const history: Switch[] = [];
        const writer: number[] = [];
        for (const [index, halves] of switches.entries()) {
          for (let i = 0; i < halves; i++) writer.push(index + 1);
          history.push({ timeline: index + 1, lsn: lsnOf(begin + writer.length * half) });
        }
        const newest = switches.length + 1;
        for (let i = 0; i < 2 * tail; i++) writer.push(newest);
        const histories = new Map(history.map((_, index) => [index + 2, history.slice(0, index + 1)]));

        // A timeline copies the part of its first segment that its parent wrote, and leaves a shorter file to the parent.
        const contents: Record<string, SegmentContent | undefined> = {};
        const stateOf = new Map<string, string>();
        let used = 0;
        for (let number = first; number < first + Math.ceil(writer.length / 2); number++) {
          const at = 2 * (number - first);
          const writers = new Set([writer[at - 1] ?? 1, writer[at]!, writer[at + 1] ?? writer[at]!]);
          for (const timeline of writers) {
            const name = nameOf(timeline, number, bytes);
            if (stateOf.has(name)) continue;
            const state = kept[used++ % kept.length]!;
            stateOf.set(name, state);
            if (state === 'gone') continue;
            contents[name] =
              state === 'unread'
                ? undefined
                : {
                    newestMs: number * 1000 + timeline,
                    bytes,
                    ...(state === 'damaged' && { fault: 'torn' }),
                    ...(state === 'unverified' && { unverified: 'no key' }),
                  };
          }
        }
        const archive = {
          kind: 'wal' as const,
          placed: placeSegments('wal', segmentsOf(contents), bytes),
          histories,
          walSegmentBytes: bytes,
        };

        const start = Math.min(startHalves, writer.length - 1);
        const end = Math.min(start + lengthHalves, writer.length);
        const timeline = writer[start]!;
        // A backup that ends on another timeline has one range for each timeline; this backup ends where its own timeline does.
        const own = writer.lastIndexOf(timeline) + 1;
        const endHalf = Math.min(end, own);
        const range = { timeline, start: lsnOf(begin + start * half), end: lsnOf(begin + endHalf * half) };
        const replay = replayWal([range], archive);

        const startNumber = first + Math.floor(start / 2);
        const expected: string[] = [];
        let number = startNumber;
        let obstacle: string | undefined;
        for (; ; number++) {
          // The server follows the file of the newest timeline that has begun in or before this segment.
          const halves = [2 * (number - first), 2 * (number - first) + 1];
          const by = Math.max(...halves.map((at) => writer[at] ?? 0), 0) || newest;
          // A switch at the very end of a segment begins in the next one.
          const name = nameOf(by, number, bytes);
          const state = stateOf.get(name) ?? 'gone';
          if (state !== 'good') {
            obstacle = name;
            break;
          }
          expected.push(name);
        }
        expect([replay.first, replay.last]).toEqual([expected[0], expected.at(-1)]);
        const isEnough = number * bytes >= begin + endHalf * half;
        expect(replay.isEnough).toBe(isEnough);
        // Without an archived file of a later position this is the end of the archive, which is no fault.
        const later = Object.keys(contents).some((name) => numberOf(name, bytes) >= number);
        if (expected.length > 0 && !later) expect(replay.ends).toBeUndefined();
        else expect(replay.ends).toContain(obstacle);
        const shown = expected.at(-1);
        expect(replay.newestMs).toBe(shown && contents[shown]!.newestMs);
      }),
      { numRuns: runs(2000) },
    );
  });

  const numberOf = (name: string, bytes: number): number => {
    const [id, segment] = [name.slice(8, 16), name.slice(16)].map((part) => Number.parseInt(part, 16));
    return id! * (2 ** 32 / bytes) + segment!;
  };
});

describe('a base backup', () => {
  const bytes = 16 * mib;
  const name = (number: number, timeline = 1) => nameOf(timeline, number, bytes);
  const range = { timeline: 1, start: '0/2000028', end: '0/3000100' };
  const good = (over: SegmentContent = {}): SegmentContent => ({ bytes, ...over });
  const archiveOf = (contents: Record<string, SegmentContent | undefined>, server = {}) => ({
    kind: 'wal' as const,
    placed: placeSegments('wal', segmentsOf(contents)),
    histories: new Map<number, Switch[]>(),
    server,
  });
  const wal = (over: NonNullable<SegmentContent['wal']>) => good({ wal: over });
  const two = { [name(2)]: good(), [name(3)]: good() };

  test('that does not say which WAL it needs cannot be replayed', () => {
    expect(replayWal([], archiveOf(two))).toMatchObject({
      isEnough: false,
      ends: expect.stringContaining('does not say'),
    });
  });

  test.each([
    ['its last byte is in the archive', '0/3000000', [2], true],
    ['the byte after it is not needed', '0/3000001', [2], false],
  ])('is consistent once %s', (_, end, numbers, isEnough) => {
    const contents = Object.fromEntries(numbers.map((number) => [name(number), good()]));
    expect(replayWal([{ ...range, end }], archiveOf(contents)).isEnough).toBe(isEnough);
  });

  test('of several ranges begins with the first and is consistent at the end of the last', () => {
    const ranges = [
      { timeline: 1, start: '0/2000028', end: '0/2800000' },
      { timeline: 2, start: '0/2800000', end: '0/3000100' },
    ];
    const histories = new Map([[2, [{ timeline: 1, lsn: '0/2800000' }]]]);
    const archive = archiveOf({ [name(2, 2)]: good(), [name(3, 2)]: good() });
    expect(replayWal(ranges, { ...archive, histories })).toMatchObject({ first: name(2, 2), isEnough: true });
    const short = { ...archiveOf({ [name(2, 2)]: good() }), histories };
    expect(replayWal(ranges, short).isEnough).toBe(false);
  });

  test('takes from itself what the archive lacks, and of both the one in the archive', () => {
    const own = { [name(2)]: good({ newestMs: 1 }), [name(3)]: good({ newestMs: 2 }), README: good() };
    const archive = archiveOf({ [name(3)]: good({ newestMs: 3 }) });
    expect(replayWal([range], archive, own)).toMatchObject({ first: name(2), last: name(3), newestMs: 3 });
    expect(replayWal([range], undefined, own)).toMatchObject({ newestMs: 2, isEnough: true });
  });

  test('with segments of 64 MiB, as the WAL in it says, is read without an archive', () => {
    const large = 64 * mib;
    const own = { [nameOf(1, 2, large)]: { bytes: large, wal: { segmentBytes: large } } };
    const placed = [{ timeline: 1, start: lsnOf(2 * large), end: lsnOf(3 * large) }];
    expect(replayWal(placed, undefined, own as never)).toMatchObject({
      isEnough: true,
      first: nameOf(1, 2, large),
    });
  });

  const ofServers = (backup: string | undefined, ...ids: (string | undefined)[]) => {
    const contents = ids.map((systemId, at) => [
      name(at + 2),
      systemId ? wal({ systemId } as never) : good(),
    ]);
    return replayWal([range], archiveOf(Object.fromEntries(contents)), {}, backup).last;
  };
  test.each([
    ['the backup itself', '1', ['1', '2', '1'], 2],
    ['its first segment', undefined, ['1', '2', '1'], 2],
    ['a later segment, the first that tells', undefined, [undefined, '1', '2'], 3],
    ['the backup, where a segment does not tell', '1', [undefined, '1', '2'], 3],
    ['nothing: none tells', undefined, [undefined, undefined, undefined], 4],
  ])('ends where a segment is of another server than %s', (_, backup, ids, last) => {
    expect(ofServers(backup, ...ids)).toBe(name(last));
  });

  test.each([
    ['was read after the one before', name(2), true],
    ['was read after another one', name(1), false],
    ['was read as a whole', undefined, true],
  ])('goes on with a record that the segment before has begun only if it %s', (_, after, goesOn) => {
    const open = wal({ remainder: { open: {} } } as never);
    const next = good(after === undefined ? {} : { after });
    const contents = { [name(2)]: open, [name(3)]: next };
    expect(replayWal([range], archiveOf(contents)).last).toBe(name(goesOn ? 3 : 2));
    // If no record continues, it does not matter what was read before.
    for (const before of [wal({ remainder: {} } as never), wal({} as never), good()])
      expect(replayWal([range], archiveOf({ ...contents, [name(2)]: before })).last).toBe(name(3));
  });

  test('reaches to the time that the server states for its newest archived segment, if that is its last', () => {
    const contents = { [name(2)]: good({ newestMs: 5 }), [name(3)]: good() };
    const reached = (server: object) => replayWal([range], archiveOf(contents, server)).newestMs;
    expect(reached({ archived: name(3), wholeUntilMs: 9 })).toBe(9);
    // The time of a commit may be later than the time that the server stated before.
    expect(reached({ archived: name(3), wholeUntilMs: 4 })).toBe(5);
    expect(reached({ archived: name(4), wholeUntilMs: 9 })).toBe(5);
    expect(reached({ archived: name(3), archivedBytes: bytes + 1, wholeUntilMs: 9 })).toBe(5);
    expect(replayWal([range], archiveOf(two))).not.toHaveProperty('newestMs');
    // Another server has segments of the same names.
    const ofServer = (identity: string) => {
      const log = { [name(2)]: good({ newestMs: 5 }), [name(3)]: wal({ systemId: '1' } as never) };
      return replayWal([range], archiveOf(log, { archived: name(3), wholeUntilMs: 9, identity })).newestMs;
    };
    expect([ofServer('1'), ofServer('2')]).toEqual([9, 5]);
  });

  test('that the newest timeline does not come from is not restored with its log, though every segment is there', () => {
    const archive = { ...archiveOf(two), histories: new Map([[2, [{ timeline: 1, lsn: '0/3000050' }]]]) };
    const segments = { [name(2)]: good(), [name(3, 2)]: good() };
    expect(replayWal([range], { ...archive, ...archiveOf(segments), histories: archive.histories })).toEqual({
      ends: expect.stringContaining('the backup does not belong'),
      isEnough: false,
    });
  });

  test('may begin in the middle of an archive that was read from its beginning', () => {
    const contents = [1, 2, 3, 4].map((number) => [name(number), good({ after: name(number - 1) })]);
    const server = { archived: name(4), wholeUntilMs: 9 };
    const replay = replayWal([range], archiveOf(Object.fromEntries(contents), server));
    expect(replay).toMatchObject({ first: name(2), last: name(4), newestMs: 9 });
  });

  const left: Switch[] = [{ timeline: 1, lsn: '0/3800000' }];
  const histories = new Map([
    [2, left],
    [3, [...left, { timeline: 2, lsn: '0/5000000' }]],
  ]);
  test.each([
    ['the newest of which the archive has the history', 1, undefined, [0, 3, 5]],
    ['the one that is asked for, though there is a newer one', 1, 2, [0, 3]],
    ['its own, if that is asked for', 1, 1, [0]],
    ['the newest from the second on', 2, undefined, [0, 3, 5]],
    ['its own where there is no newer one', 4, undefined, [0]],
  ])('follows %s', (_, timeline, asked, fromSegments) => {
    const end = timeline === 1 ? '0/3000100' : '0/4000000';
    const lineage = lineageOf({ timeline, start: '0/2000028', end }, { histories }, asked);
    expect(lineage.timelines.map(({ fromSegment }) => fromSegment)).toEqual(fromSegments);
    expect(lineage.timelines.at(-1)!.timeline).toBe(asked ?? Math.max(timeline, 3));
    expect(lineage.fault).toBeUndefined();
  });

  test.each([
    ['ends where the server left its timeline', 1, '0/3800000', false],
    ['ends after that', 1, '0/3800001', true],
    ['is of a timeline that the newest one does not come from', 7, '0/1', true],
  ])('%s: fault %4$s', (_, timeline, end, isFault) => {
    const lineage = lineageOf({ timeline, start: '0/1', end }, { histories }, timeline === 7 ? 3 : undefined);
    expect(lineage.fault !== undefined).toBe(isFault);
  });
});

describe('a dump and an archive of binary logs', () => {
  const file = (number: number) => `binlog.${String(number).padStart(6, '0')}`;
  /** The position of the backup, in each file. */
  const places = { 4: '', 100: '', 101: '' };
  const copy = fc.record({
    state: fc.constantFrom('good', 'good', 'good', 'good', 'gone', 'damaged', 'unread', 'unverified'),
    /** A copy that was made while the server wrote the file ends early: it has no last event, and fewer transactions. */
    isEarly: fc.constantFrom(false, false, false, true),
    transactions: fc.nat(2),
    hasGtids: fc.boolean(),
  });
  const world = fc.record({
    files: fc.array(copy, { minLength: 1, maxLength: 8 }),
    taken: fc.nat(8),
    position: fc.constantFrom(4, 100, 101),
    firstNumber: fc.constantFrom(1, 42),
  });

  test('reach as far as each file is there, good and complete', () => {
    fc.assert(
      fc.property(world, ({ files, taken, position, firstNumber }) => {
        const at = Math.min(taken, files.length - 1);
        let written = 0;
        const contents: Record<string, SegmentContent | undefined> = {};
        const copies = files.map(({ state, isEarly, transactions, hasGtids }, index) => {
          const from = written;
          written += transactions;
          const copied = isEarly ? from : written;
          const content: SegmentContent = {
            newestMs: 1000 + index,
            bytes: 100,
            ...(state === 'damaged' && { fault: 'torn' }),
            ...(state === 'unverified' && { unverified: 'encrypted' }),
            binlog: {
              isClosed: !isEarly,
              places,
              ...(hasGtids && { fromGtids: `0-${from}`, toGtids: `0-${copied}` }),
            },
          };
          if (state !== 'gone')
            contents[file(firstNumber + index)] = state === 'unread' ? undefined : content;
          return { isGood: state === 'good', isWhole: !isEarly, isAll: copied === written, hasGtids };
        });
        // A file is followed by the next one if nothing was written between the two copies, according to the positions in both,
        // or else to the last event of the first.
        let reached = -1;
        for (let index = at; copies[index]?.isGood; index++) {
          const before = copies[index - 1]!;
          const both = index > at && before.hasGtids && copies[index]!.hasGtids;
          if (index > at && !(both ? before.isAll : before.isWhole)) break;
          reached = index;
        }
        const replay = replayBinlog(
          { file: file(firstNumber + at), position },
          { kind: 'binlog', placed: placeSegments('binlog', segmentsOf(contents)), histories: new Map() },
        );
        const isEnough = reached >= at && position <= 100;
        expect(replay.isEnough).toBe(isEnough);
        if (!isEnough) {
          expect(replay.ends).toContain(file(firstNumber + at));
          return;
        }
        expect(replay.first).toBe(file(firstNumber + at));
        expect(replay.last).toBe(file(firstNumber + reached));
        expect(replay.newestMs).toBe(1000 + reached);
        const isAtEnd = !Object.keys(contents).some((name) => name > file(firstNumber + reached));
        expect(replay.ends === undefined).toBe(isAtEnd);
      }),
      { numRuns: runs(2000) },
    );
  });

  const content: SegmentContent = { bytes: 100, newestMs: 5, binlog: { isClosed: false, places } };
  const replayed = (names: string[], over: Partial<SegmentContent> = {}) =>
    replayBinlog(
      { file: file(1), position: 4 },
      {
        kind: 'binlog',
        placed: placeSegments(
          'binlog',
          segmentsOf(Object.fromEntries(names.map((name) => [name, { ...content, ...over }]))),
        ),
        histories: new Map(),
        server: { archived: file(1), archivedBytes: 100, wholeUntilMs: 9 },
      },
    );

  test('reach to the time that the server states for the end of the archive, not beyond a gap', () => {
    expect(replayed([file(1)]).newestMs).toBe(9);
    expect(replayed([file(1), file(3)])).toMatchObject({
      newestMs: 5,
      ends: `the file after ${file(1)} is missing`,
    });
    expect(replayed([file(2)]).ends).toBe(
      `${file(1)}, in which the backup was taken, is missing in the archive`,
    );
  });

  test('a file that is there twice, compressed and not, is no gap', () => {
    const replay = replayed([file(1), `${file(1)}.gz`, `${file(2)}.gz`, file(2)], {
      binlog: { isClosed: true, places },
    });
    expect(replay).toMatchObject({ first: file(1), last: `${file(2)}.gz`, isEnough: true });
    expect(replay.ends).toBeUndefined();
  });

  test('no time in a file counts that is later than the file, such as one of SET timestamp, and the time of the file is none of its content', () => {
    const files = { [file(1)]: { ...content, newestMs: 9 * minuteMs } };
    const replayedAt = (endMs: number) => {
      const placed = placeSegments(
        'binlog',
        segmentsOf(files).map((each) => ({ ...each, endMs })),
      );
      const archive = { kind: 'binlog' as const, placed, histories: new Map(), aheadMs: minuteMs };
      return replayBinlog({ file: file(1), position: 4 }, archive).newestMs;
    };
    const atSeconds = [477, 479, 480, 540];
    expect(atSeconds.map((s) => replayedAt(s * 1000))).toEqual([undefined, 479_000, 480_000, 480_000]);
  });

  test('a place in a file that is none of a binary log is in no archive', () => {
    const archive = { kind: 'binlog' as const, placed: [], histories: new Map() };
    expect(replayBinlog({ file: 'nowhere', position: 4 }, archive).isEnough).toBe(false);
  });

  test('after a closed file a file of which no positions are known goes on', () => {
    const files = {
      [file(1)]: { ...content, binlog: { isClosed: true, places } },
      [file(2)]: { bytes: 100 },
    };
    const placed = placeSegments('binlog', segmentsOf(files));
    const archive = { kind: 'binlog' as const, placed, histories: new Map() };
    expect(replayBinlog({ file: file(1), position: 4 }, archive).last).toBe(file(2));
  });

  test('a file of which nothing was read proves nothing', () => {
    expect(replayed([file(1)], { bytes: undefined } as never).isEnough).toBe(false);
  });
});

describe('a gap in an archive', () => {
  const name = (number: number, timeline = 1) => nameOf(timeline, number, 16 * mib);
  const gap = (names: string[], histories?: Map<number, Switch[]>) =>
    gapIn({
      kind: 'wal',
      placed: placeSegments('wal', segmentsOf(Object.fromEntries(names.map((each) => [each, {}])))),
      ...(histories && { histories }),
    });
  const between = (one: string, other: string) => `segments are missing between ${one} and ${other}`;
  const history = (lsn: string) =>
    new Map([
      [
        12,
        [
          { timeline: 1, lsn: '0/0' },
          { timeline: 2, lsn: '0/1' },
          { timeline: 11, lsn },
        ],
      ],
    ]);

  test.each<[string, string[], Map<number, Switch[]> | undefined, string | undefined]>([
    ['none', [name(1), name(2), name(3)], undefined, undefined],
    ['none, of one segment', [name(7)], undefined, undefined],
    ['one segment', [name(1), name(3)], undefined, between(name(1), name(3))],
    ['the same with histories', [name(1), name(3)], new Map(), between(name(1), name(3))],
    ['a new timeline in the same segment', [name(2), name(2, 2)], undefined, undefined],
    ['a new timeline in the next segment', [name(2), name(3, 2)], undefined, undefined],
    ['a new timeline after a gap', [name(2), name(4, 2)], undefined, between(name(2), name(4, 2))],
    [
      'a new timeline without its history',
      [name(2), name(3, 12)],
      new Map(),
      `0000000C.history is missing, which says where ${name(3, 12)} goes on from`,
    ],
    ['a new timeline from its first segment', [name(9, 11), name(3, 12)], history('0/3800000'), undefined],
    [
      'from an older one: that was written again',
      [name(9, 11), name(2, 12)],
      history('0/3800000'),
      undefined,
    ],
    [
      'a new timeline without its first segment',
      [name(9, 11), name(4, 12)],
      history('0/3800000'),
      between(name(9, 11), name(4, 12)),
    ],
  ])('%s', (_, names, histories, expected) => {
    expect(gap(names, histories)).toBe(expected);
  });
});
