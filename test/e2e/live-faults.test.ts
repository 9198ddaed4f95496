import { expect, test } from 'vitest';
import { explainingFaults } from './live/explaining-faults.ts';
import { faults } from './live/faults.ts';
import { outages } from './live/outages.ts';
import { keyOf, shippedAlerts } from './live/shipped.ts';

test('every shipped alert has a live fault', () => {
  const shipped = ['recommended', 'slo'].flatMap(shippedAlerts);
  const provoked = [...faults, ...explainingFaults].flatMap(({ alerts }) =>
    alerts.map(({ alert, labels }) => keyOf(alert, labels.window)),
  );
  const afterwards = outages.flatMap(({ recovering: { alert, windows } }) =>
    windows.map((window) => keyOf(alert, window)),
  );
  expect([...new Set([...provoked, ...afterwards])].sort()).toEqual(shipped.sort());
});
