import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '../../../core/errors.ts';
import type { Clock } from '../../../core/ports.ts';
import { findProgram } from '../../../probes/command.ts';
import { shippedFolder } from '../../installation.ts';
import { type AgentPorts, alertmanagerConfig, type MonitoringPorts, prometheusConfig } from './config.ts';
import { type Children, untilReady } from './programs.ts';

/** Prometheus and Alertmanager with the shipped rules, routes and inhibitions. */
export interface Monitoring {
  /** The base URLs of Prometheus and Alertmanager, whether they run yet or not. */
  prometheus: string;
  alertmanager: string;
  /** For each of the two programs that the demo did not start: the command that starts it. */
  commands: readonly string[];
  pids: { prometheus?: number | undefined; alertmanager?: number | undefined };
}

interface Program {
  name: 'prometheus' | 'alertmanager';
  /** The names of the program on the path; the first that is found is used. */
  binaries: readonly [string, ...string[]];
  args: readonly string[];
}

/** Disk space is bounded: at most this much data is stored besides the block that is being written. */
const retention = ['--storage.tsdb.retention.size=128MB', '--storage.tsdb.retention.time=1d'];

function programs(directory: string, ports: MonitoringPorts): Program[] {
  return [
    {
      name: 'prometheus',
      binaries: ['prometheus'],
      args: [
        `--config.file=${join(directory, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(directory, 'prometheus')}`,
        ...retention,
        // As deploy/prometheus recommends: a pending alert continues after a restart of Prometheus.
        '--rules.alert.for-grace-period=1m',
        `--web.listen-address=127.0.0.1:${ports.prometheus}`,
      ],
    },
    {
      name: 'alertmanager',
      binaries: ['alertmanager', 'prometheus-alertmanager'],
      args: [
        `--config.file=${join(directory, 'alertmanager.yml')}`,
        `--storage.path=${join(directory, 'alertmanager')}`,
        `--web.listen-address=127.0.0.1:${ports.alertmanager}`,
        // Alertmanager runs alone, so it needs no port for a cluster.
        '--cluster.listen-address=',
      ],
    },
  ];
}

/** Writes both configurations into the directory, and starts the programs that are installed. */
export async function startMonitoring(
  children: Children,
  directory: string,
  {
    ports,
    roles,
    path,
    print,
  }: {
    ports: AgentPorts & MonitoringPorts;
    roles: readonly string[];
    path: string | undefined;
    print(line: string): void;
  },
): Promise<Monitoring> {
  const shipped = readFileSync(join(shippedFolder('deploy'), 'alertmanager', 'alertmanager.yml'), 'utf8');
  writeFileSync(
    join(directory, 'prometheus.yml'),
    prometheusConfig(ports, roles, shippedFolder('rules').replace(/\/$/, '')),
  );
  writeFileSync(join(directory, 'alertmanager.yml'), alertmanagerConfig(shipped));
  const commands: string[] = [];
  const pids: Monitoring['pids'] = {};
  const url = (name: Program['name']) => `http://127.0.0.1:${ports[name]}`;
  await Promise.all(
    programs(directory, ports).map(async ({ name, binaries, args }) => {
      const binary = binaries.find((each) => findProgram(each, path));
      const command = [binary ?? binaries[0], ...args].join(' ');
      if (binary === undefined) {
        commands.push(command);
        return;
      }
      const child = children.startOptional(name, [binary, ...args]);
      pids[name] = child.pid;
      const ended = child.ended.then((how) => {
        if (children.ending.aborted) return;
        throw new Error(`it ended (${how}): ${child.lastLines.slice(-3).join('\n  ')}`);
      });
      const isReady = untilReady(`${url(name)}/-/ready`, children.ending);
      const complain = (thrown: unknown) => print(`${name} does not run: ${errorText(thrown)}`);
      try {
        await Promise.race([isReady, ended]);
        ended.catch(complain);
      } catch (thrown) {
        children.ending.throwIfAborted();
        complain(thrown);
        commands.push(command);
      }
    }),
  );
  return {
    prometheus: url('prometheus'),
    alertmanager: url('alertmanager'),
    commands: commands.sort().reverse(),
    pids,
  };
}

interface ActiveAlert {
  fingerprint: string;
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
  status: { state: 'active' | 'suppressed' | 'unprocessed'; inhibitedBy: readonly string[] };
}

const everyMs = 2000;

/** Labels that say what an alert is about, the role first. */
const aboutLabels = [
  'svc_service',
  'store',
  'database',
  'remote_cluster',
  'domain',
  'tasklist',
  'backup',
  'archive',
  'probe',
] as const;

/** The changes between two responses of Alertmanager, one line for each alert. */
export function alertLines(
  before: ReadonlyMap<string, ActiveAlert>,
  now: ReadonlyMap<string, ActiveAlert>,
): string[] {
  const named = ({ labels, annotations }: ActiveAlert) =>
    `${labels.alertname} (${labels.severity ?? 'no severity'}) ${annotations.summary ?? ''}`.trimEnd();
  // The name of an alert that is over. Its summary is not valid any more.
  const overName = ({ labels }: ActiveAlert) => {
    const about = aboutLabels.flatMap((label) => labels[label] ?? []);
    return `${labels.alertname} (${[labels.severity ?? 'no severity', ...about].join(', ')})`;
  };
  // Whether the alert is printed. Alerts of severity info notify nobody: most of them exist to inhibit alerts that they explain.
  const isTold = ({ labels }: ActiveAlert) => labels.severity !== 'info';
  const lines = [...now.values()].filter(isTold).flatMap((alert) => {
    const { fingerprint, status } = alert;
    if (before.get(fingerprint)?.status.state === status.state) return [];
    if (status.state === 'active') return [`alert fires: ${named(alert)}`];
    return status.state === 'suppressed' ? [`alert inhibited, another one explains it: ${named(alert)}`] : [];
  });
  const over = [...before.values()].filter(
    ({ fingerprint, status }) => status.state !== 'unprocessed' && !now.has(fingerprint),
  );
  return [...lines, ...over.filter(isTold).map((alert) => `alert over: ${overName(alert)}`)];
}

/**
 * Follows the alerts of Alertmanager, and prints changes. Prints nothing while Alertmanager does not answer, because it may be
 * started later. Returns the end.
 */
export function followAlerts(alertmanager: string, print: (line: string) => void, clock: Clock): () => void {
  let cancel = () => {};
  const ended = new AbortController();
  let known = new Map<string, ActiveAlert>();
  async function poll() {
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(everyMs)]);
    const response = await fetch(`${alertmanager}/api/v2/alerts`, { signal });
    if (!response.ok) return;
    const alerts = (await response.json()) as ActiveAlert[];
    const now = new Map(alerts.map((alert) => [alert.fingerprint, alert]));
    for (const line of alertLines(known, now)) print(line);
    known = now;
  }
  const wait = () => {
    if (ended.signal.aborted) return;
    cancel = clock.after(
      everyMs,
      () =>
        void poll()
          .catch(() => {})
          .finally(wait),
    );
  };
  wait();
  return () => {
    ended.abort();
    cancel();
  };
}
