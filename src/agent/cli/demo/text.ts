import { basename, relative } from 'node:path';
import type { Clock } from '../../../core/ports.ts';
import { findProgram } from '../../../probes/command.ts';
import { cut, type Screen, timeOfDay } from '../io.ts';
import type { Monitoring } from './monitoring.ts';

/** The addresses of all parts, for people and (as JSON) for scripts. */
export interface DemoAddresses extends Omit<Monitoring, 'pids'> {
  /** URL of the agent's metrics. */
  metrics: string;
  /** URL of the agent's status page. */
  admin: string;
  /** URL of the probes' results, as JSON. */
  probes: string;
  /** The agent's program, and its configuration. */
  program: string;
  config: string;
  /** A `POST` to this URL, with `?kind=`, begins an incident in the example service. */
  incident: string;
  /** A `POST` to this URL ends the incident. */
  end: string;
  kinds: readonly string[];
  directory: string;
  pids: Readonly<Record<'agent' | 'service', number | undefined>> & Monitoring['pids'];
}

export const usage = `Usage: svc-agent demo [--for DURATION] [--incident-after DURATION] [--json]

Runs an example service and the agent beside it, and Prometheus and Alertmanager if they are installed. Simulates an
incident, and prints what to look at. Ctrl-C stops everything and removes its files.
  --for DURATION             stop after this time, such as 10m
  --incident-after DURATION  when the first incident begins (30s; 0s: no incident starts by itself)
  --json                     print the addresses as one line of JSON, and nothing else
`;

/** The kinds of incidents that lead to an alert soonest, with a store and without one. */
const firstIncidents = [
  {
    kind: 'store-down',
    what: 'the store refuses every connection',
    alert: 'SvcStoreDown',
    seconds: 150,
  },
  {
    kind: 'persistence-errors',
    what: 'a fifth of the persistence calls of history fail',
    alert: 'SvcPersistenceErrorRate',
    seconds: 180,
  },
] as const;

/** The incident that the demo begins by itself. */
export function firstIncident(kinds: readonly string[]): (typeof firstIncidents)[number] {
  return firstIncidents.find(({ kind }) => kinds.includes(kind)) ?? firstIncidents[1];
}

/** The alert of the shipped rules that each kind of incident leads to. */
const alertsOf: Readonly<Record<string, string>> = {
  'persistence-errors': 'SvcPersistenceErrorRate after 3 min',
  restart: 'SvcCrashLooping after 1 min',
  backlog: 'SvcTaskListUnpolled after 2 min',
  fatal: 'SvcFatalLogEntry immediately',
  'store-down': 'SvcStoreDown after 2 min',
  'schema-behind': 'SvcSchemaMismatch after 5 min',
  failover: 'SvcDomainFailover immediately, which only Alertmanager shows',
  'cluster-down': 'SvcClusterUnreachable after 5 min',
  'replication-behind': 'SvcReplicationLag after 10 min',
};

/**
 * The welcome text: addresses to open, times of incidents, and commands to try. Tools that are not on the path (`PATH` of a
 * process) are left out. `incidentAtMs` is the time of the first incident, if there is one.
 */
export function welcome(
  addresses: DemoAddresses,
  {
    path,
    interactive,
    incidentAtMs,
  }: { path: string | undefined; interactive: boolean; incidentAtMs: number | undefined },
): string {
  const { metrics, admin, probes, program, config, incident, end, kinds, directory } = addresses;
  const { prometheus, alertmanager, commands } = addresses;
  const installed = (tool: string) => findProgram(tool, path) !== undefined;
  const running = commands.length === 0;
  const first = firstIncident(kinds);
  // An installed agent is called by its name.
  const call = basename(process.argv[1] ?? '') === 'svc-agent' ? 'svc-agent' : `node ${nearby(program)}`;
  const widest = Math.max(...kinds.map((kind) => kind.length));
  return `The example service and the agent are running.

  status page   ${admin}
  metrics       ${metrics}
  probes        ${probes}
${running ? `  Prometheus    ${prometheus}/alerts\n  Alertmanager  ${alertmanager}/#/alerts\n` : ''}  files         ${directory}
${
  running
    ? ''
    : `
Start Prometheus and Alertmanager with the shipped rules, each in a separate terminal${
        commands.length === 1 ? ' (one of them is already running)' : ''
      }:
${commands.map((command) => `  ${command}\n`).join('')}Then open ${prometheus}/alerts and ${alertmanager}/#/alerts
`
}
${
  incidentAtMs === undefined
    ? 'No incident begins by itself.'
    : `At ${timeOfDay(incidentAtMs)} ${first.what} (${first.kind}), until you end it. About ${first.seconds} s later
Alertmanager has the alert ${first.alert}${running ? ', and this terminal shows it' : ''}.`
}

To end every incident:${interactive ? ' type end and Enter, or' : ''}
  curl -X POST ${end}
The alerts are over about five minutes later.
To begin an incident:${interactive ? ' type its kind and Enter, or' : ''}
  curl -X POST '${incident}?kind=${kinds[0]}'
${kinds.map((kind) => `    ${kind.padEnd(widest)}  ${alertsOf[kind] ?? ''}`.trimEnd()).join('\n')}

Try:
  curl -s ${metrics} | grep svc_log_entries_total
  ${call} status -c ${config}
  ${call} probe -c ${config}
  ${call} maintenance -c ${config} --for 10m --reason 'a new disk'
${installed('promtool') ? `  curl -s '${metrics}?service=agent' | promtool check metrics\n` : ''}
Ctrl-C stops the demo and removes its files.
`;
}

/** A path in the form in which one would type it here. */
function nearby(path: string): string {
  const fromHere = relative('', path);
  return fromHere.startsWith('..') ? path : fromHere;
}

const everyMs = 2000;

/** The metric families that say what is up or down. */
const statusGauges = {
  roles: 'svc_role_up',
  stores: 'svc_store_up',
  clusters: 'svc_cluster_up',
  archives: 'svc_archival_up',
};

/** A line for people from a page of the agent's metrics: its counts so far, and what is up. */
export function countsText(page: string): string {
  const lines = page.split('\n');
  const values = (family: string) =>
    lines
      .filter((line) => line.startsWith(`${family}{`))
      .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  const sum = (family: string) => values(family).reduce((total, value) => total + value, 0);
  const up = Object.entries(statusGauges)
    .filter(([, family]) => values(family).length > 0)
    .map(([what, family]) => `${sum(family)}/${values(family).length} ${what}`);
  return [
    `up: ${up.join(' ') || 'nothing yet'}`,
    `${sum('svc_log_entries_total')} log entries`,
    `${sum('svc_log_persistence_errors_total')} persistence errors`,
  ].join(', ');
}

/** Rewrites one line of the terminal now and then. If there is no response, the line stays as it is. Returns the end. */
export function showLive(
  metrics: string,
  write: (text: string) => void,
  screen: Screen,
  clock: Clock,
): () => void {
  let cancel = () => {};
  async function show() {
    const page = await fetch(metrics).then((answer) => (answer.ok ? answer.text() : undefined));
    const columns = screen.size()?.columns ?? 80;
    if (page !== undefined) write(`\r\u001b[K${cut(countsText(page), columns - 1, screen)}`);
  }
  const wait = () => {
    cancel = clock.after(
      everyMs,
      () =>
        void show()
          .catch(() => {})
          .finally(wait),
    );
  };
  wait();
  return () => cancel();
}
