import { describe, expect, test } from 'vitest';
import {
  pack,
  packs,
  type RenderedAlert,
  renderPack,
  shippedOptions,
} from '../../../src/monitoring/packs.ts';
import { inhibitions, type Route, route } from '../../alertmanager.ts';

const alerts = packs
  .flatMap((one) => renderPack(one, shippedOptions).groups.flatMap(({ rules }) => rules))
  .filter((rule): rule is RenderedAlert => 'alert' in rule);

/** Labels that come from the series, so that no rule states their values. */
const ofSeries = ['reason', 'svc_service', 'cause', 'store', 'check'];

/** The alerts that all matchers of a list may match. */
function taken(matchers: readonly string[]): RenderedAlert[] {
  return alerts.filter((alert) =>
    matchers.every((matcher) => {
      const [, label = '', op, value = ''] = /^(\w+)(=~?|!=)"(.*)"$/.exec(matcher) ?? [];
      if (ofSeries.includes(label)) return true;
      const has = label === 'alertname' ? alert.alert : alert.labels[label];
      if (op === '!=') return has !== value;
      return op === '=~' ? new RegExp(`^(?:${value})$`).test(has ?? '') : has === value;
    }),
  );
}

describe('the inhibitions of the Alertmanager example', () => {
  test.each(inhibitions.map((rule) => [rule.source_matchers.join(), rule] as const))('%s', (_, rule) => {
    expect(taken(rule.source_matchers)).not.toEqual([]);
    const targets = taken(rule.target_matchers);
    expect(targets).not.toEqual([]);
    const named = [...rule.target_matchers.join().matchAll(/Svc[A-Za-z]+(?!\()\b/g)].map(([name]) => name);
    for (const name of named) expect(targets.map(({ alert }) => alert)).toContain(name);
    // What is absent everywhere has no cluster.
    const isAnywhere = targets.every(({ alert }) => alert === 'SvcRoleAbsent');
    expect(rule.equal).toContain(isAnywhere ? 'job' : 'cluster');
    expect(rule.equal).toContain('environment');
  });

  /** An alert on a range goes on after the outage that explains it. */
  test('what inhibits an alert that looks back does so for a while after its end', () => {
    const ends = new Map(
      alerts.flatMap(({ alert, expr }): [string, string][] => {
        const of = alert.endsWith('Recovering') ? /alertname="(\w+)"/.exec(expr)?.[1] : undefined;
        return of === undefined ? [] : [[of, alert]];
      }),
    );
    expect([...ends.keys()].sort()).toEqual([
      ...[
        'SvcAllRolesDown',
        'SvcClusterUnreachable',
        'SvcRoleUnhealthy',
        'SvcRoleUnwatched',
        'SvcServiceDown',
        'SvcStoreDown',
      ],
    ]);
    for (const { source_matchers, target_matchers } of inhibitions) {
      if (target_matchers.join().includes('Recovering')) continue;
      const names = [...source_matchers.join().matchAll(/Svc[A-Za-z]+/g)].map(([name]) => name);
      for (const name of names.filter((of) => ends.has(of))) expect(names).toContain(ends.get(name));
    }
  });

  // Prometheus sends the alerts of a rule when it has evaluated that rule, one rule of a group after the other. If the inhibitor
  // ended first, Alertmanager could notify of the other alert between the two ends.
  test('an alert that ends with its inhibitor comes before it in their group', () => {
    const endsLater = ({ alert, keep_firing_for }: RenderedAlert) =>
      keep_firing_for !== undefined || /Recovering$|^SvcMaintenance$/.test(alert);
    const ofPack = (matchers: readonly string[]) =>
      taken(matchers).filter(({ labels }) => labels.pack === 'recommended');
    const wrong = renderPack(pack('recommended'), shippedOptions).groups.flatMap(({ rules }) => {
      const names = rules.flatMap((rule) => ('alert' in rule ? [rule.alert] : []));
      return inhibitions.flatMap(({ source_matchers, target_matchers }) =>
        ofPack(source_matchers)
          .filter((source) => names.includes(source.alert) && !endsLater(source))
          .flatMap(({ alert: source }) =>
            ofPack(target_matchers)
              .filter(({ alert }) => names.indexOf(alert) > names.indexOf(source))
              .map(({ alert }) => `${alert} after ${source}`),
          ),
      );
    });
    expect(wrong).toEqual([]);
  });

  test('each literal alert has a recommended one to be silenced by', () => {
    const names = (of: string) => alerts.filter(({ labels }) => labels.pack === of).map(({ alert }) => alert);
    expect(names('spec').filter((name) => !names('recommended').includes(name))).toEqual([]);
  });
});

describe('the routes of the Alertmanager example', () => {
  const isTaken = ({ matchers = [] }: Route, labels: Readonly<Record<string, string>>) =>
    matchers.every((matcher) => {
      const [, label = '', op, value = ''] = /^(\w+)(=~?)"(.*)"$/.exec(matcher)!;
      const has = labels[label] ?? '';
      return op === '=~' ? new RegExp(`^(?:${value})$`).test(has) : has === value;
    });
  /** The receiver and the group of an alert with these labels: the first route that matches takes it. */
  const notified = (labels: Readonly<Record<string, string>>) => {
    const found = { ...route, ...route.routes?.find((one) => isTaken(one, labels)) };
    return [found.receiver, ...found.group_by!.map((label) => labels[label] ?? '')].join(' ');
  };
  const roles = ['frontend', 'history', 'matching', 'worker'];
  const hosts = ['a', 'b', 'c'];
  const place = { environment: 'production', cluster: 'dc1' };
  const count = (alerts: readonly Readonly<Record<string, string>>[]) => new Set(alerts.map(notified)).size;

  test.each(['SvcInstanceDown', 'SvcHealthFailing'])(
    '%s: one ticket for a host, and one for a role',
    (alertname) => {
      const of = (role: string, instance: string) => ({
        ...{ ...place, alertname, severity: 'warning', job: `svc-${role}`, svc_service: role, instance },
      });
      expect(alerts.find(({ alert }) => alert === alertname)?.labels.severity).toBe('warning');
      expect(count(roles.map((role) => of(role, 'a')))).toBe(1);
      expect(count(hosts.map((host) => of('history', host)))).toBe(1);
      expect(count([of('history', 'a'), { ...of('history', 'a'), cluster: 'dc2' }])).toBe(2);
      expect(notified(of('history', 'a'))).toMatch(/^tickets /);
    },
  );
  test('what is about another role is a notification of its own', () => {
    const of = (role: string, severity: string) => ({
      ...{ ...place, alertname: 'SvcRoleUnhealthy', severity, svc_service: role },
    });
    expect(count(roles.map((role) => of(role, 'critical')))).toBe(4);
    expect(notified(of('history', 'critical'))).toMatch(/^on-call /);
    expect(notified(of('history', 'info'))).toMatch(/^log-book /);
  });
});
