import { type Fault, faultLine } from '../../core/errors.ts';
import { closedLists } from '../../core/reasons.ts';
import { withoutUrlSecrets } from '../../core/redacted.ts';
import { loadConfig } from '../config/load.ts';
import { placeText } from '../config/tree.ts';
import type { AgentConfig, Discovered, Loaded, MetricsConfig, ServiceConfig } from '../config/types.ts';
import {
  buildError,
  type ConfigurationValues,
  command,
  configurationOptions,
  loadRequest,
  withBuildFault,
  withNamedFile,
} from './arguments.ts';
import { type Io, type Screen, table } from './io.ts';
import type { LiveReport } from './live-pages.ts';

const usage = `Usage: svc-agent check [FILE | -c FILE] [--service-config FILE]... [--role ROLE]... [--live] [--json]

Checks the configuration, checks the service's own files against the specification, and shows what would run.
--live also scrapes each role once: it lists the metrics of the catalog that the role does not send, and the metrics
that no vocabulary maps.
Exit status: 0 valid; 1 a fault in the service's own files, a missing secret, or with --live a failed scrape;
2 an invalid configuration.
`;

const options = { ...configurationOptions, live: { type: 'boolean' } } as const;

/** Runs `svc-agent check`: prints every fault at once, then what would run. */
export const check = command({ name: 'check', usage, options, most: 1 }, async (values, io, files) => {
  const loaded = await loadBuilt(withNamedFile(values, files), io);
  const live = values.live && loaded.config ? await checkLive(loaded.config, io) : undefined;
  if (values.json) io.stdout(`${JSON.stringify({ ...asJson(loaded), live })}\n`);
  else {
    for (const fault of loaded.faults) io.stderr(`${faultLine(fault)}\n`);
    io.stdout(checkReport(loaded, io.screen));
    if (live) io.stdout((await import('./live-pages.ts')).liveText(live));
  }
  if (loaded.faults.length > 0) return 2;
  return loaded.findings.length > 0 || live?.some(({ failure }) => failure !== undefined) ? 1 : 0;
});

/** The configuration, and every fault that `run` would find when it builds it. */
async function loadBuilt(values: ConfigurationValues, io: Io): Promise<Loaded> {
  const request = loadRequest(values, io);
  const loaded = await loadConfig(request);
  if (!loaded.config || loaded.faults.length > 0) return loaded;
  const thrown = await buildError(loaded.config);
  return thrown === undefined ? loaded : withBuildFault(request, thrown);
}

/** Loads the code that reads live pages on demand, and runs it. */
async function checkLive(config: AgentConfig, io: Io): Promise<LiveReport[]> {
  return (await import('./live-pages.ts')).liveReports(config, io);
}

/** The outcome without the configuration itself, because that contains secrets. */
function asJson({ config, faults, warnings, findings, advice, discovered }: Loaded) {
  return {
    ok: faults.length === 0 && findings.length === 0,
    faults,
    warnings,
    findings,
    advice,
    discovered,
    roles: config?.roles ?? [],
    scope: config?.scope,
    instance: config?.instance,
    stateDirectory: config?.stateDirectory,
  };
}

/** A report for people about what would run and what is wrong. It shows no secret. */
function checkReport(loaded: Loaded, screen: Screen): string {
  const { config, faults, warnings, findings, advice, discovered } = loaded;
  const parts = [
    config ? overview(config) : '',
    config && config.services.length > 0 ? servicesTable(config, screen) : '',
    discovered.length > 0 ? discoveredTable(discovered, screen) : '',
    section('warnings', warnings),
    section('faults in the service’s own files, in secrets and in certificates', findings),
    section('advice about the service’s settings, which are valid', advice),
    `${verdict(faults.length, findings.length)}\n`,
  ];
  return parts.filter((part) => part !== '').join('\n');
}

function verdict(faults: number, findings: number): string {
  if (faults > 0)
    return `invalid: ${counted(faults, 'fault')}${findings > 0 ? `, ${counted(findings, 'finding')}` : ''}`;
  return findings > 0 ? `valid, with ${counted(findings, 'finding')}` : 'valid';
}

const counted = (n: number, word: string): string => `${n} ${word}${n === 1 ? '' : 's'}`;

function section(title: string, faults: readonly Fault[]): string {
  return faults.length === 0 ? '' : `${title}:\n${faults.map((fault) => `  ${faultLine(fault)}\n`).join('')}`;
}

function overview(config: AgentConfig): string {
  const { metrics, admin, limits } = config;
  const tags = Object.entries(metrics.tags).map(([name, value]) => `${name}=${value}`);
  const lines = [
    ['roles', `${config.roles.join(', ') || 'none'} (scope ${config.scope})`],
    ['instance', config.instance],
    ['state', config.stateDirectory],
    ['reporter', reporterText(metrics)],
    ['tags', tags.join(', ') || 'none'],
    ['limits', `${limits.seriesPerMetric} series per metric, ${limits.series} in all`],
    ['admin', admin ? [admin.listenAddress, admin.health].filter(Boolean).join(', ') : 'off'],
    ['stores', config.stores.map(({ name, kind, address }) => `${name} (${kind}, ${address})`).join(', ')],
    ['backups', config.backups.map(({ name }) => name).join(', ')],
    ['dynamic', config.dynamicConfig],
    ['clusters', config.clusterGroupMetadata?.clusters.map(({ name }) => name).join(', ') ?? ''],
    ['domains', config.domains?.watch.join(', ') ?? ''],
    ['archives', archivesText(config)],
  ];
  return lines.flatMap(([name, text]) => (text ? `${name!.padEnd(9)} ${text}\n` : [])).join('');
}

function archivesText({ archival = {}, domainDefaults }: AgentConfig): string {
  return (['history', 'visibility'] as const)
    .flatMap((archive) => {
      const section = archival[archive];
      const uri = domainDefaults?.archival[archive]?.uri ?? 'no URI';
      return section ? [`${archive} (${section.status}, ${uri})`] : [];
    })
    .join(', ');
}

function reporterText({ reporter }: MetricsConfig): string {
  if (!reporter) return 'none';
  if (reporter.kind === 'pullmetrics') return `pullmetrics on ${reporter.options.listenAddress}`;
  if (reporter.kind === 'pushmetrics') return `pushmetrics to ${reporter.options.hostPort}`;
  return `hostedmetrics to ${withoutUrlSecrets(reporter.options.endpoint)}`;
}

function servicesTable({ services }: AgentConfig, screen: Screen): string {
  const row = ({ name, selected, logs, health, scrape, statsd, metrics }: ServiceConfig) => [
    name,
    selected ? 'yes' : 'no',
    logs
      ? `${logs.paths.join(' ')}${logs.rules.length > 0 ? ` (${counted(logs.rules.length, 'rule')})` : ''}`
      : '-',
    withoutUrlSecrets(health?.url ?? '-'),
    withoutUrlSecrets(scrape?.url ?? '-'),
    statsd ? [statsd.listen, statsd.tcp, statsd.unix].filter(Boolean).join(' ') : '-',
    metrics ? reporterText(metrics) : 'shared',
  ];
  return table(
    ['service', 'watched', 'logs', 'health', 'scrape', 'statsd', 'reporter'],
    services.map(row),
    screen,
  );
}

function discoveredTable(discovered: readonly Discovered[], screen: Screen): string {
  const rows = discovered.map(({ path, value, place }) => [path, value, placeText(place)]);
  return table(['from the service’s own files', 'value', 'place'], rows, screen);
}

const schemaUsage = `Usage: svc-agent schema [--reasons] [--json]

Prints the JSON Schema (draft 2020-12) of agent.yaml, for editors:
  svc-agent schema > agent.schema.json
  # yaml-language-server: $schema=agent.schema.json

  --reasons  print every closed list of label values instead
`;

const schemaForm = { name: 'schema', usage: schemaUsage, options: { reasons: { type: 'boolean' } } } as const;

/** Runs `svc-agent schema`: prints the schema of the configuration, or every closed list. */
export const schema = command(schemaForm, async (values, io) => {
  if (!values.reasons) {
    const { configurationSchema } = await import('../config/blocks.ts');
    io.stdout(`${JSON.stringify(configurationSchema(), null, 2)}\n`);
  } else if (values.json) io.stdout(`${JSON.stringify(closedLists, null, 2)}\n`);
  else {
    for (const [name, list] of Object.entries<readonly string[]>(closedLists))
      io.stdout(`${name}: ${list.join(', ')}\n`);
  }
  return 0;
});
