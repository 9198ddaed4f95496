import { expect, test } from 'vitest';
import { z } from 'zod';
import { configurationSchema } from '../../../src/agent/config/blocks.ts';
import { backupTypes } from '../../../src/core/reasons.ts';
import { parseDuration } from '../../../src/core/text-formats.ts';
import { backupBlock } from '../../../src/probes/backups/block.ts';

// Defaults that depend on another key are only in descriptions, which must state the ones that apply.

interface Schema {
  description?: string;
  properties?: Readonly<Record<string, Schema>>;
  anyOf?: readonly Schema[];
  items?: Schema;
}

function described(schema: Schema, path: readonly string[]): string | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return schema.description;
  const inside = [schema.properties?.[key], schema.items && key === '[]' ? schema.items : undefined];
  for (const next of inside) {
    const found = next && described(next, rest);
    if (found) return found;
  }
  return schema.anyOf?.map((each) => described(each, path)).find(Boolean);
}

/** Parses `Default: full 30d, incremental and log 7d, config forever.` into ms by type; Infinity if there is no limit. */
function defaultsIn(path: string): Record<string, number> {
  const text = described(configurationSchema() as Schema, ['backups', '[]', ...path.split('.')]) ?? '';
  const [, list = ''] = /Default: ([^.]*)\./.exec(text) ?? [];
  return Object.fromEntries(
    list.split(', ').flatMap((part) => {
      const [, types = '', value = ''] = /^(\w+(?: and \w+)*) (.*)$/.exec(part) ?? [];
      const ms = /^\d/.test(value) ? parseDuration(value === '0' ? '0s' : value) : Number.POSITIVE_INFINITY;
      return types.split(' and ').map((type) => [type, ms] as const);
    }),
  );
}

const block = backupBlock({ secret: z.string() });
const ofType = (type: string) => block.parse({ name: 'one', type, source: { runs: {} } });

test.each([
  ['schedule.every', (of: ReturnType<typeof ofType>) => of.schedule.everyMs],
  ['objectives.rpo', (of: ReturnType<typeof ofType>) => of.objectives.rpoMs],
  ['objectives.rto', (of: ReturnType<typeof ofType>) => of.objectives.rtoMs],
  ['retention.keep', (of: ReturnType<typeof ofType>) => of.retention.keepMs],
] as const)('the description of backups[].%s names the default of each type', (path, appliedIn) => {
  const applied = backupTypes.map((type) => [type, appliedIn(ofType(type)) ?? Number.POSITIVE_INFINITY]);
  expect(defaultsIn(path)).toEqual(Object.fromEntries(applied));
});
