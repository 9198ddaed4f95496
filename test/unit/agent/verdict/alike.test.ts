import { expect, test } from 'vitest';
import type { Problem } from '../../../../src/agent/report.ts';
import { alike, incidentsIn } from '../../../../src/agent/verdict/alike.ts';

const problem = (kind: string, subject: string, minute: number): Problem => ({
  ...{
    id: `${kind}/${subject}`,
    kind,
    subject,
    severity: 'warning',
    what: `${kind} ${subject}`,
    firstSteps: '',
  },
  since: `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`,
  ...{ evidence: [], consequences: [], blocks: [] },
});

test('many of one kind are one row, with the first, how many, and when the first and the last began', () => {
  const late = [7, 3, 9, 5].map((minute) => problem('workflow_timeouts', `domain-${minute}`, minute));
  const rows = alike([problem('report', 'a', 1), ...late, problem('report', 'b', 2)]);
  expect(rows.map(({ problem: { subject }, others }) => [subject, others.length])).toEqual([
    ['a', 0],
    ['b', 0],
    ['domain-3', 3],
  ]);
  expect(rows[2]).toMatchObject({ first: '2026-01-01T00:03:00.000Z', last: '2026-01-01T00:09:00.000Z' });
});

test('three of a kind are rows of their own, and severities are kept apart', () => {
  const three = [1, 2, 3].map((minute) => problem('fatal', `role-${minute}`, minute));
  expect(alike(three)).toHaveLength(3);
  expect(alike([...three, { ...problem('fatal', 'role-4', 4), severity: 'critical' }])).toHaveLength(4);
});

test('incidents are what nothing explains, and what nobody can read any more', () => {
  const cause = problem('store_down', 'main', 1);
  const explained = { ...problem('role_down', 'history', 2), causedBy: cause.id };
  const unread = { ...explained, id: 'heap/history', unreadSince: cause.since };
  expect(incidentsIn({ problems: [cause, explained, unread] })).toEqual([cause, unread]);
});
