import { type ConsoleReader, createConsoleReader } from '../lines/console-reader.ts';
import { createFields, type Fields, type Slots } from '../lines/fields.ts';
import { createJsonReader, type JsonReader } from '../lines/json-reader.ts';
import type { LogsOptions } from '../options.ts';
import { tallyFields } from './service-tally.ts';

/** What reads the lines of files whose entries may be of certain services. */
export interface Readers {
  fields: Fields;
  json: JsonReader;
  console: ConsoleReader;
}

/** Reads what the services' metrics need and nothing else; `roleField` where several services share a file. */
export function createReaders(
  slots: Slots,
  options: readonly LogsOptions[],
  roleField: string | undefined,
): Readers {
  const names = new Set(options.flatMap(tallyFields));
  if (roleField !== undefined) names.add(roleField);
  const wanted = new Map([...names].map((name) => [name, slots.of(name)]));
  const fields = createFields([...wanted.values()]);
  const json = createJsonReader(fields, wanted);
  const columns = {
    ts: slots.of('ts'),
    levels: options.map(({ levelKey }) => slots.of(levelKey)),
    logger: slots.of('logger'),
    msg: slots.of('msg'),
  };
  return { fields, json, console: createConsoleReader(fields, columns, json) };
}
