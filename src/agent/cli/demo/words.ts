import { existsSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import type { Child } from './child.ts';

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

/** What is said of a child that ended by itself. */
export function obituary({ name, lastLines }: Child, how: string): string {
  const last = lastLines.length > 0 ? `; its last lines:\n  ${lastLines.join('\n  ')}` : ', without a word';
  return `svc-agent demo: ${name} ended by itself (${how})${last}\n`;
}
