import { describe, expect, test } from 'vitest';
import type { Exceeded, ProbeStatus, StatusFacts } from '../../../../src/agent/report.ts';
import { problemsIn } from '../../../../src/agent/verdict/evidence.ts';
import { lastWordsOf, probeStatusOf, statusFactsOf } from '../../../status-report.ts';

const now = '2026-01-01T12:00:00.000Z';
const nowMs = Date.parse(now);
const atOf = (seconds: number) => new Date(nowMs + seconds * 1e3).toISOString();
const found = (facts: Partial<StatusFacts>) => problemsIn(statusFactsOf({ now, ...facts }), nowMs);
type Last = NonNullable<Parameters<typeof probeStatusOf>[1]>;
const refused = { reason: 'refused', msg: 'connection refused' } as const;
const probe = (name: Parameters<typeof probeStatusOf>[0], last: Last = {}, more: Partial<ProbeStatus> = {}) =>
  probeStatusOf(name, { at: atOf(-1), ...last }, { since: atOf(-60), ...more });

describe('a value above its limit', () => {
  const exceeded = (more: Partial<Exceeded> = {}): Exceeded => ({
    ...{ kind: 'persistence_latency', about: { role: 'history', operation: 'Get' } },
    ...{ value: '9', limit: '5', since: atOf(-60) },
    ...more,
  });
  const of = (...all: Partial<Exceeded>[]) => found({ exceeded: all.map(exceeded) });
  test('has its usual value if there is one, and its limit', () => {
    expect(of({})[0]?.evidence).toEqual([
      { source: 'value', text: 'Get: 9 (limit 5)', at: atOf(-60), value: '9', limit: '5' },
    ]);
    expect(of({ usual: '1', about: { component: 'logs', reason: 'too_long' } })[0]?.evidence).toEqual([
      {
        source: 'value',
        text: 'too long: 9 (usual 1, limit 5)',
        at: atOf(-60),
        value: '9',
        usual: '1',
        limit: '5',
      },
    ]);
  });
  test('is one problem with others of its subject, since the first', () => {
    const [one, ...others] = of(
      {},
      { about: { role: 'history', operation: 'Put' }, since: atOf(-90), value: '7' },
      { since: atOf(-30) },
    );
    expect(others).toEqual([]);
    expect(one).toMatchObject({ subject: 'history', detail: '9', sinceMs: nowMs - 90_000 });
    expect(one?.evidence.map(({ text }) => text)).toEqual([
      'Get: 9 (limit 5)',
      'Put: 7 (limit 5)',
      'Get: 9 (limit 5)',
    ]);
  });
  const counted = (newSince: number, lastCounted: number) => ({
    newSince: atOf(newSince),
    lastCounted: atOf(lastCounted),
  });
  test.each([
    ['after', counted(-50, -40), counted(-30, -20), [-30, -20]],
    ['before', counted(-30, -20), counted(-50, -40), [-30, -20]],
    ['with', {}, counted(-30, -20), [-30, -20]],
    ['without', counted(-50, -40), {}, [-50, -40]],
  ])('has the newest events of its values, those of a value %s others', (_, first, second, [fresh, last]) => {
    expect(of(first, second)).toMatchObject([
      { newSinceMs: nowMs + fresh! * 1e3, lastMs: nowMs + last! * 1e3 },
    ]);
  });
  test('only goes on if each of its values does', () => {
    const goesOn = (...all: boolean[]) =>
      of(...all.map((goes) => (goes ? { onlyGoesOn: true as const } : {})))[0]?.onlyGoesOn ?? false;
    expect([goesOn(true), goesOn(true, true), goesOn(true, false), goesOn(false, true)]).toEqual([
      ...[true, true],
      ...[false, false],
    ]);
  });
  test.each<[object, string, object]>([
    [{ role: 'history', queue: 'timer' }, 'timer of history', { role: 'history' }],
    [{ role: 'frontend', callee: 'history' }, 'frontend to history', { role: 'frontend', callee: 'history' }],
    [{ domain: 'd', tasklist: 't' }, 'd/t', { domain: 'd', tasklist: 't' }],
    [{ domain: 'd' }, 'd', { domain: 'd' }],
    [{ source: 'a', target: 'b' }, 'a to b', { clusters: ['a', 'b'] }],
    [{ source: 'a' }, 'a to undefined', { clusters: ['a', ''] }],
    [{ store: 's', database: 'p' }, 's/p', { store: 's' }],
    [{ store: 's', database: '' }, 's', { store: 's' }],
    [{ archive: 'a', scheme: 'file' }, 'a', { archive: 'a' }],
    [{ backup: 'b' }, 'b', {}],
    [{ component: 'c', reason: 'r' }, 'c', {}],
    [{ family: 'f' }, 'f', {}],
    [{}, '', {}],
  ])('%o is about its labels', (about, subject, its) => {
    expect(of({ kind: 'dropping', about: about as never })).toMatchObject([{ subject }]);
    expect(of({ kind: 'dropping', about: about as never })[0]?.about).toEqual(its);
  });
  test('of the frontend’s latency is about the frontend, and of an unknown kind is nothing', () => {
    expect(of({ kind: 'frontend_latency', about: {} })[0]).toMatchObject({
      subject: '',
      about: { callee: 'frontend' },
    });
    expect(of({ kind: 'later' })).toEqual([]);
  });
  test.each([
    ['both were, since the later one', [-300, -200], -200],
    ['both were, in the other order', [-200, -300], -200],
    ['only the first was', [-300, undefined], undefined],
    ['only the second was', [undefined, -300], undefined],
  ])('was quiet before if all its counters were: %s', (_, since, quietSince) => {
    const [one] = of(
      ...since.map((seconds, i) => ({
        about: { role: 'history', operation: `o${i}` },
        ...(seconds !== undefined && { quietSince: atOf(seconds) }),
      })),
    );
    expect(one!.quietSinceMs).toBe(quietSince && nowMs + quietSince * 1e3);
  });
  test('contradicts what else is known of a role with errors', () => {
    const conflicts = (facts: Partial<StatusFacts>, more: Partial<Exceeded> = {}) =>
      found({
        exceeded: [
          exceeded({
            kind: 'persistence_errors',
            about: { role: 'history' },
            value: '9 errors are in its log',
            ...more,
          }),
        ],
        ...facts,
      })
        .flatMap(({ evidence }) => evidence)
        .filter(({ source }) => source === 'conflict')
        .map(({ text }) => text);
    expect(conflicts({})).toEqual([]);
    const ok = 'The health check passes, but 9 errors are in the log';
    expect(conflicts({ probes: [probe('health/history')] })).toEqual([ok]);
    expect(conflicts({ probes: [probe('health/matching')] })).toEqual([]);
    expect(conflicts({ probes: [probe('health/history', refused)] })).toEqual([]);
    expect(conflicts({ probes: [{ ...probe('health/history'), last: undefined }] })).toEqual([]);
    expect(conflicts({ probes: [probe('store/main/p', refused), probe('archive/a')] })).toEqual([]);
    expect(conflicts({ probes: [{ ...probe('store/main/p'), last: undefined }] })).toEqual([]);
    expect(conflicts({ probes: [probe('store/main/p')] })).toEqual([
      'The agent reaches store/main/p, but persistence calls of the role fail',
    ]);
    const truth = 'The metrics of the role show 49 % of the errors in its log';
    expect(conflicts({ telemetryTruth: { history: 0.49 } })).toEqual([truth]);
    expect(conflicts({ telemetryTruth: { history: 0.5, matching: 0 } })).toEqual([]);
    expect(conflicts({ probes: [probe('health/history')] }, { kind: 'fatal' })).toEqual([]);
    expect(conflicts({ probes: [probe('health/history')] }, { about: { domain: 'd' } })).toEqual([]);
  });
});

describe('the last words of a role', () => {
  const word = (level: string, seconds: number, more = {}) =>
    ({ at: atOf(seconds), service: 'history', level, logger: '', msg: level, ...more }) as never;
  const told = (
    entries: never[],
    facts: Partial<StatusFacts> = { probes: [probe('health/history', refused)] },
  ) =>
    found({
      ...facts,
      entries: lastWordsOf(...entries),
    });
  const words = (...args: Parameters<typeof told>) =>
    told(...args)
      .flatMap(({ evidence }) => evidence)
      .filter(({ source }) => source === 'log')
      .map(({ text }) => text);
  test('are those since ten minutes before its problem', () => {
    expect(words([word('error', -660)])).toEqual(['error: error']);
    expect(words([word('error', -661)])).toEqual([]);
  });
  test('are fatal ones since a minute before it: a process that ended earlier had been started again', () => {
    expect(words([word('fatal', -120)])).toEqual(['fatal: fatal']);
    expect(words([word('fatal', -121)])).toEqual([]);
  });
  test('are the newest fatal one, else the newest', () => {
    expect(words([word('error', -1), word('fatal', -5), word('fatal', -9, { msg: 'older' })])).toEqual([
      'fatal: fatal',
    ]);
    expect(words([word('error', -1), word('error', -5, { msg: 'older' })])).toEqual(['error: error']);
  });
  test('have the workflow and the run that they have', () => {
    expect(words([word('error', -1, { workflow: 'w' })])).toEqual(['error: error (workflow w)']);
    expect(words([word('error', -1, { run: 'r' })])).toEqual(['error: error (run r)']);
    expect(words([word('error', -1, { workflow: 'w', run: 'r' })])).toEqual([
      'error: error (workflow w, run r)',
    ]);
  });
  test('are older than the sample that counts them: fatal errors began when the first of them was written', () => {
    const counted = (kind: string) => [
      { kind, about: { role: 'history' }, value: '2', limit: '0', since: atOf(0) },
    ];
    const since = (kind: string, ...entries: never[]) =>
      told(entries, { exceeded: counted(kind) }).map(({ sinceMs }) => sinceMs! - nowMs);
    expect(since('fatal', word('fatal', -3), word('fatal', -12), word('error', -15))).toEqual([-12_000]);
    expect(since('fatal', word('fatal', -20))).toEqual([-20_000]);
    expect(since('fatal', word('fatal', -21))).toEqual([0]);
    expect(since('fatal', word('fatal', 1))).toEqual([0]);
    expect(since('fatal', word('error', -3))).toEqual([0]);
    expect(since('crash_loop', word('fatal', -3))).toEqual([0]);
    const ofAnother = counted('fatal').map((one) => ({ ...one, about: { role: 'matching' } }));
    expect(told([word('fatal', -3)], { exceeded: ofAnother })[0]?.sinceMs).toBe(nowMs);
  });
  const failing = probe('health/history', refused, { state: 'up', failingSince: atOf(-5) });
  const lastFailure = { reason: 'refused', what: 'no', atMs: nowMs - 5_000 };
  const page = { service: 'history', up: false, lastFailure } as unknown as StatusFacts['scrapes'][number];
  test.each<[string, Partial<StatusFacts>]>([
    ['role_failing', { probes: [failing] }],
    ['scrape_down', { scrapes: [page] }],
    ...['crash_loop', 'fatal', 'persistence_errors'].map((kind): [string, Partial<StatusFacts>] => [
      kind,
      { exceeded: [{ kind, about: { role: 'history' }, value: '9', limit: '5', since: atOf(-5) }] },
    ]),
  ])('stand beside %s', (kind, facts) => {
    const all = told([word('error', -1)], facts);
    expect(all.map((one) => [one.kind, one.evidence.at(-1)?.text])).toEqual([[kind, 'error: error']]);
  });
  test('stand beside no problem that they cannot explain, and of no other role', () => {
    expect(words([word('error', -1)], { certificates: [{ probe: 'x', notAfter: now }] })).toEqual([]);
    expect(words([word('error', -1)], { probes: [probe('health/matching', refused)] })).toEqual([]);
    const heap = [{ kind: 'heap', about: { role: 'history' }, value: '9', limit: '5', since: now }];
    expect(words([word('error', -1)], { exceeded: heap })).toEqual([]);
  });
});
