/** Mutants with the same meaning as the original, by alert and change, each with its reason. */
const asked = 'one side of `and on (…)` or `unless` is only asked whether it is there';
const equivalent: readonly (readonly [alert: RegExp, what: RegExp, reason: string])[] = [
  [/Burn$|SvcArchivalStalled/, /^no sum at \d{2,}$/, asked],
  [/SvcReplicationLagUnknown|SvcBackupNeverSucceeded/, /^min for max at \d{2,}$/, asked],
  [/SvcRoleUnwatched/, /^no count at \d{2,}$/, asked],
  [/SvcRoleUnhealthy/, /^no sum at [2-9]\d\d$/, asked],
  [/SvcRoleUnhealthy/, /^min for max at 589$/, asked],
  [/SvcHealthFailing/, /^no sum at [2-9]\d\d$/, asked],
  [/SvcHealthFailing/, /^no max at 1$/, 'the labels are those of the other side'],
  [/SvcLogSilent|SvcDomainTooFewClusters/, /^(no max|min for max) at \d{2,}$/, asked],
  [/SvcStoreDown/, /^min for max at [2-9]\d\d$/, asked],
  [/SvcStoreRecoveryWeak/, /^(no max|min for max) at (315|598)$/, asked],
  [/SvcBackupNeverSucceeded/, /^min for max at 0$/, 'always 1'],
  [/SvcReplicationLagUnknown/, /^min for max at 0$/, 'a number of the configuration that all agents share'],
  [/SvcBackupFailures/, /^min for max at 2\d\d$/, 'multiplied by 0'],
  [/SvcStoreConnections/, /^min for max at 1\d\d$/, 'a limit of the store that all agents see alike'],
  [/SvcDomainTooFewClusters/, /^min for max at [1-9]\d+$/, 'a domain is global or not, for all agents alike'],
  [/SvcDomainDisagreement|Recovering$/, /^min for max/, 'always 1'],
  [/SvcDomainDisagreement/, /^no max at 3\d\d$/, 'aggregated once more around it'],
  [/SvcIncident/, /^no max at (229|563|1087|1421)$/, asked],
  [
    /SvcIncident/,
    /^(min for max at (18|346|663)|!= for == at 838|0 for 1 at 841)$/,
    'at whole minutes the subquery has these values, too; incident-at-once.test.ts looks between them',
  ],
  [
    /SvcFrontendLatencyBurn/,
    /^no and at [345]\d$/,
    'the short window, shown for availability, which has the same form',
  ],
];

export const isEquivalent = (alert: string, what: string) =>
  equivalent.some(([name, pattern]) => name.test(alert) && pattern.test(what));
