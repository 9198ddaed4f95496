import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { commands } from '../../src/agent/cli/arguments.ts';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { command, commandHere, mainFile } from './process.ts';

const place = newFolder(afterAll);
mkdirSync(join(place, 'my folder'));
writeFileSync(join(place, 'agent.yaml'), '');

const scripts = newFolder(afterAll);
/** A file with what the program prints for a shell; the program starts once for all cases. */
const scriptFor = Object.fromEntries(
  ['bash', 'fish', 'zsh'].map((shell) => {
    const file = join(scripts, shell);
    writeFileSync(file, command(['completion', shell]).stdout);
    return [shell, file];
  }),
);
const output = (shell: string, args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync(shell, args, {
    cwd: place,
    encoding: 'utf8',
    timeout: 30_000,
    env: { ...process.env, HOME: place },
  });
  expect([status, stderr], stdout).toEqual([0, '']);
  return stdout;
};

/** The words as typed, the last one unfinished, with what completes it. */
const cases: readonly (readonly [string, readonly string[]])[] = [
  ['svc-agent ch', ['check']],
  ['svc-agent recover database', ['database-corruption']],
  ['svc-agent run --role h', ['history']],
  ['svc-agent rules --pack re', ['recommended', 'recording']],
  ['svc-agent status --wa', ['--watch']],
  ['svc-agent backup pl', ['plan']],
  ['svc-agent completion f', ['fish']],
  ['svc-agent check -c agent', ['agent.yaml']],
  ['svc-agent dashboards over', ['overview']],
];

describe('in bash', () => {
  const complete = (line: string): string[] => {
    const words = line.split(' ').map((word) => `'${word}'`);
    const script = `source ${scriptFor.bash}
COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}
_svc_agent; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return output('bash', ['-c', script]).trim().split('\n').sort();
  };

  test.each(cases)('%s', (line, completed) => {
    expect(complete(line)).toEqual(completed);
  });

  test('files have spaces, and options with free values complete nothing', () => {
    expect(complete('svc-agent run -c my')).toEqual(['my folder']);
    expect(complete('svc-agent rules --prefix re')).toEqual(['']);
  });

  test('every command and every option of its help is offered', async () => {
    const offered = complete('svc-agent ');
    for (const { name } of commands) {
      expect(offered).toContain(name);
      const { stdout: help } = await commandHere([name, '--help']);
      const options = complete(`svc-agent ${name} --`);
      for (const [option] of help.matchAll(/(?<=[ [|])--[a-z][a-z-]+/g))
        expect(options, name).toContain(option);
    }
  });
});

describe.skipIf(!isInstalled('fish', ['-c', 'true']))('in fish', () => {
  test.each(cases)('%s', (line, completed) => {
    const script = `source ${scriptFor.fish}; complete -C '${line}'`;
    const words = output('fish', ['--no-config', '-c', script])
      .trim()
      .split('\n')
      .map((row) => row.split('\t')[0]!)
      .sort();
    // Fish also offers words that only contain what was typed.
    const typed = line.split(' ').at(-1)!;
    expect(words.filter((word) => word.startsWith(typed))).toEqual(completed);
  });
});

const program = `${process.execPath} ${mainFile}`;
/** A zsh with its own terminal, in which the line and a tab are typed; prints what the terminal shows. */
const inZsh = (line: string, until: string) => `zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; autoload -U compinit; compinit -u -D; svc-agent() { ${program} "$@" }; source <(svc-agent completion zsh); print REA""DY'
while zpty -r z text; do [[ $text == *READY* ]] && break; done
zpty -w -n z $'${line}\\t'
zpty -r z text '*${until}*'
print -r -- "$text"
zpty -d z
`;

describe.skipIf(!isInstalled('zsh', ['-c', 'true']))('in zsh', () => {
  test('a tab completes a word', () => {
    expect(output('zsh', ['-f', '-c', inZsh('svc-agent recover database-c', 'corruption')])).toContain(
      'database-corruption',
    );
  });

  test.each(cases.filter(([, completed]) => completed.length === 1))('%s', (line, completed) => {
    // The functions of zsh's own system, in which the offered words are printed.
    const script = `compdef() {}
_describe() { print -rl -- \${(P)2%%:*} }
_arguments() { print -rl -- "$@" }
source ${scriptFor.zsh}
words=(${line}); CURRENT=\${#words}; _svc_agent`;
    const said = output('zsh', ['-f', '-c', script]);
    // zsh itself completes files.
    expect(said).toContain(completed[0] === 'agent.yaml' ? '*-c:file:_files' : completed[0]);
  });
});
