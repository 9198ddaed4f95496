import { roles } from '../../core/catalog.ts';
import { usageError } from '../../core/errors.ts';
import { recoveryProcedures } from '../../core/reasons.ts';
import { dashboards, packNames } from '../../monitoring/alert.ts';
import { type CommandName, command, commands, examplesHead } from './arguments.ts';
import type { Command, Io } from './io.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

const usage = `Usage: svc-agent completion bash|zsh|fish

Prints a script that completes commands, options and their values:
  bash  source <(svc-agent completion bash), in ~/.bashrc
  zsh   source <(svc-agent completion zsh), in ~/.zshrc after compinit
  fish  svc-agent completion fish > ~/.config/fish/completions/svc-agent.fish
`;

/** What may follow an option: words, a file, or something that cannot be listed; undefined for a switch. */
type OptionValue = readonly string[] | 'file' | 'other' | undefined;

interface Words {
  name: string;
  summary: string;
  options: ReadonlyMap<string, OptionValue>;
  /** Words that may follow besides options. */
  words: readonly string[];
}

/** Values that the help does not list in the form `a|b`. */
const values: Readonly<Record<string, readonly string[]>> = { '--role': roles, '--pack': packNames };
const words: Readonly<Partial<Record<CommandName, readonly string[]>>> = {
  completion: shells,
  dashboards,
  recover: recoveryProcedures,
};

function followsOption(option: string, argument: string | undefined): OptionValue {
  if (values[option]) return values[option];
  if (argument === undefined) return undefined;
  if (argument.includes('|')) return argument.split('|');
  return argument === 'FILE' || argument === 'DIR' ? 'file' : 'other';
}

/** The options and words of a command, parsed from its help. */
function wordsOf(name: CommandName, summary: string, helpText: string): Words {
  const [help = ''] = helpText.split(`\n${examplesHead}\n`);
  const options = new Map<string, OptionValue>([
    ['--help', undefined],
    ['--json', undefined],
  ]);
  if (help.includes('-c FILE')) {
    options.set('-c', 'file');
    options.set('--config', 'file');
  }
  for (const [, option = '', argument] of help.matchAll(
    /(?<!\S\S)(--[a-z][a-z-]*)(?: ([A-Z]+(?:=[A-Z]+)?|[a-z]+(?:\|[a-z]+)+)(?![a-z]))?/g,
  )) {
    const value = followsOption(option, argument);
    if (value !== undefined || !options.has(option)) options.set(option, value);
  }
  const subcommands = [...help.matchAll(new RegExp(`svc-agent ${name} ([a-z][a-z-]+)(?= |$)`, 'gm'))];
  const own = subcommands.map(([, word = '']) => word);
  return { name, summary, options, words: [...new Set([...(words[name] ?? []), ...own])] };
}

const joined = (list: Iterable<string>) => [...list].join(' ');
/** Options with values to choose from, of all commands: an option has the same meaning in all of them. */
function choices(all: readonly Words[]): Map<string, Exclude<OptionValue, undefined>> {
  return new Map(
    all.flatMap(({ options }) =>
      [...options].flatMap(([option, value]) => (value === undefined ? [] : [[option, value] as const])),
    ),
  );
}

const bash = (all: readonly Words[]) => `_svc_agent() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" IFS=$' \\t\\n' words
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${joined(all.map(({ name }) => name))} --help --version" -- "$current"))
    return
  fi
  case "$previous" in
${[...choices(all)]
  .map(([option, value]) => {
    if (value === 'file') return `    ${option}) _svc_agent_files; return ;;`;
    if (value === 'other') return `    ${option}) return ;;`;
    return `    ${option}) COMPREPLY=($(compgen -W "${joined(value)}" -- "$current")); return ;;`;
  })
  .join('\n')}
  esac
  case "\${COMP_WORDS[1]}" in
${all.map((one) => `    ${one.name}) words="${joined([...one.options.keys(), ...one.words])}" ;;`).join('\n')}
    *) return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ "\${#COMPREPLY[@]}" -eq 0 ]; then _svc_agent_files; fi
}
_svc_agent_files() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$current"))
  compopt -o filenames 2>/dev/null
}
complete -F _svc_agent svc-agent
`;

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

const zsh = (all: readonly Words[]) => `#compdef svc-agent
_svc_agent() {
  local -a commands
  commands=(
${all.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case "$words[1]" in
${all
  .map(({ name, options, words: own }) => {
    const specs = [...options].map(([option, value]) => {
      if (value === undefined) return quoted(option);
      if (value === 'file') return quoted(`*${option}:file:_files`);
      return quoted(`*${option}:value:${value === 'other' ? ' ' : `(${joined(value)})`}`);
    });
    const rest = own.length > 0 ? quoted(`*:argument:(${joined(own)})`) : quoted('*:file:_files');
    return `    ${name}) _arguments ${[...specs, rest].join(' ')} ;;`;
  })
  .join('\n')}
  esac
}
if [ "$funcstack[1]" = _svc_agent ]; then _svc_agent "$@"; else compdef _svc_agent svc-agent; fi
`;

const fish = (all: readonly Words[]) =>
  all
    .flatMap(({ name, summary, options, words: own }) => {
      const here = `complete -c svc-agent -n ${quoted(`__fish_seen_subcommand_from ${name}`)}`;
      return [
        `complete -c svc-agent -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
        ...[...options].map(([option, value]) => {
          const flag = option.startsWith('--') ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`;
          if (value === undefined) return `${here} -f ${flag}`;
          if (value === 'file') return `${here} -r -F ${flag}`;
          return `${here} -x ${flag}${value === 'other' ? '' : ` -a ${quoted(joined(value))}`}`;
        }),
        ...(own.length > 0 ? [`${here} -f -a ${quoted(joined(own))}`] : []),
      ];
    })
    .join('\n')
    .concat('\n');

const scripts = { bash, zsh, fish };

/**
 * Runs `svc-agent completion bash|zsh|fish`: prints a script to be sourced. `helpOf` returns the output of a command for --help,
 * from which completions are derived.
 */
export const completion = (helpOf: (name: CommandName, io: Io) => Promise<string>): Command =>
  command({ name: 'completion', usage, options: {}, most: 1 }, async (_, io, [asked]) => {
    const shell = shells.find((name) => name === asked);
    if (!shell) {
      const what = asked === undefined ? 'the shell is missing' : 'unknown shell';
      throw usageError('svc-agent completion', what, asked, 'use bash, zsh or fish');
    }
    const all = await Promise.all(
      commands.map(async ({ name, summary }) =>
        wordsOf(name, summary, name === 'completion' ? usage : await helpOf(name, io)),
      ),
    );
    io.stdout(scripts[shell](all));
    return 0;
  });
