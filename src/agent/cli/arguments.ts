import { parseArgs } from 'node:util';
import { AgentError, faultLine } from '../../core/errors.ts';
import { nearest } from '../../core/suggest.ts';
import { loadConfig } from '../config/load.ts';
import type { LoadRequest, ReadyConfig } from '../config/types.ts';
import type { Io } from './io.ts';

/** Every command that works, with its line in the help; `dispatch.ts` holds their code. */
export const commands = [
  { name: 'run', summary: 'run the agent' },
  { name: 'check', summary: 'judge the configuration, and the service’s own files' },
  { name: 'probe', summary: 'look once at roles, stores, clusters, domains and archives' },
  { name: 'status', summary: 'show what a running agent is doing' },
  { name: 'rules', summary: 'print or write alert and recording rules for Prometheus' },
  { name: 'dashboards', summary: 'print or write dashboards for Grafana' },
  { name: 'init', summary: 'write a commented starter configuration' },
  { name: 'demo', summary: 'run an example service and the agent beside it' },
  { name: 'backup', summary: 'run a backup whose result counts, or print backup commands for each store' },
  { name: 'schema', summary: 'print the JSON Schema of the configuration, or every closed list' },
  { name: 'healthcheck', summary: 'ask a running agent for its health' },
  { name: 'completion', summary: 'print a completion script for bash, zsh or fish' },
] as const;
export type CommandName = (typeof commands)[number]['name'];

/** Commands of the contract whose parts are still to come; they say so instead of pretending. */
export const laterCommands = ['doctor', 'recover'] as const;

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** The options of every command that reads a configuration. */
export const configurationOptions = {
  config: { type: 'string', short: 'c' },
  'service-config': { type: 'string', multiple: true },
  role: { type: 'string', multiple: true },
} as const satisfies Options;

/** The options every command takes. */
const commonOptions = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
} as const satisfies Options;

/** Parses a command's arguments strictly. Throws `usage` with the nearest known option. */
export function parseCommand<const O extends Options>(command: string, args: readonly string[], options: O) {
  try {
    return parseArgs({
      args: [...args],
      options: { ...commonOptions, ...options },
      allowPositionals: true,
      strict: true,
    });
  } catch (cause) {
    const unknown = /'(--?[^'\s=]+)/.exec(String(cause))?.[1] ?? '';
    const near = nearest(unknown.replace(/^-+/, ''), Object.keys({ ...commonOptions, ...options }));
    throw new AgentError(
      'usage',
      {
        where: `svc-agent ${command}`,
        what: `wrong usage, ${(cause as Error).message.split('. To specify')[0]}`,
        allowed: `${near ? `did you mean --${near}? ` : ''}see svc-agent ${command} --help`,
      },
      cause,
    );
  }
}

export const helpText = `svc-agent: metrics, logs and health of a clustered workflow orchestration service

Usage: svc-agent COMMAND [OPTIONS]

Commands:
${commands.map(({ name, summary }) => `  ${name.padEnd(12)} ${summary}`).join('\n')}

Options of every command that reads a configuration:
  -c, --config FILE          default: ./agent.yaml, then /etc/svc-agent/agent.yaml
      --service-config FILE  the service's own configuration; may be repeated, later ones win
      --role ROLE            a role to watch; may be repeated
Options of every command:
      --json                 machine-readable output where a person gets a table
  -h, --help                 help of the command
      --version              version, alone

Exit status: 0 well; 1 failed at run time, or a check found a fault; 2 wrong usage or an invalid configuration.
`;

/** The options of `configurationOptions` as they were given. */
export interface ConfigurationValues {
  config?: string | undefined;
  'service-config'?: string[] | undefined;
  role?: string[] | undefined;
}

export function loadRequest(values: ConfigurationValues, io: Io): LoadRequest {
  return {
    file: values.config,
    serviceConfig: values['service-config'] ?? [],
    roles: values.role ?? [],
    env: io.env,
    cwd: io.cwd,
  };
}

/** Loads the configuration of a command; prints every fault of it and throws `config_invalid` if there is any. */
export async function configured(values: ConfigurationValues, io: Io): Promise<ReadyConfig> {
  const loaded = await loadConfig(loadRequest(values, io));
  if (loaded.config && loaded.faults.length === 0) return { ...loaded, config: loaded.config };
  for (const fault of loaded.faults) io.stderr(`${faultLine(fault)}\n`);
  const count = loaded.faults.length;
  throw new AgentError('config_invalid', {
    where: 'configuration',
    what: `${count} ${count === 1 ? 'fault' : 'faults'}, listed above`,
    allowed: 'svc-agent check shows them again',
  });
}
