import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { parseDuration } from '../../../src/core/text-formats.ts';
import { command } from '../process.ts';

interface Rule {
  alert?: string;
  expr: string;
  for?: string;
  keep_firing_for?: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

interface RuleFile {
  groups: { name: string; interval?: string; rules: Rule[] }[];
}

/** Limits for which a test would otherwise have to write 64 MiB, or to wait for a quarter of an hour. */
const thresholds = ['SvcLogLag=4096', 'SvcDomainFailover=20'];
/** Alerts on scrapes: on a busy machine a scrape may miss its time although nothing is down. */
const scraped = ['SvcServiceDown', 'SvcInstanceDown', 'SvcRoleUnwatched', 'SvcAgentDown'];
/** Alerts that those explain, and the seconds that they come later, as shipped. */
const afterScraped: Readonly<Record<string, number>> = { SvcRoleUnhealthy: 4 };
/** The addresses with which the links of alerts begin. */
export const links = { runbooks: 'https://wiki.example/runbooks', grafana: 'https://grafana.example' };

/**
 * Shortens the windows of the rules. Every window becomes `windowSeconds` long, except the long memory of `last_over_time` and
 * `max_over_time`. The window of a canary is twice as long, as in the rules: it must outlast the restart of an agent and of
 * Prometheus. The end of an outage is remembered for longer than the windows.
 */
function cut(expr: string, windowSeconds: number): string {
  const windowText = `${windowSeconds}s`;
  const canaryText = `${2 * windowSeconds}s`;
  const afterwardsText = `${windowSeconds + 10}s`;
  return (
    expr
      .replace(/(?<=ALERTS\{[^}]*\})\[\d+m\]/g, `[${afterwardsText}]`)
      .replace(/(?<=svc_incident(?:\{[^}]*\})?)\[\d+m\]/g, `[${afterwardsText}]`)
      .replace('[7m:1m]', `[${afterwardsText}:1s]`)
      // A canary is recognized by the day before.
      .replace(/(?<=canary[^[]*)\[1d\]/, '[day]')
      .replace(/(?<=canary[\s\S]*)\[10m\]/g, `[${canaryText}]`)
      .replace(/(?<!(?:last|max)_over_time\([^()]*)\[\d+[mhd]\]/g, `[${windowText}]`)
      .replace(/\[\d+[mhd]:\d+[mhd]\]/g, `[${windowText}:1s]`)
      .replace(/\boffset \d+[mhd]\b/g, `offset ${windowSeconds + 1}s`)
      .replace('[day]', '[1d]')
      // The increase over five minutes, as a rate.
      .replace(/(?<=\) )\/ 300\b/g, `/ ${windowSeconds}`)
  );
}

const written = (args: readonly string[]) => {
  const { status, stderr } = command(['rules', ...args]);
  if (status !== 0) throw new Error(stderr);
};

export interface RulesCut {
  /** The seconds between scrapes. Default: 1. */
  scrapeSeconds?: number;
  /** The length of a window of five minutes. Default: 10. */
  windowSeconds?: number;
  /** How long a condition must hold; `cut`: as long as shipped, shortened like the windows. Default: 0. */
  forSeconds?: number | 'cut';
  /** Leaves out the verdicts of the agents, for faults that are all there at once and would explain each other. */
  withoutIncidents?: true;
}

/** The factor by which times are shortened: a window of five minutes has ten seconds. */
export const cutBy = 30;

/** A shortened time of the rules, in whole seconds. */
const shortened = (text: string): number => Math.ceil(parseDuration(text)! / 1000 / cutBy);

/**
 * Writes the four packs as the agent prints them, with `for`, `keep_firing_for` and the windows shortened to what a test can wait
 * for. A target counts as down after three scrapes. Unless `for` is `cut`, an alert continues for 2 s: less than the windows, so
 * that alerts that look back outlive it.
 */
export function writeRules(
  directory: string,
  { scrapeSeconds = 1, windowSeconds = 10, forSeconds = 0, withoutIncidents }: RulesCut = {},
): void {
  const addresses = ['--runbook-url', links.runbooks, '--dashboard-url', links.grafana];
  written(['--out', directory, ...addresses, ...thresholds.flatMap((each) => ['--threshold', each])]);
  const heldSeconds = (alert: string, shipped = '0s') => {
    if (scraped.includes(alert))
      return Math.max(forSeconds === 'cut' ? shortened(shipped) : forSeconds, 3 * scrapeSeconds);
    if (forSeconds !== 'cut') return forSeconds;
    const laterSeconds = afterScraped[alert];
    return Math.max(shortened(shipped), laterSeconds === undefined ? 0 : 3 * scrapeSeconds + laterSeconds);
  };
  for (const name of readdirSync(directory)) {
    const file = parse(readFileSync(join(directory, name), 'utf8')) as RuleFile;
    if (withoutIncidents) file.groups = file.groups.filter((group) => group.name !== 'svc-incidents');
    for (const group of file.groups) {
      group.interval = '1s';
      for (const rule of group.rules) {
        rule.expr = cut(rule.expr, windowSeconds);
        if (rule.alert === undefined) continue;
        rule.for = `${heldSeconds(rule.alert, rule.for)}s`;
        if (rule.keep_firing_for)
          rule.keep_firing_for = `${forSeconds === 'cut' ? shortened(rule.keep_firing_for) : 2}s`;
      }
    }
    writeFileSync(join(directory, name), stringify(file));
  }
}
