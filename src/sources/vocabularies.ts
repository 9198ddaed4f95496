import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from '../core/errors.ts';
import {
  catalogVocabulary,
  createVocabulary,
  extendTable,
  type SourceUnit,
  unitDivisors,
  type Vocabulary,
  type VocabularyTable,
} from '../core/vocabulary.ts';
import { createVocabularyDetector, type VocabularyDetector } from '../core/vocabulary-detector.ts';

/** A vocabulary in the configuration. */
export interface InlineTable {
  /** Name of the shipped table that this table extends. Without it, this table is the whole vocabulary. */
  extends?: string;
  metrics: Readonly<Record<string, string>>;
  tags: Readonly<Record<string, string>>;
  /** Units by the sender's name of a metric. */
  units: Readonly<Record<string, string>>;
  /** Metrics that are left out, by the sender's or the catalog's name; `*` stands for any characters. */
  drop?: readonly string[];
  /** If set, all other metrics are left out. */
  keep?: readonly string[];
  labels?: { drop: readonly string[] };
}

/**
 * The shipped tables (`vocabularies/*.json`) and the catalog's own names. Rejects with the error of the file system.
 */
export async function readVocabularies(directory: string): Promise<Vocabulary[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.json')).sort();
  const tables = await Promise.all(
    files.map(async (name) => JSON.parse(await readFile(join(directory, name), 'utf8')) as VocabularyTable),
  );
  return [catalogVocabulary(), ...tables.map(createVocabulary)];
}

/**
 * The vocabulary of a service by its `vocabulary` setting: `auto`, a table's name, or a table. Throws `AgentError`
 * (`config_invalid`) for a name or a unit that does not exist.
 */
export function vocabularyDetectorFor(
  setting: string | InlineTable,
  shipped: readonly Vocabulary[],
  where: string,
): VocabularyDetector {
  if (setting === 'auto') return createVocabularyDetector(shipped);
  const vocabulary =
    typeof setting === 'string'
      ? named(setting, shipped, where, ['auto'])
      : createVocabulary(inlineTable(setting, shipped, where));
  return createVocabularyDetector([vocabulary], true);
}

function named(
  name: string,
  shipped: readonly Vocabulary[],
  where: string,
  others: readonly string[],
): Vocabulary {
  const found = shipped.find((vocabulary) => vocabulary.name === name);
  if (found) return found;
  const names = [...others, ...shipped.map((vocabulary) => vocabulary.name)].join(', ');
  const allowed = `use ${names}${others.length > 0 ? ' or a table' : ''}`;
  throw new AgentError('config_invalid', { where, what: 'unknown vocabulary', got: name, allowed });
}

function inlineTable(setting: InlineTable, shipped: readonly Vocabulary[], where: string): VocabularyTable {
  const { metrics, tags, units, drop, keep, labels } = setting;
  for (const [name, unit] of Object.entries(units)) {
    if (Object.hasOwn(unitDivisors, unit)) continue;
    const allowed = `use ${Object.keys(unitDivisors).join(', ')}`;
    const fault = { where: `${where}.units.${name}`, what: 'unknown unit', got: unit, allowed };
    throw new AgentError('config_invalid', fault);
  }
  const selection = { drop, keep, dropLabels: labels?.drop };
  const own = { name: 'own', metrics, tags, units: units as Record<string, SourceUnit>, ...selection };
  if (setting.extends === undefined) return own;
  const base = named(setting.extends, shipped, `${where}.extends`, []);
  return extendTable(base.table, { ...own, name: `${base.name} with own entries` });
}
