import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { AgentError, errorText, systemCode } from '../../core/errors.ts';
import { configurationOptions, parseCommand } from './arguments.ts';
import type { Io } from './io.ts';
import { starter } from './starter.ts';

const usage = `Usage: svc-agent init [FILE] [--service-config FILE]... [--role ROLE]...

Writes a commented starter configuration to FILE, or to standard output. Never overwrites a file.
With the service's own files it takes roles and addresses from there.
`;

/** `svc-agent init`: a first configuration that `check` passes. */
export async function init(args: readonly string[], io: Io): Promise<number> {
  const { role, 'service-config': serviceConfig } = configurationOptions;
  const { values, positionals } = parseCommand('init', args, { role, 'service-config': serviceConfig });
  if (values.help) {
    io.stdout(usage);
    return 0;
  }
  if (positionals.length > 1) {
    const fault = { where: 'svc-agent init', what: 'more than one file', got: positionals.join(' ') };
    throw new AgentError('usage', { ...fault, allowed: 'name one, or none for standard output' });
  }
  const files = values['service-config'] ?? [];
  const { readForStarter } = await import('../service-config/starter-facts.ts');
  const text = starter(readForStarter(files, values.role ?? [], io));
  const [file] = positionals;
  if (file === undefined) io.stdout(text);
  else {
    write(resolve(io.cwd, file), file, text);
    io.stderr(`${file} written; next: svc-agent check -c ${file}\n`);
  }
  return 0;
}

/** Throws `usage` if the file is there already, `internal` if it cannot be written. */
function write(path: string, file: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o644 });
  } catch (cause) {
    if (systemCode(cause) === 'EEXIST') {
      const fault = {
        where: file,
        what: 'there already, and never overwritten',
        allowed: 'name another file',
      };
      throw new AgentError('usage', fault, cause);
    }
    const fault = {
      where: file,
      what: `cannot be written, ${errorText(cause)}`,
      allowed: 'name a writable place',
    };
    throw new AgentError('internal', fault, cause);
  }
}
