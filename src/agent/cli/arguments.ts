import { parseArgs } from 'node:util';
import { systemClock } from '../../core/clock.ts';
import { AgentError, errorText, type Fault, faultLine, nearest } from '../../core/errors.ts';
import { loadConfig } from '../config/load.ts';
import type { AgentConfig, Loaded, LoadRequest, ReadyConfig } from '../config/types.ts';
import type { Io } from './io.ts';

/** Every command that works, with its line in the help; `dispatch.ts` holds their code. */
export const commands = [
  { name: 'run', summary: 'run the agent' },
  { name: 'check', summary: 'check the configuration, and the service’s own files' },
  { name: 'probe', summary: 'probe roles, stores, clusters, domains and archives once' },
  { name: 'status', summary: 'show what a running agent is doing' },
  { name: 'rules', summary: 'print or write alert and recording rules for Prometheus' },
  { name: 'dashboards', summary: 'print or write dashboards for Grafana' },
  { name: 'init', summary: 'write a commented starter configuration' },
  { name: 'demo', summary: 'run an example service and the agent beside it' },
  { name: 'doctor', summary: 'check what the agent needs on this host, and print what to do' },
  { name: 'backup', summary: 'run a backup and record its result, or print backup commands for each store' },
  { name: 'recover', summary: 'run a recovery procedure step by step, with checks' },
  { name: 'schema', summary: 'print the JSON Schema of the configuration, or every closed list' },
  { name: 'healthcheck', summary: 'check the health of a running agent' },
  { name: 'completion', summary: 'print a completion script for bash, zsh or fish' },
] as const;
export type CommandName = (typeof commands)[number]['name'];

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

/** The advice in a usage error. */
const seeHelp = (command: string, near = '') =>
  `${near ? `did you mean --${near}? ` : ''}see svc-agent ${command} --help`;

/**
 * Parses a command's arguments strictly; `most` is how many it takes besides its options. Throws `usage` with the
 * nearest known option, and for surplus arguments.
 */
export function parseCommand<const O extends Options>(
  command: string,
  args: readonly string[],
  options: O,
  most = 0,
) {
  const where = `svc-agent ${command}`;
  const known = { ...commonOptions, ...options };
  const parsed = (() => {
    try {
      return parseArgs({ args: [...args], options: known, allowPositionals: true, strict: true });
    } catch (cause) {
      const unknown = /'(--?[^'\s=]+)/.exec(String(cause))?.[1] ?? '';
      const near = nearest(unknown.replace(/^-+/, ''), Object.keys(known));
      const what = `wrong usage, ${(cause as Error).message.split('. To specify')[0]}`;
      throw new AgentError('usage', { where, what, allowed: seeHelp(command, near) }, cause);
    }
  })();
  const surplus = parsed.positionals.slice(most);
  if (surplus.length === 0) return parsed;
  const what = surplus.length === 1 ? 'surplus argument' : 'surplus arguments';
  throw new AgentError('usage', { where, what, got: surplus.join(' '), allowed: seeHelp(command) });
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
      --json                 print JSON instead of tables and text
  -h, --help                 help of the command
      --version              version, alone

Exit status: 0 success; 1 a failure at run time, or a check found a fault; 2 wrong usage or an invalid
configuration.
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

/** The configuration with the fault that building it has found, at its place in the file. */
export function withBuildFault(request: LoadRequest, thrown: unknown): Promise<Loaded> {
  const built: Fault =
    thrown instanceof AgentError ? thrown.fault : { where: 'configuration', what: errorText(thrown) };
  return loadConfig({ ...request, built });
}

/** Why the configuration cannot be built; undefined if it can. */
export async function buildError(config: AgentConfig): Promise<unknown> {
  const { dryRun } = await import('../dry-run.ts');
  return dryRun(config, { clock: systemClock }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
}

/** Prints every fault of a configuration, and returns the error to throw. */
export function invalidConfig({ faults }: Loaded, io: Io): AgentError {
  for (const fault of faults) io.stderr(`${faultLine(fault)}\n`);
  return new AgentError('config_invalid', {
    where: 'configuration',
    what: `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}, listed above`,
    allowed: 'svc-agent check shows them again',
  });
}

/** Loads the configuration of a command; prints every fault of it and throws `config_invalid` if there is any. */
export async function configured(values: ConfigurationValues, io: Io): Promise<ReadyConfig> {
  const loaded = await loadConfig(loadRequest(values, io));
  if (loaded.config && loaded.faults.length === 0) return { ...loaded, config: loaded.config };
  throw invalidConfig(loaded, io);
}
