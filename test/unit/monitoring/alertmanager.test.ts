import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packs, type RenderedAlert, renderPack, shippedOptions } from '../../../src/monitoring/packs.ts';
import { root } from '../house/imports.ts';

interface Inhibition {
  source_matchers: string[];
  target_matchers: string[];
  equal: string[];
}

const { inhibit_rules: inhibitions } = parse(
  readFileSync(join(root, 'deploy/alertmanager/alertmanager.yml'), 'utf8'),
) as { inhibit_rules: Inhibition[] };
const alerts = packs
  .flatMap((pack) => renderPack(pack, shippedOptions).groups.flatMap(({ rules }) => rules))
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

  test('each literal alert has a recommended one to be silenced by', () => {
    const names = (pack: string) =>
      alerts.filter(({ labels }) => labels.pack === pack).map(({ alert }) => alert);
    expect(names('spec').filter((name) => !names('recommended').includes(name))).toEqual([]);
  });
});
