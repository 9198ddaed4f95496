import { describe, expect, test } from 'vitest';
import type { Explained } from '../../../../src/agent/verdict/causes.ts';
import { type Begun, idOf } from '../../../../src/agent/verdict/found.ts';
import {
  consequencesText,
  doubtfulIn,
  overSentence,
  overTextOf,
  timeText,
  unknownFailoverText,
  verdictWithoutProblems,
  wrongSentence,
} from '../../../../src/agent/verdict/sentence.ts';
import { probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const nowMs = Date.parse('2026-01-02T00:00:00.000Z');
type Given = Partial<Begun> & Pick<Begun, 'kind'>;
const problem = (given: Given): Begun => ({ subject: '', about: {}, evidence: [], sinceMs: nowMs, ...given });
const role = (name: string, more: Partial<Begun> = {}): Given => ({
  kind: 'role_down',
  subject: name,
  about: { role: name },
  ...more,
});
/** A cause with the problems that it explains. */
const caused = (cause: Given, ...effects: Given[]): Explained[] => [
  { found: problem(cause) },
  ...effects.map((one) => ({ found: problem(one), causedBy: idOf(problem(cause)) })),
];
/** Problems of one kind, each about a subject of its own. */
const each = (kind: Given['kind'], ...subjects: string[]): Given[] =>
  subjects.map((subject) => ({ kind, subject }));
const headline = (...all: Explained[]) => wrongSentence(all, nowMs).headline;
const five = ['a', 'b', 'c', 'd', 'e'];
const causes = (...all: Given[]) => headline(...all.flatMap((one) => caused(one)));

describe('causes of one kind', () => {
  test.each<[Given[], string]>([
    [[role('a'), role('b')], 'Roles a and b are down'],
    [['a', 'b', 'c', 'd'].map((name) => role(name)), 'Roles a, b, c and d are down'],
    [five.map((name) => role(name)), '5 roles are down'],
    [[role('x'.repeat(60))], `Role ${'x'.repeat(60)} is down`],
    [[role('x'.repeat(61))], '1 role is down'],
    [[role('x'.repeat(61)), role('a')], '2 roles are down'],
    [[role('a', { predicate: 'is|are late' }), role('b')], 'Role a is late and role b is down'],
    [each('refused', 'a', 'b'), 'Series of families a and b are refused'],
    [each('replication_lag', 'a', 'b'), 'Replication a and b lag behind'],
    [each('replication_lag', ...five), '5 replication streams lag behind'],
    [each('request_errors', 'a', 'b'), 'Requests from a and b fail'],
    [each('request_errors', ...five), 'Requests between 5 pairs of roles fail'],
    [each('dropping', ...five), 'Data of 5 components is dropped by the agent'],
    [each('disk_full', 'a/p', 'b/p'), 'The disks of stores a and b are almost full'],
    [each('disk_full', ...five), 'The disks of 5 stores are almost full'],
    [each('canary', ...five), 'The canaries in 5 domains complete no workflow'],
    [each('task_latency', ...five), '5 task queues are late'],
    [each('certificate', ...five), 'The certificates of 5 probes expire soon'],
    [[{ kind: 'frontend_latency' }], 'The frontend answers slowly'],
    [[{ kind: 'state' }], 'The state cannot be written'],
    [each('disk_full', 's/p', 's/v'), 'The disk of store s is almost full'],
    [each('store_down', 's/p', 's/v'), 'Store s is down'],
    [each('schema', 's/p', 's/v'), 'Databases s/p and s/v have the wrong schema'],
  ])('%#: %s', (all, text) => {
    expect(causes(...all)).toBe(text);
  });
});

test('three kinds are named, and the rest is counted, consequences of theirs too', () => {
  const all = [
    ...caused(role('a')),
    ...caused({ kind: 'fatal', subject: 'b' }),
    ...caused({ kind: 'heap', subject: 'c' }),
    ...caused({ kind: 'gc_pause', subject: 'd' }, { kind: 'canary', about: { domain: 'x' } }),
  ];
  expect(headline(...all)).toBe(
    'Role a is down, role b logged fatal errors, role c has a large heap and 2 more problems',
  );
  expect(headline(...all.slice(0, 4))).toMatch(/ and 1 more problem$/);
  expect(headline(...all.slice(0, 3))).toBe(
    'Role a is down, role b logged fatal errors and role c has a large heap',
  );
});

describe('what a cause takes down', () => {
  const because = (...effects: Given[]) =>
    headline(...caused({ kind: 'store_down', subject: 'main' }, ...effects)).replace(
      'Store main is down',
      '',
    );
  test.each<[Given[], string]>([
    [[], ''],
    [[role('a')], '; 1 role is down because of it'],
    [[role('a'), role('b')], '; 2 roles are down because of it'],
    [[role('a'), { kind: 'fatal', about: { role: 'a' } }], '; 1 role is down because of it'],
    [[role('a'), { kind: 'domain', about: { domain: 'd' } }], '; 1 role and 1 domain are down because of it'],
    [[{ kind: 'fatal', about: { role: 'a' } }], '; 1 role suffers because of it'],
    [
      [
        { kind: 'fatal', about: { role: 'a' } },
        { kind: 'heap', about: { role: 'b' } },
      ],
      '; 2 roles suffer because of it',
    ],
    [
      [{ kind: 'fatal', about: { role: 'a' } }, role('b')],
      '; 1 role is down and 1 role suffers because of it',
    ],
    [[{ kind: 'stale' }], '; it causes 1 more problem'],
    [each('stale', 'a', 'b'), '; it causes 2 more problems'],
    [
      [
        role('a'),
        { kind: 'cluster_down', subject: 'c' },
        { kind: 'domain', about: { domain: 'd' } },
        { kind: 'recovery', subject: 'e', about: { domain: 'x' } },
      ],
      '; 1 role, 1 cluster and 1 domain are down and 1 objective suffers because of it',
    ],
    [
      [
        { kind: 'backup_late', subject: 'b' },
        { kind: 'replication_lag', subject: 'r' },
      ],
      '; 1 backup and 1 replication suffer because of it',
    ],
    [[{ kind: 'persistence_latency', about: { role: 'a' } }], '; it causes 1 more problem'],
  ])('%#: %s', (effects, text) => {
    expect(because(...effects)).toBe(text);
  });
  test('a role does not suffer from itself', () => {
    const of = (kind: Begun['kind'], ...effects: Given[]) =>
      headline(...caused({ kind, subject: 'a', about: { role: 'a' } }, ...effects));
    expect(of('crash_loop', role('a'), role('b'))).toBe(
      'Role a crashes again and again; 1 role is down because of it',
    );
    expect(of('crash_loop', role('a'))).toBe('Role a crashes again and again; it causes 1 more problem');
    expect(of('persistence_latency', { kind: 'persistence_errors', about: { role: 'a' } })).toBe(
      'Store calls of role a are slow; 1 role suffers because of it',
    );
  });
  test('says of which roles it is, if several causes are of roles', () => {
    const heap = (name: string): Given => ({ kind: 'heap', subject: name, about: { role: name } });
    const text = (...effects: Given[]) =>
      headline(...caused(heap('a'), ...effects), ...caused(heap('b'))).split('; ')[1];
    expect(text(role('a'))).toBe('1 of the roles is down because of them');
    expect(text(role('a'), role('b'))).toBe('2 of the roles are down because of them');
    expect(headline(...caused(heap('a'), role('a'))).split('; ')[1]).toBe('the role is down because of it');
  });
  test('is not that the page of a role that is down cannot be scraped, but that of another role', () => {
    const page = (name: string): Given => ({ kind: 'scrape_down', subject: name, about: { role: name } });
    const text = (cause: Given, ...effects: Given[]) => headline(...caused(cause, ...effects)).split('; ')[1];
    expect(text(role('a'), page('a'))).toBeUndefined();
    expect(text(role('a'), page('b'))).toBe('1 role suffers because of it');
    expect(text(role('a'), { ...page('a'), kind: 'heap' })).toBe('it causes 1 more problem');
    expect(text({ ...role('a'), kind: 'heap' }, page('a'))).toBe('it causes 1 more problem');
    const both = [...caused(role('a'), page('a')), ...caused(role('b'))];
    expect(headline(...both)).toBe('Roles a and b are down');
  });
  test('a domain of the name of a role suffers from it', () => {
    const cause: Given = { kind: 'crash_loop', subject: 'a', about: { role: 'a' } };
    expect(
      headline(...caused(cause, { kind: 'workflow_timeouts', subject: 'a', about: { domain: 'a' } })),
    ).toBe('Role a crashes again and again; 1 domain suffers because of it');
  });
  test('of two causes is because of them, of two databases of one store because of it', () => {
    const two = (kind: Begun['kind'], ...subjects: string[]) =>
      headline(...subjects.flatMap((subject) => caused({ kind, subject }, role('a')))).split('; ')[1];
    expect(two('schema', 's/p', 's/v')).toBe('1 role is down because of them');
    expect(two('store_down', 's/p', 's/v')).toBe('1 role is down because of it');
    const unnamed = [
      ...caused({ kind: 'schema', subject: 'a' }, { kind: 'stale' }),
      ...caused({ kind: 'schema', subject: 'b' }),
    ];
    expect(headline(...unnamed)).toMatch(/; they cause 1 more problem$/);
  });
  test('is nothing where there is nothing', () => {
    expect(consequencesText([], [])).toBeUndefined();
  });
  test('is counted where it has no name', () => {
    expect(consequencesText([problem({ kind: 'stale' })], [])).toBe('1 more problem');
    expect(consequencesText([problem({ kind: 'stale' }), problem({ kind: 'state' })], [])).toBe(
      '2 more problems',
    );
  });
});

describe('what nobody can tell any more', () => {
  const unread = { sinceMs: nowMs, sources: [], wasCause: true };
  const kindsInDoubt = ['fatal', 'heap', 'gc_pause', 'log_silent', 'log_lost'] as const;
  const inDoubt = (count: number) =>
    causes(...kindsInDoubt.slice(0, count).map((kind) => ({ kind, subject: 'a', unread })));
  const three = 'role a logged fatal errors, role a has a large heap';
  test.each([
    [1, 'role a logged fatal errors'],
    [3, `${three} and role a pauses for garbage collection`],
    [4, `${three}, role a pauses for garbage collection and 1 more problem lasts`],
    [5, `${three}, role a pauses for garbage collection and 2 more problems last`],
  ])('%d: %s', (count, text) => {
    expect(inDoubt(count)).toBe(`It is no longer known whether ${text}`);
  });
  test('lasts if something that is seen follows from it; what followed from it is as doubtful as it is', () => {
    const cause: Given = { kind: 'disk_full', subject: 's', unread };
    const effect: Given = { ...role('a'), unread: { ...unread, wasCause: false } };
    const doubtful = (...all: Explained[]) => all.map((one) => doubtfulIn(all).has(one));
    expect(doubtful(...caused(cause))).toEqual([true]);
    expect(doubtful(...caused({ ...cause, unread: undefined }))).toEqual([false]);
    expect(doubtful(...caused(cause, role('a')))).toEqual([false, false]);
    expect(doubtful(...caused(cause, effect))).toEqual([true, true]);
    expect(doubtful(...caused(cause, effect, role('b')))).toEqual([false, false, false]);
    expect(doubtful(...caused({ ...cause, unread: undefined }, effect))).toEqual([false, false]);
    // What follows from another cause says nothing about this one.
    expect(
      doubtful(...caused(cause), ...caused({ ...cause, subject: 't', unread: undefined }, role('a'))),
    ).toEqual([...[true, false, false]]);
    // Its cause is not there any more.
    expect(doubtful({ found: problem(effect), causedBy: 'disk_full/s' })).toEqual([false]);
  });
});

test('a sentence has the start of the first of each kind, with its day if that is another', () => {
  const all = [role('a', { sinceMs: nowMs + 61_000 }), role('b', { sinceMs: nowMs - 1_000 })];
  expect(
    wrongSentence(
      all.flatMap((one) => caused(one)),
      nowMs + 120_000,
    ).sentence,
  ).toBe('Roles a and b are down (since 2026-01-01 23:59:59 UTC).');
  expect(timeText(nowMs, nowMs + 86_399_999)).toBe('00:00:00 UTC');
  expect(timeText(nowMs, nowMs + 86_400_000)).toBe('2026-01-02 00:00:00 UTC');
});

test.each([
  [['a'], 'Store a refuses the credentials (since 23:50:00 UTC, for this reason since 23:55:00 UTC).'],
  // The reasons of several may have begun one by one.
  [['a', 'b'], 'Stores a and b refuse the credentials (since 23:50:00 UTC).'],
])('since when the reason of stores %s is what it is', (names, sentence) => {
  const all = names.map(
    (subject): Given => ({
      ...{ kind: 'store_down', subject, predicate: 'refuses|refuse the credentials', reason: 'credentials' },
      sinceMs: nowMs - 600_000,
      reasonsMs: { refused: 0, credentials: nowMs - 300_000 },
    }),
  );
  expect(
    wrongSentence(
      all.flatMap((one) => caused(one)),
      nowMs - 1,
    ).sentence,
  ).toBe(sentence);
});

test('domains of which it is not known whether they can fail over are named, up to four; failing ones are not', () => {
  const domain = (name: string, failover: object = { why: 'no lag' }, more: object = {}) =>
    probeStatusOf(`domain/${name}`, { details: { failover }, ...more } as never);
  const text = (...probes: ReturnType<typeof domain>[]) => unknownFailoverText({ probes });
  const failing = domain('failing', { why: 'x' }, { reason: 'refused', msg: 'x' });
  const unchecked = { ...domain('unchecked'), last: undefined };
  expect(text(failing, unchecked, domain('ready', { ready: true }))).toBeUndefined();
  const four = ['a', 'b', 'c', 'd'].map((name) => domain(name));
  expect(text(unchecked, failing, ...four)).toBe(
    'it is not known whether domains a, b, c and d can fail over: no lag',
  );
  expect(text(...four, domain('e'))).toBe('it is not known whether 5 domains can fail over: no lag');
});

test('what is over, and what has not been checked again', () => {
  expect(overTextOf('store_down', 'main')).toBe('store main recovered');
  expect(overTextOf('frontend_latency', '')).toBe('the frontend answers fast again');
  // These are kinds of another version.
  expect(overTextOf('later', 'main')).toBe('main recovered');
  expect(overTextOf('later', '')).toBe('recovered');
  const stores = ['main/p', 'main/v', 'other/p'].map((subject) => ({ kind: 'store_down' as const, subject }));
  expect(overSentence(stores)).toBe(
    'Store main recovered and store other recovered; it is not known yet whether the consequences are over',
  );
});

describe('without problems', () => {
  const scrape = (service: string, more: object = {}) => ({ service, up: true, ...more }) as never;
  const logs = (...paths: string[]) =>
    paths.map((path) => ({ path, services: [], offset: 0, lagBytes: 0, state: 'following' }));
  test('each role, store and file counts once, and other probes do not', () => {
    const facts = statusFactsOf({
      probes: [
        ...[
          probeStatusOf('health/a'),
          probeStatusOf('health/b'),
          probeStatusOf('store/s/p'),
          probeStatusOf('store/s/v'),
        ],
        ...[probeStatusOf('archive/x'), probeStatusOf('archive/y/z'), probeStatusOf('recovery/s/p')],
      ],
      scrapes: [scrape('a'), scrape('c')],
      statsd: [{ service: 'd' } as never],
      logs: logs('/a', '/b', '/a'),
    });
    expect(verdictWithoutProblems(facts)).toEqual({
      level: 'ok',
      headline: 'All is well: 4 roles, 1 store, 2 archives and 2 log files',
    });
  });
  test('an agent that starts, or watches nothing, knows nothing', () => {
    const probes = [probeStatusOf('health/a')];
    expect(verdictWithoutProblems(statusFactsOf({ ready: false, probes }))).toEqual({
      level: 'unknown',
      headline: 'The agent is starting',
    });
    expect(
      verdictWithoutProblems(statusFactsOf({ probes: [probeStatusOf('recovery/s/p')] })).headline,
    ).toMatch(/^Nothing is watched/);
  });
  test('a check without a result is one that is pending, of scrapes too', () => {
    const unchecked = { ...probeStatusOf('health/a'), last: undefined };
    const of = (...scrapes: never[]) =>
      verdictWithoutProblems(statusFactsOf({ probes: [unchecked, probeStatusOf('health/b')], scrapes }))
        .headline;
    expect(of()).toBe('Nothing is wrong so far; 1 of 2 checks has no result yet');
    expect(of(scrape('a'))).toBe('Nothing is wrong so far; 1 of 3 checks has no result yet');
    expect(of(scrape('a', { up: false }))).toBe('Nothing is wrong so far; 2 of 3 checks have no result yet');
    expect(of(scrape('a', { up: false, lastFailure: {} }))).toBe(
      'Nothing is wrong so far; 1 of 3 checks has no result yet',
    );
  });
});
