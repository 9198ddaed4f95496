import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { systemClock } from '../../core/clock.ts';
import {
  AgentError,
  errorText,
  type Fault,
  faultLine,
  nearest,
  systemCode,
  usageError,
} from '../../core/errors.ts';
import { loadConfig } from '../config/load.ts';
import type { AgentConfig, Loaded, LoadRequest, ReadyConfig } from '../config/types.ts';
import type { Command, Io } from './io.ts';

/** Every command: its line in the help, then examples of its use. `dispatch.ts` loads their code. */
const commandRows = {
  run: [
    'run the agent',
    'run -c /etc/svc-agent/agent.yaml',
    'run --service-config /etc/svc/production.yaml --role frontend',
  ],
  check: ["check the configuration, and the service's own files", 'check agent.yaml', 'check --live --json'],
  probe: [
    'probe roles, stores, clusters, domains and archives once',
    'probe store/main health',
    'probe --print-grants',
  ],
  status: [
    'show what a running agent is doing',
    'status --watch',
    'status --json --url https://agent.example.com:9465',
    'status --check --for upgrade',
  ],
  incidents: [
    'list what is wrong now and what was in the last 30 days',
    'incidents',
    'incidents --json --url 127.0.0.1:9465',
  ],
  maintenance: [
    'announce planned work to a running agent',
    'maintenance --for 30m --reason upgrade',
    'maintenance --for 2h --reason disks -c agent.yaml',
    'maintenance --end',
  ],
  rules: [
    'print or write alert and recording rules for Prometheus',
    'rules --out /etc/prometheus/rules',
    'rules --pack spec --job frontend=svc-frontend',
  ],
  dashboards: [
    'print or write dashboards for Grafana',
    'dashboards --out /var/lib/grafana/dashboards',
    'dashboards overview',
  ],
  init: [
    'write a commented starter configuration',
    'init agent.yaml',
    'init --service-config /etc/svc/base.yaml --service-config /etc/svc/production.yaml',
  ],
  demo: ['run an example service and the agent beside it', 'demo', 'demo --for 2m --incident-after 10s'],
  doctor: [
    'check what the agent needs on this host, and print what to do',
    'doctor agent.yaml',
    'doctor --role history --json',
  ],
  backup: [
    'run a backup and record its result, or print backup commands for each store',
    'backup run --job main-full -- pg_dump -Fc -f /backups/main.dump svc',
    'backup plan',
  ],
  recover: [
    'run a recovery procedure step by step, with checks',
    'recover database-corruption --store main --plan',
    'recover datacenter-failure --domain orders --to dc2 --execute',
  ],
  test: [
    'test log rules and vocabularies against sample lines, pages and datagrams',
    'test rules.test.yaml',
    'test tests/*.yaml -c agent.yaml --json',
  ],
  tap: [
    'show live how each log line and each sample is counted, and why',
    'tap --role frontend',
    'tap --match UpdateShard --for 1m --json',
  ],
  bundle: [
    'collect what a support case needs, without secrets',
    'bundle --out bundle.json',
    'bundle -c /etc/svc-agent/agent.yaml',
  ],
  schema: [
    'print the JSON Schema of the configuration, or every closed list',
    'schema',
    'schema --reasons --json',
  ],
  healthcheck: [
    'check the health of a running agent',
    'healthcheck --ready',
    'healthcheck --url 127.0.0.1:9464',
  ],
  completion: ['print a completion script for bash, zsh or fish', 'completion bash', 'completion fish'],
} satisfies Readonly<Record<string, readonly [summary: string, ...examples: string[]]>>;
export type CommandName = keyof typeof commandRows;
export const commands = (Object.entries(commandRows) as [CommandName, string[]][]).map(
  ([name, [summary = '', ...examples]]) => ({ name, summary, examples }),
);

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** The options of every command that reads a configuration. */
export const configurationOptions = {
  config: { type: 'string', short: 'c' },
  'service-config': { type: 'string', multiple: true },
  role: { type: 'string', multiple: true },
} as const satisfies Options;

/** The options that every command has. */
const commonOptions = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
} as const satisfies Options;

/** Options whose value is a name. It is empty if a script passes a variable that is not set. */
const optionsOfNames = ['config', 'service-config', 'role', 'out', 'artifact', 'ca', 'token-file'];

/** The advice in a usage error. */
const seeHelp = (command: string, near = '') =>
  `${near ? `did you mean --${near}? ` : ''}see svc-agent ${command} --help`;

/**
 * The usage error for what Node's parser refused with `ERR_PARSE_ARGS_…` (https://nodejs.org/api/util.html#utilparseargsconfig).
 */
function usageFault(command: string, cause: unknown, known: readonly string[]): Omit<Fault, 'where'> {
  const [first = ''] = errorText(cause).split('. To specify');
  const option = /'(?:-\w, )?--?([^'\s=]+)/.exec(first)?.[1] ?? '';
  if (systemCode(cause) === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const near = nearest(option, known);
    return { what: 'unknown option', got: /'([^']*)'/.exec(first)?.[1], allowed: seeHelp(command, near) };
  }
  const takesNone = first.includes('does not take an argument');
  const what = `option --${option} ${takesNone ? 'takes no value' : 'needs a value'}`;
  return { what, allowed: seeHelp(command) };
}

/** The arguments with the flag before each file: `--service-config base.yaml production.yaml` names two files. */
function repeated(args: readonly string[], flag: string): string[] {
  let isBehind = false;
  return args.flatMap((arg, index) => {
    const isValue = args[index - 1] === flag;
    const isMore = isBehind && !isValue && !arg.startsWith('-') && existsSync(arg);
    isBehind = isValue || isMore;
    return isMore ? [flag, arg] : [arg];
  });
}

/**
 * Parses a command's arguments strictly; `most` is how many arguments it may have besides its options. Throws `usage` with the
 * nearest known option, and for surplus arguments.
 */
function parseCommand<const O extends Options>(
  command: string,
  args: readonly string[],
  options: O,
  most = 0,
) {
  const where = `svc-agent ${command}`;
  const known = { ...commonOptions, ...options };
  const parsed = (() => {
    try {
      return parseArgs({
        args: repeated(args, '--service-config'),
        options: known,
        allowPositionals: true,
        strict: true,
      });
    } catch (cause) {
      throw new AgentError('usage', { where, ...usageFault(command, cause, Object.keys(known)) }, cause);
    }
  })();
  const empty = optionsOfNames.find((option) =>
    [(parsed.values as Record<string, unknown>)[option]].flat().includes(''),
  );
  if (empty !== undefined) throw usageError(where, `option --${empty} is empty`, undefined, seeHelp(command));
  if (parsed.positionals.includes('')) throw usageError(where, 'an empty argument', '', seeHelp(command));
  const surplus = parsed.positionals.slice(most);
  if (surplus.length === 0) return parsed;
  const what = surplus.length === 1 ? 'surplus argument' : 'surplus arguments';
  throw usageError(where, what, surplus.join(' '), seeHelp(command));
}

/** The values of a command's options on the command line. */
export type ValuesOf<O extends Options> = ReturnType<typeof parseCommand<O>>['values'];

interface CommandForm<O extends Options> {
  name: CommandName;
  usage: string;
  options: O;
  /** How many arguments it may have besides its options. Default: none. */
  most?: number;
}

/** A command. With --help it prints its usage and the examples of its row; else `act` resolves with the exit status. */
export const command =
  <const O extends Options>(
    { name, usage, options, most }: CommandForm<O>,
    act: (values: ValuesOf<O>, io: Io, positionals: readonly string[]) => Promise<number>,
  ): Command =>
  async (args, io) => {
    const { values, positionals } = parseCommand(name, args, options, most);
    if (!('help' in values)) return act(values, io, positionals);
    const { examples } = commands.find((row) => row.name === name)!;
    const lines = examples.map((example) => `  svc-agent ${example}\n`);
    io.stdout(`${usage}\n${examplesHead}\n${lines.join('')}`);
    return 0;
  };

/** The line between the usage and the examples of a help text. */
export const examplesHead = 'Examples:';

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
  -h, --help                 print the help of the command; the same as svc-agent help COMMAND
  -v, --version              print the version; without a command

Exit status: 0 success; 1 a failure at run time, or a check found a fault; 2 wrong usage or an invalid
configuration.
`;

/** The values of `configurationOptions` on the command line. */
export interface ConfigurationValues {
  config?: string | undefined;
  'service-config'?: string[] | undefined;
  role?: string[] | undefined;
}

/** The options with the configuration file that was named without -c. Throws `usage` if a file is named both ways. */
export function withNamedFile<V extends ConfigurationValues>(values: V, [file]: readonly string[]): V {
  if (file === undefined) return values;
  if (values.config === undefined) return { ...values, config: file };
  throw usageError('--config', 'two configuration files', `${values.config} and ${file}`, 'name one');
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

/** The configuration with a fault that was found while building it, at the place of the fault in the file. */
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

/** Loads the configuration of a command. If it has faults, prints all of them and throws `config_invalid`. */
export async function configured(values: ConfigurationValues, io: Io): Promise<ReadyConfig> {
  const loaded = await loadConfig(loadRequest(values, io));
  if (loaded.config && loaded.faults.length === 0) return { ...loaded, config: loaded.config };
  throw invalidConfig(loaded, io);
}
