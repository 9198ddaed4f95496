import * as z from 'zod';
import { agentBlock } from './blocks.ts';

type Schema = { [key: string]: unknown };

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Any value may stand in a variable; text has no need of this. */
const variable: Schema = { type: 'string', pattern: '\\$\\{[A-Za-z_]\\w*(:[^{}]*)?\\}' };
const unquoted: ReadonlySet<unknown> = new Set(['integer', 'number', 'boolean']);

/**
 * The configuration as JSON Schema, draft 2020-12, as a file may be written: null is absent, and a number, a
 * truth or a word from a list may come from a variable. What holds between parts only `check` knows.
 */
export function configurationSchema(): Schema {
  const schema = z.toJSONSchema(agentBlock, { io: 'input', target: 'draft-2020-12' }) as Schema;
  return { ...asWritten(schema), title: 'svc-agent configuration (agent.yaml)' };
}

function asWritten(schema: Schema): Schema {
  const result: Schema = { ...schema };
  for (const key of ['anyOf', 'oneOf', 'allOf'] as const) {
    if (Array.isArray(schema[key])) result[key] = (schema[key] as Schema[]).map(asWritten);
  }
  if (isSchema(schema.items)) result.items = asWritten(schema.items);
  if (isSchema(schema.additionalProperties)) {
    result.additionalProperties = orNull(asWritten(schema.additionalProperties));
  }
  for (const key of ['properties', '$defs'] as const) {
    if (isSchema(schema[key]))
      result[key] = eachProperty(
        schema[key],
        key === 'properties' ? (schema.required as string[]) : undefined,
      );
  }
  return unquoted.has(schema.type) || (schema.enum !== undefined && schema.type === 'string')
    ? orVariable(result)
    : result;
}

function eachProperty(properties: Schema, required: readonly string[] | undefined): Schema {
  const entries = Object.entries(properties).map(([name, property]) => {
    const written = asWritten(property as Schema);
    return [name, required?.includes(name) ? written : orNull(written)];
  });
  return Object.fromEntries(entries);
}

/** Descriptions and defaults stay outside, where editors look for them. */
function alternatives(schema: Schema, ...others: Schema[]): Schema {
  const { description, default: usual, ...rest } = schema;
  const known =
    Array.isArray(rest.anyOf) && Object.keys(rest).length === 1 ? (rest.anyOf as Schema[]) : [rest];
  return {
    ...(description === undefined ? {} : { description }),
    ...(usual === undefined ? {} : { default: usual }),
    anyOf: [...known, ...others],
  };
}

const orVariable = (schema: Schema): Schema => alternatives(schema, variable);
const orNull = (schema: Schema): Schema => alternatives(schema, { type: 'null' });
