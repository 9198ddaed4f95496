import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RolePipeline } from '../../../src/agent/role-pipeline.ts';
import { type ManualClock, manualClock } from '../../clock.ts';
import { configOf, openRoles } from '../../role-pipeline.ts';
import { eachTarget } from '../../scrape.ts';
import { until } from '../../until.ts';

let clock: ManualClock;
let roles: RolePipeline;
const target = eachTarget();

beforeEach(() => {
  clock = manualClock();
  target.answer(() => {});
  roles = openRoles(clock).roles;
});
afterEach(() => roles.stop());

/** How long a gather waits for a role that never answers, ms: up to the last moment before it gives up, and when it does. */
test.each([
  ['what the scraper allows', '10s', 1_200, 1_200],
  ['the timeout of the scrape less the time for the answer', '10s', Number.POSITIVE_INFINITY, 9_500],
  ['half of a short timeout', '600ms', Number.POSITIVE_INFINITY, 300],
])('a gather waits for the page of a role: %s', async (_, timeout, allowedMs, waitsMs) => {
  const services = { frontend: { scrape: { url: target.url, timeout, interval: '1m' } } };
  await roles.configure(await configOf(services));
  let isOver = false;
  const gather = roles
    .refresh({ takes: () => true, deadlineMs: clock.monotonicMs() + allowedMs })
    .then(() => {
      isOver = true;
    });
  await until('the page is asked for', () => target.requests.length === 1);
  clock.advance(waitsMs - 1);
  await new Promise<void>((resolve) => void setImmediate(resolve));
  expect(isOver).toBe(false);
  clock.advance(1);
  await gather;
  expect(roles.isDown('frontend')).toBe(true);
});
