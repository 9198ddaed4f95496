import { AgentError } from '../../core/errors.ts';
import { commands, parseCommand } from './arguments.ts';
import type { Io } from './io.ts';

const names = commands.map((command) => command.name);
const flags = ['--config', '--service-config', '--role', '--json', '--help', '--version'];

const scripts: Readonly<Record<string, () => string>> = {
  bash: () => `_svc_agent() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  case "$previous" in
    -c|--config|--service-config) COMPREPLY=($(compgen -f -- "$current")); return ;;
    --role) COMPREPLY=($(compgen -W "frontend history matching worker" -- "$current")); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${names.join(' ')}" -- "$current"))
  else COMPREPLY=($(compgen -W "${flags.join(' ')}" -- "$current")); fi
}
complete -F _svc_agent svc-agent
`,
  zsh: () => `#compdef svc-agent
_svc_agent() {
  _arguments '1:command:(${names.join(' ')})' \\
    '(-c --config)'{-c,--config}'[configuration file]:file:_files' \\
    '*--service-config[configuration of the service]:file:_files' \\
    '*--role[role to watch]:role:(frontend history matching worker)' \\
    '--json[machine-readable output]' '(-h --help)'{-h,--help}'[help]' '--version[version]'
}
_svc_agent "$@"
`,
  fish: () =>
    [
      ...commands.map(
        ({ name, summary }) => `complete -c svc-agent -n __fish_use_subcommand -f -a ${name} -d '${summary}'`,
      ),
      'complete -c svc-agent -s c -l config -r -d "configuration file"',
      'complete -c svc-agent -l service-config -r -d "configuration of the service"',
      'complete -c svc-agent -l role -x -a "frontend history matching worker" -d "role to watch"',
      'complete -c svc-agent -l json -d "machine-readable output"',
      '',
    ].join('\n'),
};

/** `svc-agent completion bash|zsh|fish`: prints a script to be sourced. */
export async function completion(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = parseCommand('completion', args, {}, 1);
  if (values.help) {
    io.stdout('Usage: svc-agent completion bash|zsh|fish\n\n  source <(svc-agent completion bash)\n');
    return 0;
  }
  const script = scripts[positionals[0] ?? ''];
  if (!script || positionals.length !== 1) {
    throw new AgentError('usage', {
      where: 'svc-agent completion',
      what: 'unknown shell',
      got: positionals.join(' '),
      allowed: 'use bash, zsh or fish',
    });
  }
  io.stdout(script());
  return 0;
}
