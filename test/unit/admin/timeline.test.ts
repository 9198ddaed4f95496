import { expect, test } from 'vitest';
import { timelineOf } from '../../../src/agent/admin/timeline.ts';
import type { Incident, Problem } from '../../../src/agent/report.ts';

const at = (seconds: number) =>
  new Date(Date.parse('2026-01-01T00:00:00.000Z') + seconds * 1e3).toISOString();

const lasting = (role: string, since: number, detail = 'refused', kind = 'role_down'): Problem => ({
  ...{ id: `${kind}/${role}`, kind, subject: role, severity: 'critical', since: at(since) },
  what: `role ${role} ${kind === 'role_down' ? 'is down' : 'has persistence errors'}: ${detail}`,
  ...{ firstSteps: '', evidence: [], consequences: [], blocks: [] },
});
const past = (
  role: string,
  start: number,
  end: number,
  severity: Incident['severity'] = 'critical',
): Incident => ({
  ...{ id: `role_down/${role}`, cause: 'role_down', subject: role, severity },
  ...{ what: `role ${role} is down: refused`, over: `role ${role} recovered` },
  ...{ start: at(start), end: at(end), durationSeconds: end - start },
});
const told = (problems: readonly Problem[], incidents: readonly Incident[] = []) =>
  timelineOf({
    verdict: { ok: false, level: 'critical', headline: '', sentence: '', problems },
    incidents,
    changes: [],
  }).map((one) => [one.at, one.kind, one.text]);

test('problems of one kind that begin together are one event, whatever their details are', () => {
  expect(told([lasting('worker', 59, 'reset'), lasting('history', 0), lasting('frontend', 15)])).toEqual([
    [at(0), 'began', 'role history is down: refused; 2 more: frontend, worker'],
  ]);
});

test('a minute later, of another kind, or of another severity is another event', () => {
  expect(
    told(
      [
        lasting('history', 0),
        lasting('worker', 60),
        lasting('frontend', 5, '20 a minute', 'persistence_errors'),
      ],
      [past('matching', 60, 900, 'warning')],
    ),
  ).toEqual([
    [at(900), 'ended', 'role matching recovered after 14 min'],
    [at(60), 'began', 'role worker is down: refused'],
    [at(60), 'began', 'role matching is down: refused'],
    [at(5), 'began', 'role frontend has persistence errors: 20 a minute'],
    [at(0), 'began', 'role history is down: refused'],
  ]);
});

test('a store that refuses credentials is not told as one that refuses connections', () => {
  const of = (store: string, says: string): Problem => ({
    ...lasting(store, 0),
    ...{ kind: 'store_down', what: `store ${store} ${says}` },
  });
  expect(told([of('main', 'refuses connections'), of('visibility', 'refuses the credentials')])).toHaveLength(
    2,
  );
});

test('what ended together is one event; what began together with it and lasts belongs to the same start', () => {
  const incidents = [past('history', 0, 300), past('matching', 20, 330)];
  expect(told([lasting('frontend', 10)], incidents)).toEqual([
    [at(300), 'ended', 'role history recovered after 5 min; 1 more: matching'],
    [at(0), 'began', 'role history is down: refused; 2 more: frontend, matching'],
  ]);
});

test('many subjects are counted', () => {
  const all = Array.from({ length: 8 }, (_, i) => lasting(`r${i}`, i));
  expect(told(all)).toEqual([[at(0), 'began', 'role r0 is down: refused; 7 more']]);
  expect(told(all.slice(1))[0]![2]).toBe('role r1 is down: refused; 6 more: r2, r3, r4, r5, r6, r7');
});
