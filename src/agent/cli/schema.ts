import { closedLists } from '../../core/reasons.ts';
import { parseCommand } from './arguments.ts';
import type { Io } from './io.ts';

const usage = `Usage: svc-agent schema [--reasons] [--json]

Prints the JSON Schema (draft 2020-12) of agent.yaml, for editors:
  svc-agent schema > agent.schema.json
  # yaml-language-server: $schema=agent.schema.json

  --reasons  print every closed list of label values instead
`;

/** `svc-agent schema`: what the configuration may be, or every closed list. */
export async function schema(args: readonly string[], io: Io): Promise<number> {
  const { values } = parseCommand('schema', args, { reasons: { type: 'boolean' } });
  if (values.help) io.stdout(usage);
  else if (!values.reasons) {
    const { configurationSchema } = await import('../config/blocks.ts');
    io.stdout(`${JSON.stringify(configurationSchema(), null, 2)}\n`);
  } else if (values.json) io.stdout(`${JSON.stringify(closedLists, null, 2)}\n`);
  else {
    for (const [name, list] of Object.entries<readonly string[]>(closedLists))
      io.stdout(`${name}: ${list.join(', ')}\n`);
  }
  return 0;
}
