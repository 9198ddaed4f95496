import { expect, test } from 'vitest';
import { alertLines } from '../../../src/agent/cli/demo/monitoring.ts';

const alert = (
  fingerprint: string,
  state: 'active' | 'suppressed' | 'unprocessed',
  severity = 'critical',
) => ({
  fingerprint,
  labels: { alertname: `Svc${fingerprint}`, severity, svc_service: 'history', instance: 'a' },
  annotations: { summary: `${fingerprint} is down.` },
  status: { state, inhibitedBy: [] },
});
const map = (...alerts: ReturnType<typeof alert>[]) => new Map(alerts.map((one) => [one.fingerprint, one]));

test.each([
  {
    what: 'an alert that fires',
    before: map(),
    now: map(alert('A', 'active')),
    lines: ['alert fires: SvcA (critical) A is down.'],
  },
  { what: 'one that goes on', before: map(alert('A', 'active')), now: map(alert('A', 'active')), lines: [] },
  {
    what: 'one that another one inhibits',
    before: map(alert('A', 'active')),
    now: map(alert('A', 'suppressed'), alert('B', 'active')),
    lines: [
      'alert inhibited, another one explains it: SvcA (critical) A is down.',
      'alert fires: SvcB (critical) B is down.',
    ],
  },
  {
    what: 'one that Alertmanager has only received',
    before: map(),
    now: map(alert('A', 'unprocessed')),
    lines: [],
  },
  {
    what: 'one that is gone',
    before: map(alert('A', 'active')),
    now: map(),
    lines: ['alert over: SvcA (critical, history)'],
  },
  {
    what: 'alerts that only hold others back',
    before: map(alert('Incident', 'active', 'info')),
    now: map(alert('RoleExplained', 'active', 'info'), alert('StoreRecovering', 'suppressed', 'info')),
    lines: [],
  },
])('$what', ({ before, now, lines }) => {
  expect(alertLines(before, now)).toEqual(lines);
});
