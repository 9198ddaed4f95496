import { expect, test } from 'vitest';
import { canCause } from '../../../../src/agent/verdict/causes.ts';
import { type KindOfProblem, kindNames, kinds } from '../../../../src/agent/verdict/kinds.ts';
import { logCauses, roleCauses, storeCauses } from '../../../../src/monitoring/alerts/agent.ts';
import { alertsOf, pack } from '../../../../src/monitoring/packs.ts';
import { inhibitions } from '../../../alertmanager.ts';

const alerts = new Map(alertsOf(pack('recommended')).map((alert) => [alert.name as string, alert]));
const kindsOf = (alert: string): KindOfProblem[] =>
  kindNames.filter((kind) => (kinds[kind].alerts as readonly string[]).includes(alert));
const listed = (matchers: readonly string[], label: string): string[] =>
  matchers.flatMap((matcher) => new RegExp(`^${label}=~?"(.*)"$`).exec(matcher)?.[1]?.split('|') ?? []);
const grave = { critical: 2, warning: 1, info: 0 } as const;

/** What each incident inhibits, as `CAUSE ALERT`. */
const pairs = inhibitions.flatMap(({ source_matchers: source, target_matchers: target }) =>
  listed(source, 'alertname').includes('SvcIncident')
    ? listed(source, 'cause').flatMap((cause) =>
        listed(target, 'alertname')
          .filter((alert) => alerts.has(alert))
          .map((alert) => [cause as KindOfProblem, alert] as const),
      )
    : [],
);

test.each(pairs)('an incident of kind %s explains %s, and is as grave', (cause, alert) => {
  // A backlog that does not fall is a backlog that grows, over two hours.
  const effects = kindsOf(alert === 'SvcTaskListBacklogNotFalling' ? 'SvcTaskListBacklogGrowth' : alert);
  expect(effects.some((effect) => canCause(cause, effect))).toBe(true);
  const own = alerts.get(kinds[cause].alerts[0]!)!;
  expect(grave[own.severity]).toBeGreaterThanOrEqual(grave[alerts.get(alert)!.severity]);
});

test('an incident does not inhibit the alert on itself, which notifies within minutes', () => {
  const causes = [...new Set(pairs.map(([cause]) => cause))];
  expect(causes.length).toBeGreaterThan(2);
  for (const cause of causes) {
    const own = kinds[cause].alerts[0]!;
    expect(pairs).not.toContainEqual([cause, own]);
    expect(alerts.get(own)!.for).toMatch(/^[1-5]m$/);
  }
});

test('what can be down because of a store is inhibited while the store is down', () => {
  const inhibited = new Set(pairs.filter(([cause]) => cause === 'store_down').map(([, alert]) => alert));
  const roleAlerts = roleCauses.flatMap((kind) => [...kinds[kind].alerts]);
  const explained = kindNames
    .filter((kind) => canCause('store_down', kind))
    .flatMap((kind) => [...kinds[kind].alerts] as string[])
    .filter((alert) => !inhibited.has(alert) && !(roleAlerts as string[]).includes(alert));
  // Backups that are missing matter most while the store is down. So do a failover, a domain on which clusters disagree, and an
  // expired certificate.
  expect([...new Set(explained)].sort()).toEqual([
    ...['SvcBackupAge', 'SvcBackupNeverSucceeded'],
    ...['SvcCertificateExpiring', 'SvcDomainDisagreement', 'SvcDomainTooFewClusters', 'SvcRecoveryUnknown'],
    'SvcRetentionBeforeArchive',
  ]);
});

test('the kinds that the rules call causes of roles and of stores are those on roles and stores', () => {
  for (const kind of roleCauses) expect(kinds[kind].noun).toBe('role');
  for (const kind of storeCauses) expect(['store', 'database']).toContain(kinds[kind].noun);
});

test('the kinds that the alert on a log file covers are those that name it', () => {
  const naming = kindNames.filter((kind) =>
    (kinds[kind].alerts as readonly string[]).includes('SvcLogFault'),
  );
  expect(naming).toEqual([...logCauses]);
  for (const kind of logCauses) expect(kinds[kind].noun).toBe('log file');
});

/** Alerts on one kind of problem of which none inhibits the other, and the reason. */
const apart: Readonly<Record<string, string>> = {
  'SvcMetricsUnread SvcInstanceDown': 'one is for some instances of a role, the other for all of them',
  'SvcRecoveryObjectiveMissed SvcRecoveryUnknown': 'the second fires only without the series of the first',
  'SvcLogFault SvcLogSilent': 'the first names a file and no role; another role of the host may be silent',
};

/** Whether one of two alerts inhibits the other for an equal subject, and is as grave. */
const isOne = (first: string, second: string): boolean =>
  inhibitions.some(({ source_matchers, target_matchers }) => {
    const [sources, targets] = [listed(source_matchers, 'alertname'), listed(target_matchers, 'alertname')];
    return [
      [first, second],
      [second, first],
    ].some(
      ([source, target]) =>
        sources.includes(source!) &&
        targets.includes(target!) &&
        grave[alerts.get(source!)!.severity] >= grave[alerts.get(target!)!.severity],
    );
  });

test('two alerts on one kind of problem are one notification', () => {
  const twice = kindNames.flatMap((kind) => {
    const of = kinds[kind].alerts as readonly string[];
    return of.flatMap((first, i) =>
      of.slice(i + 1).flatMap((second) => (isOne(first, second) ? [] : `${first} ${second}`)),
    );
  });
  expect([...new Set(twice)].sort()).toEqual(Object.keys(apart).sort());
});
