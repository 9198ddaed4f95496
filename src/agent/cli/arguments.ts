import { parseArgs } from 'node:util';
import { AgentError } from '../../core/errors.ts';
import { nearest } from '../../core/suggest.ts';

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>['options']>;

/** The options of every command that reads a configuration. */
export const configurationOptions = {
  config: { type: 'string', short: 'c' },
  'service-config': { type: 'string', multiple: true },
  role: { type: 'string', multiple: true },
} as const satisfies Options;

/** The options every command takes. */
export const commonOptions = {
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
