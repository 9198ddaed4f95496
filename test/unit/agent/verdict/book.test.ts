import { describe, expect, test } from 'vitest';
import type { Change, Incident } from '../../../../src/agent/report.ts';
import { createIncidentBook } from '../../../../src/agent/verdict/book.ts';
import type { OpenProblem } from '../../../../src/agent/verdict/found.ts';

const startMs = Date.parse('2026-01-01T00:00:00.000Z');
const at = (seconds: number) => startMs + seconds * 1e3;
const atOf = (seconds: number) => new Date(at(seconds)).toISOString();
type Cause = NonNullable<OpenProblem['cause']>;

const problem = (line: string, seconds: number, cause: Partial<Cause> = {}): OpenProblem => ({
  line,
  sinceMs: at(seconds),
  cause: {
    id: line,
    severity: 'critical',
    kind: 'store_down',
    subject: line,
    what: `store ${line} is down`,
    about: {},
    ...cause,
  },
});
const never = () => false;
const change = (seconds: number, what = 'x', more: Partial<Change> = {}): Change => ({
  at: atOf(seconds),
  kind: 'note',
  what,
  ...more,
});
const encode = (section: object) => new TextEncoder().encode(JSON.stringify(section));
const empty = { version: 1, open: [], incidents: [], changes: [] };
type Book = ReturnType<typeof createIncidentBook>;
/** The book of an agent that starts with the state that another agent wrote. */
const written = (book: Book) => {
  const next = createIncidentBook();
  next.durable.restore(book.durable.freeze());
  return next;
};
const sectionOf = (book: Book) =>
  JSON.parse(new TextDecoder().decode(book.durable.freeze())) as {
    open: OpenProblem[];
    incidents: Incident[];
    changes: Change[];
  };

describe('a check that fails again a few seconds after it passed', () => {
  test.each([
    ['refused', 'refused', false],
    ['refused', 'connect_timeout', false],
    [undefined, undefined, false],
    ['credentials', 'credentials', false],
    ['credentials', 'tls_expired', true],
    ['refused', 'database_missing', true],
    ['tls_expired', 'refused', true],
    ['credentials', undefined, true],
    ['refused', undefined, false],
    [undefined, 'refused', false],
    ['refused', 'persistence', true],
    ['persistence', 'refused', true],
    ['not_ok', 'persistence', false],
    ['too_slow', 'starting', false],
    ['too_many_connections', 'refused', true],
    ['clusters_disagree', 'invalid_answer', true],
  ])('for %s and then %s', (first, then, isNew) => {
    const book = createIncidentBook();
    book.update([{ ...problem('main', 0), reason: first }], at(0), never);
    book.update([], at(10), never);
    expect(book.start({ line: 'main', sinceMs: at(20), reason: then }, at(20))).toBe(at(isNew ? 20 : 0));
    book.update([{ ...problem('main', isNew ? 20 : 0), reason: then }], at(20), never);
    book.update([], at(30), never);
    const own = book.incidents(at(200)).map(({ start, end }) => [start, end]);
    const one = [atOf(0), atOf(10)];
    expect(own).toEqual(isNew ? [[atOf(20), atOf(30)], one] : [[atOf(0), atOf(30)]]);
  });
  test('while it lasts, another reason does not begin another problem', () => {
    const book = createIncidentBook();
    book.update([{ ...problem('main', 0), reason: 'refused' }], at(0), never);
    expect(book.start({ line: 'main', sinceMs: at(20), reason: 'credentials' }, at(20))).toBe(at(0));
  });
});

test('a problem that is older than its cause, and that nobody knew before, is no incident of its own', () => {
  const book = createIncidentBook();
  book.update([{ ...problem('main', 0), cause: undefined, isOlder: true }], at(0), never);
  book.update([], at(10), never);
  expect(book.incidents(at(200))).toEqual([]);
});

describe('an incident', () => {
  const ended = (cause: Partial<Cause>, startS = 0, endS = 100) => {
    const book = createIncidentBook();
    book.update([problem('main', startS, cause)], at(startS), never);
    book.update([], at(endS), never);
    return book.incidents(at(endS));
  };
  test('has what it was, its start, its end and how it ended', () => {
    expect(ended({ severity: 'warning' }, 0, 100.6)).toEqual([
      {
        id: 'main',
        severity: 'warning',
        cause: 'store_down',
        subject: 'main',
        what: 'store main is down',
        over: 'store main recovered',
        start: atOf(0),
        end: atOf(100.6),
        durationSeconds: 101,
      },
    ]);
  });
  test('has consequences and changes where there were any', () => {
    expect(ended({ consequences: '2 roles', changes: [change(-1)] })).toMatchObject([
      { consequences: '2 roles', changes: [{ at: atOf(-1) }] },
    ]);
    expect(Object.keys(ended({ consequences: '', changes: [] })[0]!)).not.toEqual(
      expect.arrayContaining(['changes']),
    );
    expect(ended({ consequences: '', changes: [] })[0]).not.toHaveProperty('consequences');
    expect(ended({})[0]).not.toHaveProperty('changes');
  });
  test('lasts as long as it lasted, though the wall clock jumps forth twice, and back', () => {
    const book = createIncidentBook();
    book.update([problem('main', 0)], at(0), never);
    for (const [jumpS, nowS] of [
      [3_600, 3_600],
      [3_600, 7_200],
      [-1_800, 5_400],
    ] as const)
      book.clockJumped(jumpS * 1e3, at(nowS));
    book.update([], at(5_400 + 100), never);
    expect(book.incidents(at(5_500))).toMatchObject([
      { start: atOf(0), end: atOf(5_500), durationSeconds: 100 },
    ]);
  });
  test('lasts no time if a clock was set back', () => {
    expect(ended({}, 100, 0)).toMatchObject([{ durationSeconds: 0 }]);
  });
  test.each([
    ['x'.repeat(300), 'x'.repeat(300)],
    ['x'.repeat(301), `${'x'.repeat(299)}…`],
  ])('has texts of 300 characters at most', (text, kept) => {
    expect(ended({ what: text, subject: text })).toMatchObject([{ what: kept, subject: kept }]);
  });
  test('of two is written anew if one of them takes down more', () => {
    const book = createIncidentBook();
    const look = (consequences: string, affected: number) =>
      book.update([problem('a', 0), problem('b', 0, { consequences, affected })], at(1), never);
    look('1 role', 1);
    expect(sectionOf(book).open[1]?.cause?.consequences).toBe('1 role');
    look('2 roles', 2);
    expect(sectionOf(book).open[1]?.cause?.consequences).toBe('2 roles');
  });
  test('has what is newly known of it, also while nothing could be said about its end', () => {
    const book = createIncidentBook();
    for (const what of ['store main is down', 'store main refuses'])
      book.update([problem('main', 0, { what })], at(1), () => true);
    book.update([], at(9), never);
    expect(book.incidents(at(9))).toMatchObject([{ what: 'store main refuses' }]);
  });
  test('has what it took down at its worst, and not what was left of that at its end', () => {
    const book = createIncidentBook();
    const look = (seconds: number, consequences: string | undefined, affected?: number, id = 'main') =>
      book.update([problem('main', 0, { id, consequences, affected })], at(seconds), never);
    look(0, undefined, 0);
    look(1, '2 roles', 2);
    look(2, '4 roles', 4);
    look(3, '4 roles and 1 domain', 5);
    look(4, '5 more', 5);
    look(5, '1 role', 1);
    look(6, undefined);
    book.update([], at(9), never);
    expect(book.incidents(at(9))).toMatchObject([{ consequences: '5 more' }]);
    // A problem of another kind on the same line has its own consequences.
    look(100, '4 roles', 4);
    look(101, '1 role', 1, 'other');
    book.update([], at(109), never);
    expect(book.incidents(at(109))[0]).toMatchObject({ id: 'other', consequences: '1 role' });
  });
  test('is none for what another problem explains', () => {
    const book = createIncidentBook();
    book.update([{ line: 'role', sinceMs: at(0) }], at(0), never);
    book.update([], at(100), never);
    expect(book.incidents(at(300))).toEqual([]);
    expect(sectionOf(book).open).toEqual([]);
  });
});

describe('a problem that is back', () => {
  const back = (afterS: number) => {
    const book = createIncidentBook();
    book.update([problem('main', 0)], at(0), never);
    book.update([], at(100), never);
    const startMs = book.start({ line: 'main', sinceMs: at(100 + afterS) }, at(100 + afterS));
    return [(startMs - at(0)) / 1e3, book.incidents(at(100 + afterS)).length];
  };
  test.each([
    [59.999, [0, 1]],
    [60, [160, 1]],
    // The wall clock was set back.
    [-59.999, [0, 1]],
    [-60, [40, 1]],
  ])('after %d s', (afterS, expected) => {
    expect(back(afterS)).toEqual(expected);
  });
  test('lasts again, and is no incident', () => {
    const book = createIncidentBook();
    book.update([problem('main', 0)], at(0), never);
    book.update([], at(100), never);
    book.update([problem('main', 0)], at(130), never);
    expect(book.incidents(at(130))).toEqual([]);
    expect(sectionOf(book)).toMatchObject({ open: [{ line: 'main' }], incidents: [] });
    book.update([], at(140), never);
    expect(book.incidents(at(400))).toMatchObject([{ start: atOf(0), end: atOf(140) }]);
  });
  test('long after its pause begins when that ends, and ended when it was seen to be over', () => {
    const book = createIncidentBook();
    book.update([problem('main', 0)], at(0), never);
    book.update([], at(40), never);
    const pause = { fromMs: at(50), untilMs: at(150) };
    expect(book.start({ line: 'main', sinceMs: at(10), pause }, at(160))).toBe(at(150));
    expect(book.incidents(at(160))).toMatchObject([{ start: atOf(0), end: atOf(40) }]);
  });
  test.each([
    ['where the pause began, if its events were counted in the pause', 100, 50],
    ['with its last event, if that was before the pause', 30, 30],
  ])('after its pause has ended %s', (_, lastSeconds, endSeconds) => {
    const book = createIncidentBook();
    book.update([{ ...problem('main', 0), lastMs: at(lastSeconds) }], at(120), never);
    const pause = { fromMs: at(50), untilMs: at(150) };
    expect(book.start({ line: 'main', sinceMs: at(10), pause }, at(160))).toBe(at(150));
    expect(book.incidents(at(160))).toMatchObject([{ start: atOf(0), end: atOf(endSeconds) }]);
  });
  test('after its pause has ended where the pause began, whether it was seen as over or not', () => {
    const pause = { fromMs: at(50), untilMs: at(150) };
    for (const isSeen of [true, false]) {
      const book = createIncidentBook();
      book.update([problem('main', 0)], at(0), never);
      if (isSeen) book.update([], at(120), never);
      expect(book.start({ line: 'main', sinceMs: at(10), pause }, at(160))).toBe(at(150));
      book.update([problem('main', 150)], at(160), never);
      expect(book.incidents(at(160))).toMatchObject([{ start: atOf(0), end: atOf(50), durationSeconds: 50 }]);
      expect(book.start({ line: 'main', sinceMs: at(10), pause }, at(170))).toBe(at(150));
    }
  });
});

describe('the ends of a process after which its role was down', () => {
  test.each([
    ['end when the role is back', [], 105],
    ['end with the last of them if only the check of the role shows any more that it is down', ['check'], 60],
  ])('%s', (_, left, endSeconds) => {
    const book = createIncidentBook();
    const down = { line: 'check', lastMs: at(60) };
    book.update([{ ...problem('loop', 0), lastMs: at(105), down }], at(105), never);
    for (const each of [book, written(book)]) {
      const lasting = left.map((line) => problem(line, 70));
      each.update(lasting, at(400), never);
      const [ended] = each.incidents(at(400)).filter(({ id }) => id === 'loop');
      expect(ended).toMatchObject({ start: atOf(0), end: atOf(endSeconds), durationSeconds: endSeconds });
    }
  });
});

describe('a problem of an earlier agent whose events begin again after a quiet time', () => {
  const again = { line: 'main', sinceMs: at(200) };
  test.each([
    ['that began after its last event', 100, [{ start: atOf(0), end: atOf(60), durationSeconds: 60 }]],
    ['that began with its last event', 60, [{ start: atOf(0), end: atOf(60), durationSeconds: 60 }]],
    ['in which others of its events were counted', 59, []],
    ['that nobody saw', undefined, []],
  ])('%s', (_, quietSince, ended) => {
    const book = createIncidentBook();
    book.update([{ ...problem('main', 0), lastMs: at(60) }], at(80), never);
    const quietSinceMs = quietSince === undefined ? undefined : at(quietSince);
    const startMs = ended.length > 0 ? at(200) : at(0);
    expect(book.start({ ...again, quietSinceMs }, at(205))).toBe(startMs);
    book.update([{ ...problem('main', startMs / 1e3 - at(0) / 1e3), lastMs: at(200) }], at(205), never);
    expect(book.incidents(at(205))).toMatchObject(ended);
    expect(book.incidents(at(205))).toHaveLength(ended.length);
    expect(book.start({ ...again, quietSinceMs }, at(220))).toBe(startMs);
  });
});

test('a problem that another one explains when it is over goes on if it is back, with its start', () => {
  const book = createIncidentBook();
  book.update([{ ...problem('role', 0), reason: 'refused' }], at(0), never);
  book.update([], at(10), never);
  book.explained(['role', 'of another time']);
  expect(book.goesOn('of another time')).toBe(false);
  expect(book.start({ line: 'role', sinceMs: at(20), reason: 'refused' }, at(20))).toBe(at(0));
  expect(book.incidents(at(200))).toEqual([]);
});

test('the start of a problem that is new is its own', () => {
  const book = createIncidentBook();
  expect(book.start({ line: 'main', sinceMs: at(7) }, at(9))).toBe(at(7));
  book.update([problem('main', 7)], at(9), never);
  expect(book.start({ line: 'main', sinceMs: at(8) }, at(9))).toBe(at(7));
});

test('the start of a problem that grew for the first time when its pause began is that moment', () => {
  const pause = { fromMs: at(50), untilMs: at(150) };
  expect(createIncidentBook().start({ line: 'main', sinceMs: at(50), pause }, at(160))).toBe(at(50));
});

test('what nothing can be said about yet still lasts', () => {
  const book = createIncidentBook();
  book.update([problem('main', 0), problem('other', 0)], at(0), never);
  book.update([], at(100), (line) => line === 'main');
  expect(sectionOf(book).open.map(({ line }) => line)).toEqual(['main']);
  expect(book.incidents(at(100)).map(({ id }) => id)).toEqual(['other']);
});

test('incidents are kept for 30 days, newest first', () => {
  const day = 86_400;
  const book = createIncidentBook();
  for (const [line, endS] of [
    ['a', 0],
    ['b', day],
    ['c', 2 * day],
  ] as const) {
    book.update([problem(line, endS - 10)], at(endS - 10), never);
    book.update([], at(endS), never);
  }
  const shown = (seconds: number) => book.incidents(at(seconds)).map(({ id }) => id);
  expect(shown(2 * day)).toEqual(['c', 'b', 'a']);
  expect(shown(30 * day - 1)).toEqual(['c', 'b', 'a']);
  expect(shown(30 * day)).toEqual(['c', 'b']);
});

describe('changes', () => {
  test('are in the order of their times, newest first, and each is there once', () => {
    const book = createIncidentBook();
    for (const one of [
      change(5),
      change(1),
      change(3),
      change(5),
      change(5, 'y'),
      change(5, 'x', { kind: 'deploy' }),
    ])
      book.changed(one);
    expect(book.changes(at(10)).map(({ at: time, kind, what }) => [time, kind, what])).toEqual([
      [atOf(5), 'deploy', 'x'],
      [atOf(5), 'note', 'y'],
      [atOf(5), 'note', 'x'],
      [atOf(3), 'note', 'x'],
      [atOf(1), 'note', 'x'],
    ]);
  });
  test('are 300 at most, and have texts of 300 characters', () => {
    const book = createIncidentBook();
    for (let i = 0; i < 310; i++) book.changed(change(i));
    const kept = book.changes(at(400));
    expect([kept.length, kept[0]!.at, kept[299]!.at]).toEqual([300, atOf(309), atOf(10)]);
    book.changed(change(311, 'x'.repeat(400)));
    expect(book.changes(at(400))[0]!.what).toHaveLength(300);
  });
  const work = (from: number, until: number) =>
    change(from, 'work', { kind: 'maintenance', until: atOf(until) });
  test.each([
    ['stays although 300 followed', [work(0, 900)], [work(0, 900)]],
    ['goes if it was over then', [work(0, 300)], []],
    ['goes if it was ended then', [work(0, 900), work(5, 5)], []],
    [
      'stays if it began after another had been ended',
      [work(0, 900), work(5, 5), work(6, 800)],
      [work(6, 800)],
    ],
    [
      'is bounded, too',
      Array.from({ length: 60 }, (_, i) => work(i / 10, 900)),
      Array.from({ length: 50 }, (_, i) => work((i + 10) / 10, 900)),
    ],
  ])('planned work %s', (_, announced, stays) => {
    const book = createIncidentBook();
    for (const one of announced) book.changed(one);
    for (let i = 10; i < 10 + 301; i++) book.changed(change(i));
    for (const each of [book, written(book)])
      expect(each.changes(at(400)).slice(300)).toEqual(stays.toReversed());
  });
  test.each([
    // The clock was an hour ahead.
    ['back', -3_600, 3_700, [work(3_600, 5_400), change(3_605)], [work(0, 1_800), change(5)]],
    [
      'back, and work that was over',
      -3_600,
      3_700,
      [work(1, 2), work(3_600, 3_610)],
      [work(1, 2), work(0, 10)],
    ],
    // It was an hour behind: the work lasts for the rest of its time.
    ['forth', 3_600, 100, [change(-5), work(0, 1_800)], [change(-5), work(3_600, 5_400)]],
  ])('of a clock that is set %s', (_, jumpS, beforeS, announced, corrected) => {
    const book = createIncidentBook();
    for (const one of announced) book.changed(one);
    book.clockJumped(jumpS * 1e3, at(beforeS + jumpS));
    const ofTime = (one: Change) => Date.parse(one.at);
    expect(book.changes(at(9_000))).toEqual(corrected.toSorted((a, b) => ofTime(b) - ofTime(a)));
  });
  test('of a kind that this version does not know are left out of a state', () => {
    const book = createIncidentBook();
    book.durable.restore(encode({ ...empty, changes: [change(1), { ...change(2), kind: 'later' }] }));
    expect(book.changes(at(10))).toEqual([change(1)]);
  });
});

describe('the state', () => {
  test('has what lasts, what is over, what may be back, and changes', () => {
    const book = createIncidentBook();
    book.changed(change(1));
    book.update([problem('a', 0), problem('b', 0)], at(0), never);
    book.update([problem('b', 0)], at(100), never);
    const next = written(book);
    expect(next.incidents(at(100)).map(({ id }) => id)).toEqual(['a']);
    expect(next.changes(at(100))).toEqual([change(1)]);
    expect(next.lasting()).toEqual([problem('b', 0)]);
    expect(next.start({ line: 'b', sinceMs: at(50) }, at(110))).toBe(at(0));
  });
  test.each<[string, (book: Book) => void]>([
    ['a change', (book) => book.changed(change(2))],
    ['an end', (book) => book.update([], at(10), never)],
    ['a beginning', (book) => book.update([problem('a', 0), problem('b', 0)], at(10), never)],
    ['another problem', (book) => book.update([problem('b', 0)], at(10), never)],
    [
      'another cause of the same line',
      (book) => book.update([problem('a', 0, { id: 'other' })], at(10), never),
    ],
    ['a consequence', (book) => book.update([problem('a', 0, { consequences: '1 role' })], at(10), never)],
    ['another start', (book) => book.update([problem('a', 5)], at(10), never)],
    ['a cause that explains it', (book) => book.update([{ ...problem('a', 0), explainedBy }], at(10), never)],
    ['no cause any more', (book) => book.update([{ line: 'a', sinceMs: at(0) }], at(10), never)],
  ])('is written anew after %s', (_, happen) => {
    const book = createIncidentBook();
    book.update([problem('a', 0)], at(0), never);
    const before = book.durable.freeze();
    expect(book.durable.freeze()).toBe(before);
    happen(book);
    const after = book.durable.freeze();
    expect(after).not.toBe(before);
    expect(Buffer.from(after).equals(Buffer.from(before))).toBe(false);
  });
  const explainedBy = { kind: 'store_down', subject: 'main', line: 'probe/store/main' } as const;
  test('is written anew when what explained a problem ends', () => {
    const book = createIncidentBook();
    book.update([{ line: 'a', sinceMs: at(0), explainedBy }], at(0), never);
    const before = book.durable.freeze();
    book.update([{ line: 'a', sinceMs: at(0), explainedBy: { ...explainedBy, endMs: at(9) } }], at(9), never);
    expect(book.durable.freeze()).not.toBe(before);
    expect(sectionOf(book).open).toEqual([
      { line: 'a', sinceMs: at(0), explainedBy: { ...explainedBy, endMs: at(9) } },
    ]);
  });
  test('is not written anew because a number in a text differs', () => {
    const book = createIncidentBook();
    book.update([problem('a', 0, { what: '1 error' })], at(0), never);
    const before = book.durable.freeze();
    book.update([problem('a', 0, { what: '2 errors' })], at(1), never);
    expect(book.durable.freeze()).toBe(before);
  });
  test('is written anew with each event, so that a kill does not shorten the incident', () => {
    const book = createIncidentBook();
    const stateAt = (seconds: number) => {
      book.update([{ ...problem('a', 0), lastMs: at(seconds) }], at(seconds), never);
      return book.durable.freeze();
    };
    const [first, same, next] = [60, 60, 75].map(stateAt);
    expect(same).toBe(first);
    expect(next).not.toBe(first);
  });
  test('is written anew when a pause is over for good', () => {
    const book = createIncidentBook();
    book.update([problem('a', 0)], at(0), never);
    book.update([], at(10), never);
    const before = book.durable.freeze();
    book.update([], at(70), never);
    expect(sectionOf(book).incidents).toHaveLength(1);
    expect(book.durable.freeze()).not.toBe(before);
  });
  test('is bounded: 1,000 problems, 300 incidents and 300 changes, also of a state that has more', () => {
    const book = createIncidentBook();
    book.update(
      Array.from({ length: 1_001 }, (_, i) => problem(`p${i}`, 0)),
      at(0),
      never,
    );
    const { open } = sectionOf(book);
    expect([open.length, open.at(-1)?.line]).toEqual([1_000, 'p999']);
    const incident = (i: number) => ({ ...{ id: `${i}`, cause: 'store_down', subject: '' }, end: atOf(i) });
    book.durable.restore(
      encode({
        ...empty,
        incidents: Array.from({ length: 301 }, (_, i) => incident(i)),
        changes: Array.from({ length: 301 }, (_, i) => change(i)),
      }),
    );
    const [incidents, changes] = [book.incidents(at(400)), book.changes(at(400))];
    expect([incidents.length, incidents.at(-1)?.id]).toEqual([300, '1']);
    expect([changes.length, changes.at(-1)?.at]).toEqual([300, atOf(1)]);
  });
  test.each([
    ['x', 'not JSON'],
    ['null', 'unknown version'],
    ['{"version":2,"open":[],"incidents":[],"changes":[]}', 'unknown version'],
    ['{"version":1,"incidents":[],"changes":[]}', 'a list is missing'],
    ['{"version":1,"open":[],"changes":[]}', 'a list is missing'],
    ['{"version":1,"open":[],"incidents":[]}', 'a list is missing'],
  ])('%s is refused', (text, what) => {
    const book = createIncidentBook();
    expect(() => book.durable.restore(Buffer.from(text))).toThrow(
      expect.objectContaining({
        code: 'state_unreadable',
        message: expect.stringContaining(`state: section incidents: ${what}`),
      }),
    );
  });
  test('that is not JSON is refused with its cause', () => {
    const book = createIncidentBook();
    expect(() => book.durable.restore(Buffer.from('x'))).toThrow(
      expect.objectContaining({ cause: expect.any(SyntaxError) }),
    );
  });
});
