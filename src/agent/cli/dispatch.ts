import { AgentError, errorText, nearest, usageError } from '../../core/errors.ts';
import { version } from '../installation.ts';
import { mostOpenFiles, openFilesError } from '../open-files.ts';
import { type CommandName, commands, helpText } from './arguments.ts';
import { type Command, type Io, processIo } from './io.ts';
import { run } from './run.ts';

/** The code of a command loads when it is used, except for `run`, which must be ready soon. */
const loaders: Readonly<Record<CommandName, () => Promise<Command>>> = {
  run: async () => run,
  check: async () => (await import('./check.ts')).check,
  probe: async () => (await import('./probe.ts')).probe,
  status: async () => (await import('./status.ts')).status,
  incidents: async () => (await import('./incidents.ts')).incidents,
  maintenance: async () => (await import('./maintenance.ts')).maintenance,
  rules: async () => (await import('./rules.ts')).rules,
  dashboards: async () => (await import('./dashboards.ts')).dashboards,
  init: async () => (await import('./init.ts')).init,
  demo: async () => (await import('./demo.ts')).demo,
  doctor: async () => (await import('./doctor.ts')).doctor,
  backup: async () => (await import('./backup.ts')).backup,
  recover: async () => (await import('./recover.ts')).recover,
  test: async () => (await import('./sample-tests.ts')).sampleTests,
  tap: async () => (await import('./tap.ts')).tap,
  bundle: async () => (await import('./bundle.ts')).bundle,
  schema: async () => (await import('./check.ts')).schema,
  healthcheck: async () => (await import('./status.ts')).healthcheck,
  completion: async () => (await import('./completion.ts')).completion(helpOf),
};

/** The output of a command for --help. */
async function helpOf(name: CommandName, io: Io): Promise<string> {
  let help = '';
  const stdout = (text: string) => {
    help += text;
  };
  await (await loaders[name]())(['--help'], { ...io, stdout });
  return help;
}

/** Errors of the caller, not of the environment: they have exit status 2 (docs/reference/commands.md). */
const usageCodes: ReadonlySet<string> = new Set(['usage', 'config_invalid', 'log_unwritable']);

/** Runs the command named by the first argument; resolves with the exit status and never throws. */
export async function dispatch(args: readonly string[], io: Io = processIo): Promise<number> {
  const openFiles = mostOpenFiles();
  try {
    return await runNamed(args, io);
  } catch (failed) {
    const thrown = openFilesError(failed, openFiles);
    const what = thrown instanceof AgentError ? thrown.message : `unexpected failure: ${errorText(thrown)}`;
    io.stderr(`${what.startsWith('svc-agent') ? '' : 'svc-agent: '}${what}\n`);
    if (!(thrown instanceof AgentError) && thrown instanceof Error && thrown.stack)
      io.stderr(`${thrown.stack}\n`);
    return thrown instanceof AgentError && usageCodes.has(thrown.code) ? 2 : 1;
  }
}

async function runNamed([name, ...rest]: readonly string[], io: Io): Promise<number> {
  if (name === 'help' && rest.length === 1) return runNamed([rest[0]!, '--help'], io);
  const isVersion = name === '--version' || name === '-v' || name === 'version';
  const isHelp = name === '--help' || name === '-h' || name === 'help';
  if (rest.length > 0 && (isVersion || isHelp)) {
    const allowed = 'use it alone, or svc-agent help COMMAND';
    throw usageError(`svc-agent ${name}`, 'takes no such arguments', rest.join(' '), allowed);
  }
  if (isVersion || isHelp) {
    io.stdout(isVersion ? `svc-agent ${version}\n` : helpText);
    return 0;
  }
  const row = commands.find((command) => command.name === name);
  if (row) return (await loaders[row.name]())(rest, io);
  if (name === undefined) {
    io.stderr(helpText);
    return 2;
  }
  if (name.startsWith('-')) {
    const allowed = 'write the command first, such as svc-agent check -c FILE';
    throw usageError('svc-agent', 'an option before the command', name, allowed);
  }
  const near = nearest(
    name,
    commands.map((command) => command.name),
  );
  const allowed = `${near ? `did you mean ${near}? ` : ''}see svc-agent --help`;
  throw usageError('svc-agent', 'unknown command', name, allowed);
}
