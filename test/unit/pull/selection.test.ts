import { expect, test } from 'vitest';
import { type ReportedServices, selectionOf } from '../../../src/reporters/pull/pull.ts';

const roles = ['frontend', 'history'];
const origins = ['', 'frontend', 'history', 'worker', 'unknown'].flatMap((service) =>
  [true, false].map((relayed) => ({ service, relayed })),
);
const everywhere: ReportedServices = {
  shows: () => true,
  watches: (service: string) => roles.includes(service),
};
/** A block of the role frontend, in which only its series are reported. */
const ownBlock: ReportedServices = { ...everywhere, shows: (service: string) => service === 'frontend' };

const taken = (query: string, shown: ReportedServices) => {
  const selection = selectionOf(new URLSearchParams(query), shown);
  return selection && origins.filter(selection.takes).map((o) => `${o.service}${o.relayed ? '' : '*'}`);
};

test.each([
  [
    '',
    everywhere,
    ['', '*', 'frontend', 'frontend*', 'history', 'history*', 'worker', 'worker*', 'unknown', 'unknown*'],
  ],
  ['service=frontend', everywhere, ['frontend']],
  ['service=history&other=1', everywhere, ['history']],
  [
    'service=agent',
    everywhere,
    ['', '*', 'frontend*', 'history*', 'worker', 'worker*', 'unknown', 'unknown*'],
  ],
  ['service=worker', everywhere, undefined],
  ['service=unknown', everywhere, undefined],
  ['service=', everywhere, undefined],
  ['service=Frontend', everywhere, undefined],
  ['service=frontend&service=history', everywhere, undefined],
  ['', ownBlock, ['frontend', 'frontend*']],
  ['service=frontend', ownBlock, ['frontend']],
  ['service=agent', ownBlock, ['frontend*']],
  ['service=history', ownBlock, undefined],
])('?%s takes', (query, shown, wanted) => {
  expect(taken(query, shown)).toEqual(wanted);
});

test.each([everywhere, ownBlock])('no series is in two jobs, and all are in one', (shown) => {
  const jobs = ['frontend', 'history', 'agent'].flatMap((job) => taken(`service=${job}`, shown) ?? []);
  expect(jobs.sort()).toEqual(taken('', shown)?.sort());
});
