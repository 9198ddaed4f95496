/** Mutants that mean the same, by alert and what was changed; each with its reason. */
const equivalent: readonly (readonly [alert: RegExp, what: RegExp, reason: string])[] = [
  [
    /Burn$|SvcArchivalStalled/,
    /^no sum at \d{2,}$/,
    'one side of `and on (cluster)` is only asked whether it is there',
  ],
  [
    /SvcArchivalOff/,
    /^(no max|min for max) at \d{2,}$/,
    'one side of `and on (…)` is only asked whether it is there',
  ],
  [
    /SvcReplicationLagUnknown|SvcBackupNeverSucceeded/,
    /^min for max at \d{2,}$/,
    'one side of `unless` is only asked whether it is there',
  ],
  [/SvcBackupNeverSucceeded/, /^min for max at 0$/, 'always 1'],
  [/SvcReplicationLagUnknown/, /^min for max at 0$/, 'a number of the configuration that all agents share'],
  [/SvcBackupFailures/, /^min for max at 2\d\d$/, 'multiplied by 0'],
  [/SvcStoreConnections/, /^min for max at 1\d\d$/, 'a limit of the store that all agents see alike'],
  [/SvcDomainTooFewClusters/, /^min for max at [1-9]\d+$/, 'a domain is global or not, for all agents alike'],
  [/SvcDomainDisagreement/, /^min for max/, 'always 1'],
  [
    /SvcFrontendLatencyBurn/,
    /^no and at [345]\d$/,
    'the short window, shown for availability, which has the same form',
  ],
];

export const isEquivalent = (alert: string, what: string) =>
  equivalent.some(([name, pattern]) => name.test(alert) && pattern.test(what));
