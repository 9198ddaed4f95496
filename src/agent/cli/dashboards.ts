import { resolve } from 'node:path';
import { oneOf, usageError } from '../../core/errors.ts';
import { type DashboardName, dashboards as names } from '../../monitoring/alert.ts';
import type { DashboardOptions } from '../../monitoring/dashboards/render.ts';
import { chosen } from '../../monitoring/options.ts';
import { pack } from '../../monitoring/packs.ts';
import { command, type ValuesOf } from './arguments.ts';
import { type Io, type Screen, table, writeInto } from './io.ts';

const usage = `Usage: svc-agent dashboards [NAME...] [OPTIONS]

Prints a dashboard for Grafana (classic schema), or writes a file for each. Without a NAME, it lists all dashboards.

  --list                 list names, uids and titles
  --out DIR              write DIR/NAME.json instead of printing; without a NAME all of them
  --kubernetes           as ConfigMaps with the label grafana_dashboard: "1"; without a NAME all of them
  --job ROLE=NAME        the name of a scrape job; ROLE is frontend, history, matching, worker or svc-agent
  --prefix P             the prefix of the metrics: P_name
  --match LABEL=VALUE    show only series with that label; does not apply to alerts and recorded series
  --threshold ALERT=N    another threshold, as given to svc-agent rules
  --runbook-url URL      address of the runbooks folder; adds links to the panels
  --json                 the list, or the ConfigMaps, as JSON

Repeat --job, --match and --threshold as you need them.
`;

const options = {
  list: { type: 'boolean' },
  out: { type: 'string' },
  kubernetes: { type: 'boolean' },
  job: { type: 'string', multiple: true },
  prefix: { type: 'string' },
  match: { type: 'string', multiple: true },
  threshold: { type: 'string', multiple: true },
  'runbook-url': { type: 'string' },
} as const;
type DashboardsValues = ValuesOf<typeof options>;

interface ShownDashboard {
  name: DashboardName;
  dashboard: { uid?: string; title?: string };
}

/** Runs `svc-agent dashboards`: prints dashboards for Grafana with the names and limits of this installation. */
export const dashboards = command(
  { name: 'dashboards', usage, options, most: Infinity },
  async (values, io, positionals) => {
    const { out, kubernetes } = values;
    const asked = positionals.map(nameOf);
    if (values.list && (out !== undefined || kubernetes)) {
      const other = out !== undefined ? '--out' : '--kubernetes';
      throw usageError('svc-agent dashboards', `--list with ${other}`, undefined, 'use one of them');
    }
    const isList = values.list || (asked.length === 0 && out === undefined && !kubernetes);
    const rendering = optionsOf(values);
    // Only this command needs the builders of Grafana's schema.
    const { renderDashboard } = await import('../../monitoring/dashboards/render.ts');
    const shown = (asked.length > 0 ? asked : names).map((name) => ({
      name,
      dashboard: renderDashboard(name, rendering),
    }));
    if (isList) io.stdout(listText(shown, values.json, io.screen));
    else if (out !== undefined) await writeAll(shown, resolve(io.cwd, out), values, io);
    else if (kubernetes) io.stdout(await kubernetesText(shown, values.json));
    else io.stdout(theOnly(shown));
    return 0;
  },
);

function nameOf(word: string): DashboardName {
  return oneOf('svc-agent dashboards', word.replace(/^svc-/, ''), names, 'dashboard');
}

function optionsOf(values: DashboardsValues): DashboardOptions {
  const { jobs, prefix, thresholds, runbookUrl } = chosen(
    {
      job: values.job ?? [],
      threshold: values.threshold ?? [],
      prefix: values.prefix ?? '',
      runbookUrl: values['runbook-url'] ?? '',
      label: [],
      for: [],
      dashboardUrl: '',
    },
    [pack('recommended'), pack('slo')],
  );
  return {
    jobs,
    prefix,
    thresholds,
    runbookUrl,
    matchers: Object.fromEntries((values.match ?? []).map(matcherOf)),
  };
}

function matcherOf(text: string): readonly [label: string, value: string] {
  const [, label, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(text) ?? [];
  if (label && value !== undefined) return [label, value];
  throw usageError('--match', 'not LABEL=VALUE', text, 'write --match LABEL=VALUE');
}

const jsonText = (document: unknown): string => `${JSON.stringify(document, null, 2)}\n`;

function listText(shown: readonly ShownDashboard[], isJson: boolean | undefined, screen: Screen): string {
  const rows = shown.map(({ name, dashboard: { uid = '', title = '' } }) => ({ name, uid, title }));
  const head = ['NAME', 'UID', 'TITLE'];
  return isJson
    ? jsonText(rows)
    : table(
        head,
        rows.map(({ name, uid, title }) => [name, uid, title]),
        screen,
      );
}

function theOnly(shown: readonly ShownDashboard[]): string {
  if (shown.length === 1) return jsonText(shown[0]!.dashboard);
  const got = shown.map(({ name }) => name).join(' ');
  const allowed = 'name one, or use --out DIR or --kubernetes';
  throw usageError('svc-agent dashboards', 'prints one dashboard', got, allowed);
}

/** A ConfigMap that Grafana's sidecar loads. Each dashboard has its own object, because an object has a limit of 1 MiB. */
const configMap = ({ name, dashboard }: ShownDashboard): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: `svc-agent-dashboard-${name}`,
    labels: { 'app.kubernetes.io/name': 'svc-agent', grafana_dashboard: '1' },
  },
  data: { [`svc-${name}.json`]: jsonText(dashboard) },
});

async function kubernetesText(
  shown: readonly ShownDashboard[],
  isJson: boolean | undefined,
): Promise<string> {
  const items = shown.map(configMap);
  const document = items.length === 1 ? items[0] : { apiVersion: 'v1', kind: 'List', items };
  if (isJson) return jsonText(document);
  const { toYaml } = await import('../../monitoring/yaml.ts');
  return toYaml(document);
}

async function writeAll(
  shown: readonly ShownDashboard[],
  folder: string,
  values: DashboardsValues,
  io: Io,
): Promise<void> {
  for (const of of shown) {
    const extension = values.kubernetes && !values.json ? 'yml' : 'json';
    const text = values.kubernetes ? await kubernetesText([of], values.json) : jsonText(of.dashboard);
    io.stderr(`${writeInto(folder, `${of.name}.${extension}`, text)} written\n`);
  }
}
