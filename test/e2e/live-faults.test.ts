import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { caseFiles } from '../../tools/shipped.ts';
import { explainingFaults } from './live/explaining-faults.ts';
import { faults } from './live/faults.ts';
import { outages } from './live/outages.ts';
import { keyOf, shippedAlerts } from './live/shipped.ts';

interface PromtoolFile {
  tests: { alert_rule_test?: { alertname: string; exp_alerts?: unknown[] }[] }[];
}

/**
 * Alerts that the stage cannot have: it has no backup that a rehearsal can restore, does not remove agents, is not a week old,
 * planned work would inhibit all others, a schema that is wrong cannot at the same time be unknown, and the label of a log file is
 * its path. promtool tests them.
 */
const playedByPromtool = [
  ...[
    'SvcArchivalNeverWritten',
    'SvcLogFault',
    'SvcMaintenance',
    'SvcRecoveryNotProven',
    'SvcRecoveryUnknown',
    'SvcSchemaUnknown',
  ],
];
/** The verdicts of the agents, and alerts that need them or a role that is otherwise well: one-cause.long.test.ts. */
const playedAlone = [
  ...['SvcIncident', 'SvcRoleExplained', 'SvcAllRolesDown', 'SvcAllRolesRecovering 5m', 'SvcMetricsUnread'],
];

test.each(playedByPromtool)('%s fires in a case of promtool', (alert) => {
  const fires = caseFiles().some(([, text]) => {
    const { tests } = parse(text) as PromtoolFile;
    const expected = tests.flatMap(({ alert_rule_test: cases = [] }) => cases);
    return expected.some(
      ({ alertname, exp_alerts: alerts = [] }) => alertname === alert && alerts.length > 0,
    );
  });
  expect(fires).toBe(true);
});

test('every shipped alert has a live fault', () => {
  const shipped = ['recommended', 'slo'].flatMap(shippedAlerts);
  const provoked = [...faults, ...explainingFaults].flatMap(({ alerts }) =>
    alerts.map(({ alert, labels }) => keyOf(alert, labels.window)),
  );
  const afterwards = outages.flatMap(({ recovering: { alert, windows } }) =>
    windows.map((window) => keyOf(alert, window)),
  );
  expect([...new Set([...provoked, ...afterwards, ...playedByPromtool, ...playedAlone])].sort()).toEqual(
    shipped.sort(),
  );
});
