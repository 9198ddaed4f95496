import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { parse } from 'yaml';
import type { Notice } from '../alertmanager.ts';
import type { Expected } from './fault.ts';
import { links } from './rules.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

interface ShippedAlert {
  alert?: string;
  labels?: Readonly<Record<string, string>>;
}

/** Every alert of a file in `rules`; the alerts of an objective are distinguished by their window. */
export function shippedAlerts(pack: string): string[] {
  const text = readFileSync(join(root, 'rules', `${pack}.rules.yml`), 'utf8');
  const { groups } = parse(text) as { groups: { rules: ShippedAlert[] }[] };
  return groups
    .flatMap(({ rules }) => rules)
    .flatMap(({ alert, labels }) => (alert === undefined ? [] : [keyOf(alert, labels?.window)]));
}

/** The name of an alert in `shippedAlerts`. */
export const keyOf = (alert: string, window: string | undefined): string =>
  window === undefined ? alert : `${alert} ${window}`;

const dashboards = new Set(
  readdirSync(join(root, 'dashboards'))
    .filter((name) => name.endsWith('.json'))
    .map((name) => (JSON.parse(readFileSync(join(root, 'dashboards', name), 'utf8')) as { uid: string }).uid),
);

/** The receiver for each severity, by the shipped routes. */
const receivers = { critical: 'on-call', warning: 'tickets', info: 'log-book' };

/** Checks that a notice has everything that its reader needs. */
export function expectWhole({ receiver, annotations }: Notice, expected: Expected): void {
  const { alert, severity, labels, says } = expected;
  expect(receiver).toBe(receivers[severity]);
  expect(Object.keys(annotations).sort()).toEqual([
    ...['dashboard_url', 'description'],
    ...['runbook', 'runbook_url', 'summary'],
  ]);
  expect(annotations.summary).toMatch(/^\S.*\.$/);
  expect(annotations.description).toMatch(says);
  expect(annotations.description).toMatch(/ First steps: [A-Z].+\.$/);
  expect(annotations.runbook_url).toBe(`${links.runbooks}/${alert}.md`);
  expect(annotations.runbook).toBe(`runbooks/${alert}.md`);
  expect(existsSync(join(root, annotations.runbook!))).toBe(true);
  const link =
    /^https:\/\/grafana\.example\/d\/(?<uid>[a-z-]+)\?var-environment=[a-z]*(?:&var-cluster=(?<cluster>.+))?$/.exec(
      annotations.dashboard_url!,
    );
  expect([...dashboards]).toContain(link?.groups?.uid);
  expect(link?.groups?.cluster).toBe(labels.cluster);
}
