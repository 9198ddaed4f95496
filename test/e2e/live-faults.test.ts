import { expect, test } from 'vitest';
import { explainingFaults } from './live/explaining-faults.ts';
import { faults } from './live/faults.ts';
import { outages } from './live/outages.ts';
import { keyOf, shippedAlerts } from './live/shipped.ts';

/** Alerts that the stage cannot have: it has no backup that a rehearsal can restore, and keeps its agents. promtool plays them. */
const playedByPromtool = ['SvcRecoveryNotProven', 'SvcRecoveryUnknown'];

test('every shipped alert has a live fault', () => {
  const shipped = ['recommended', 'slo'].flatMap(shippedAlerts);
  const provoked = [...faults, ...explainingFaults].flatMap(({ alerts }) =>
    alerts.map(({ alert, labels }) => keyOf(alert, labels.window)),
  );
  const afterwards = outages.flatMap(({ recovering: { alert, windows } }) =>
    windows.map((window) => keyOf(alert, window)),
  );
  expect([...new Set([...provoked, ...afterwards, ...playedByPromtool])].sort()).toEqual(shipped.sort());
});
