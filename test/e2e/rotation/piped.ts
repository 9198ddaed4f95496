import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generationsUnseen, lineOf, type OpenService } from './kill-loop.ts';

/** Programs that read lines from a pipe, and write and rotate the log themselves. */

/** It is not known into which file a line goes, so this many lines are a generation. */
const linesPerGeneration = 150;

interface Pipe {
  command: string;
  args: readonly string[];
  paths: readonly string[];
}

/** Opens a piped program; `prepare` creates what the program needs in a separate directory. */
function piped(prepare: (directory: string) => Pipe): OpenService {
  return (place, random) => {
    const directory = join(place, 'logs');
    mkdirSync(directory);
    const { command, args, paths } = prepare(directory);
    const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'inherit'], cwd: directory });
    const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
    const written = new Map<string, number>();
    let lines = 0;
    let seen = 1;
    let timer: NodeJS.Timeout;
    const generation = () => Math.floor(lines / linesPerGeneration) + 1;
    const write = () => {
      if (generation() - seen >= generationsUnseen) return;
      let text = '';
      for (let n = 5 + Math.floor(random() * 30); n > 0; n--) {
        const label = String(generation());
        text += `${lineOf(label, random)}\n`;
        written.set(label, (written.get(label) ?? 0) + 1);
        lines++;
      }
      child.stdin.write(text);
    };
    const run = () => {
      write();
      timer = setTimeout(run, 15);
    };
    write();
    return {
      paths,
      written,
      run,
      generation,
      sees: (newest) => {
        seen = newest;
      },
      stop() {
        clearTimeout(timer);
        child.kill();
      },
      async end() {
        clearTimeout(timer);
        child.stdin.end();
        await ended;
      },
    };
  };
}

export const svlogd = (processor: string | undefined): OpenService =>
  piped((directory) => {
    const lines = ['s20000', 'n0', ...(processor ? [`!${processor}`] : [])];
    writeFileSync(join(directory, 'config'), `${lines.join('\n')}\n`);
    return { command: 'svlogd', args: ['.'], paths: [join(directory, 'current'), join(directory, '@*')] };
  });

export const multilog = (processor: string | undefined): OpenService =>
  piped((directory) => ({
    command: 'multilog',
    args: ['s20000', 'n100000', ...(processor ? [`!${processor}`] : []), '.'],
    paths: [join(directory, 'current'), join(directory, '@*')],
  }));

/** Apache's rotatelogs. With `-n`, the next name begins anew in the oldest file; `-L` keeps a hard link to the newest one. */
export const rotatelogs = (options: readonly string[], file: string, due: string): OpenService =>
  piped((directory) => ({
    command: 'rotatelogs',
    args: [...options, join(directory, file), due],
    paths: [join(directory, 'app*')],
  }));

export const s6log = (processor: string | undefined): OpenService =>
  piped((directory) => ({
    command: 's6-log',
    args: ['-b', 'n300', 's20000', ...(processor ? [`!${processor}`] : []), directory],
    paths: [join(directory, 'current'), join(directory, '@*')],
  }));

/** A handler of Python's logging.handlers, created by a statement. */
export const python = (statement: string): OpenService =>
  piped((directory) => {
    const program = `import logging, logging.handlers, sys
${statement}
handler.setFormatter(logging.Formatter('%(message)s'))
log = logging.getLogger('service')
log.setLevel(logging.INFO)
log.addHandler(handler)
for line in sys.stdin: log.info(line.rstrip('\\n'))
`;
    return { command: 'python3', args: ['-c', program], paths: [join(directory, 'app.log*')] };
  });

const sources = new URL('../../fixtures/lumberjack/', import.meta.url);

/** Builds a program in a directory that `remove` deletes; undefined if Go or the module is not available. */
export function buildLumberjack(): { program: string; remove(): void } | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'svc-agent-lumberjack-'));
  for (const name of ['go.mod', 'go.sum', 'main.go'])
    copyFileSync(new URL(name, sources), join(directory, name));
  const { status } = spawnSync('go', ['build', '-o', 'writer', '.'], {
    cwd: directory,
    timeout: 120_000,
  });
  const remove = () => rmSync(directory, { recursive: true, force: true });
  if (status === 0) return { program: join(directory, 'writer'), remove };
  remove();
  return undefined;
}

export const lumberjack = (program: string): OpenService =>
  piped((directory) => ({
    command: program,
    args: [join(directory, 'app.log')],
    paths: [join(directory, 'app*.log*')],
  }));
