import { existsSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import type { Clock } from '../../../core/ports.ts';

/** Where things are, for people and (as JSON) for scripts. */
export interface DemoAddresses {
  /** The agent's metrics. */
  metrics: string;
  /** The agent's status page. */
  admin: string;
  /** What the agent's probes found, as JSON. */
  probes: string;
  /** The agent's program, and its configuration. */
  program: string;
  config: string;
  /** `POST` here, with `?kind=`, makes something go wrong in the example service. */
  incident: string;
  kinds: readonly string[];
  directory: string;
  /** Process ids of the agent and of the example service. */
  pids: { agent: number | undefined; service: number | undefined };
}

export const usage = `Usage: svc-agent demo [--for DURATION] [--json]

Runs an example service and the agent beside it, and says what to look at. Ctrl-C ends both.
  --for DURATION  end after this time, such as 10s
  --json          print the addresses as one line of JSON, and nothing else
`;

/** What to open and what to type; tools that are not on the path (`PATH` of a process) are not spoken of. */
export function welcome(addresses: DemoAddresses, path: string | undefined, interactive: boolean): string {
  const { metrics, admin, probes, program, config, incident, kinds, directory } = addresses;
  const installed = (tool: string) =>
    (path ?? '').split(delimiter).some((one) => one !== '' && existsSync(join(one, tool)));
  const server = `prometheus --config.file=${join(directory, 'prometheus.yml')} --storage.tsdb.path=${join(directory, 'tsdb')}`;
  return `The example service and the agent are running.

  metrics      ${metrics}
  status page  ${admin}
  probes       ${probes}
  logs         ${directory}

Try:
  curl -s ${metrics} | grep svc_log_entries_total
  node ${nearby(program)} probe -c ${config}
${installed('promtool') ? `  curl -s ${metrics} | promtool check metrics\n` : ''}${installed('prometheus') ? `  ${server}\n` : ''}  curl -X POST '${incident}?kind=${kinds[0]}'
      kinds: ${kinds.join(', ')}

${interactive ? 'A kind and Enter do the same. ' : ''}Ctrl-C ends it.
`;
}

/** A path as one would type it here. */
function nearby(path: string): string {
  const fromHere = relative('', path);
  return fromHere.startsWith('..') ? path : fromHere;
}

const everyMs = 2000;

/** What is up or down, by the family that says so. */
const looked = {
  roles: 'svc_role_up',
  stores: 'svc_store_up',
  clusters: 'svc_cluster_up',
  archives: 'svc_archival_up',
};

/** A line for people from a page of the agent's metrics: what it has counted so far, and what of it all is up. */
export function liveText(page: string): string {
  const lines = page.split('\n');
  const values = (family: string) =>
    lines
      .filter((line) => line.startsWith(`${family}{`))
      .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  const sum = (family: string) => values(family).reduce((total, value) => total + value, 0);
  const up = Object.entries(looked)
    .filter(([, family]) => values(family).length > 0)
    .map(([what, family]) => `${sum(family)}/${values(family).length} ${what}`);
  const kilobytes = Math.round(sum('svc_log_bytes_total') / 1000);
  return [
    `${sum('svc_log_entries_total')} log entries (${kilobytes} kB)`,
    `${sum('svc_log_persistence_errors_total')} persistence errors`,
    `${sum('svc_log_lines_dropped_total')} dropped`,
    `up: ${up.join(' ') || 'nothing yet'}`,
  ].join(', ');
}

/** Rewrites one line of the terminal now and then; a page that does not come leaves the line as it is. */
export function showLive(metrics: string, write: (text: string) => void, clock: Clock): () => void {
  let cancel = () => {};
  async function show() {
    const page = await fetch(metrics).then((answer) => (answer.ok ? answer.text() : undefined));
    if (page !== undefined) write(`\r\u001b[K${liveText(page)}`);
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
