import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { command } from '../process.ts';

export interface Rule {
  alert?: string;
  expr: string;
  for?: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

interface RuleFile {
  groups: { name: string; interval?: string; rules: Rule[] }[];
}

/** Limits for which a test would have to write 64 MiB, or to wait for a quarter of an hour. */
const thresholds = ['SvcLogLag=4096', 'SvcDomainFailover=20'];
/** On a busy machine a scrape may miss its time: nothing is down for that. */
const scraped = ['SvcServiceDown', 'SvcInstanceDown', 'SvcRoleUnwatched', 'SvcAgentDown'];
/** Addresses that the links of alerts begin with. */
export const links = { runbooks: 'https://wiki.example/runbooks', grafana: 'https://grafana.example' };

/** What every window of the rules becomes, but for the long memory of `last_over_time` and `max_over_time`. */
const windowText = '10s';
/** For how long the end of an outage is remembered: longer than the windows. */
const afterwardsText = '30s';

function cut(expr: string): string {
  return expr
    .replace(/(?<=ALERTS\{[^}]*\})\[\d+m\]/g, `[${afterwardsText}]`)
    .replace(/(?<!(?:last|max)_over_time\([^()]*)\[\d+[mhd]\]/g, `[${windowText}]`)
    .replace(/\[\d+[mhd]:\d+[mhd]\]/g, `[${windowText}:1s]`)
    .replace(/\boffset \d+[mhd]\b/g, 'offset 11s');
}

const packFile = (directory: string, pack: string) => join(directory, `${pack}.rules.yml`);

const written = (args: readonly string[]) => {
  const { status, stderr } = command(['rules', ...args]);
  if (status !== 0) throw new Error(stderr);
};

/** Every alert of a file that `svc-agent rules` wrote. */
export const alertsIn = (directory: string, pack: string): Rule[] =>
  (parse(readFileSync(packFile(directory, pack), 'utf8')) as RuleFile).groups.flatMap(({ rules }) =>
    rules.filter(({ alert }) => alert !== undefined),
  );

/**
 * Writes the four packs as the agent prints them, with `for` and the windows cut to what a test can wait for. A target
 * counts as down after three scrapes, one a second unless told. Each other alert fires after `forSeconds`: at once unless
 * told.
 */
export function writeRules(directory: string, { scrapeSeconds = 1, forSeconds = 0 } = {}): void {
  const addresses = ['--runbook-url', links.runbooks, '--dashboard-url', links.grafana];
  written(['--out', directory]);
  const names = readdirSync(directory).flatMap((file) =>
    alertsIn(directory, file.slice(0, -'.rules.yml'.length)).map(({ alert }) => alert!),
  );
  const fors = [...new Set(names)].flatMap((alert) => [
    '--for',
    `${alert}=${scraped.includes(alert) ? 3 * scrapeSeconds : forSeconds}s`,
  ]);
  written([
    '--out',
    directory,
    ...addresses,
    ...fors,
    ...thresholds.flatMap((each) => ['--threshold', each]),
  ]);
  for (const name of readdirSync(directory)) {
    const file = parse(readFileSync(join(directory, name), 'utf8')) as RuleFile;
    for (const group of file.groups) {
      group.interval = '500ms';
      for (const rule of group.rules) rule.expr = cut(rule.expr);
    }
    writeFileSync(join(directory, name), stringify(file));
  }
}
