import { expect, it } from 'vitest';
import { healthOf } from '../../../examples/service/health.ts';
import { reasonOf } from '../../../src/probes/health/health-check.ts';

it.each([
  { ageMs: 0, store: 'up', reason: 'warming_up' },
  { ageMs: 4999, store: 'down', reason: 'warming_up' },
  { ageMs: 5000, store: 'up', reason: undefined },
  { ageMs: 60_000, store: 'starting', reason: 'warming_up' },
  { ageMs: 60_000, store: 'down', reason: 'persistence' },
] as const)('a role of $ageMs ms beside a store that is $store tells the agent $reason', (given) => {
  const { ok, msg } = healthOf(given);
  expect([ok, ok ? undefined : reasonOf(msg)]).toEqual([given.reason === undefined, given.reason]);
});
