import { expect, test } from 'vitest';
import { checkStore, storeOn } from '../store-probe.ts';

/** The port of the port multiplexer, which nobody uses any more. */
const portOfNobody = 1;

test('nobody listens: refused while connecting, and what was remembered is kept', async () => {
  const recalled = { identity: 'a', changes: {} };
  const finding = await checkStore(storeOn(portOfNobody), { recalled });
  expect(finding).toMatchObject({ reason: 'refused', remember: recalled });
  expect(Object.keys(finding.phasesMs!)).toEqual(['resolve', 'connect']);
  expect(finding.gauges).toBeUndefined();
});

test('a name that nobody knows: resolve', async () => {
  const finding = await checkStore(storeOn(5432, { address: 'no-such-host.invalid:5432' }));
  expect(finding.reason).toBe('resolve');
  expect(Object.keys(finding.phasesMs!)).toEqual(['resolve']);
});
