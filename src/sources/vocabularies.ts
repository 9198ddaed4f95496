import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentError } from '../core/errors.ts';
import {
  catalogVocabulary,
  createVocabulary,
  createVocabularyDetector,
  type Unit,
  unitDivisors,
  type Vocabulary,
  type VocabularyDetector,
  type VocabularyTable,
} from '../core/vocabulary.ts';

/** A table as it stands in the configuration. */
export interface InlineTable {
  metrics: Readonly<Record<string, string>>;
  tags: Readonly<Record<string, string>>;
  /** Units by the sender's name of a metric. */
  units: Readonly<Record<string, string>>;
}

/** The shipped tables (`vocabularies/*.json`) and the catalog's own words. Rejects with what the file system says. */
export async function readVocabularies(directory: string): Promise<Vocabulary[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.json')).sort();
  const tables = await Promise.all(
    files.map(async (name) => JSON.parse(await readFile(join(directory, name), 'utf8')) as VocabularyTable),
  );
  return [catalogVocabulary(), ...tables.map(createVocabulary)];
}

/**
 * The words of a service by its `vocabulary`: `auto`, a table's name, or a table. Throws `AgentError`
 * (`config_invalid`) for a name or a unit that there is not.
 */
export function vocabularyDetectorFor(
  setting: string | InlineTable,
  shipped: readonly Vocabulary[],
  where: string,
): VocabularyDetector {
  if (setting === 'auto') return createVocabularyDetector(shipped);
  if (typeof setting !== 'string')
    return createVocabularyDetector([createVocabulary(tableOf(setting, where))], true);
  const named = shipped.find(({ name }) => name === setting);
  if (named !== undefined) return createVocabularyDetector([named], true);
  const names = ['auto', ...shipped.map(({ name }) => name)].join(', ');
  const allowed = `use ${names} or a table`;
  throw new AgentError('config_invalid', { where, what: 'unknown vocabulary', got: setting, allowed });
}

function tableOf({ metrics, tags, units }: InlineTable, where: string): VocabularyTable {
  for (const [name, unit] of Object.entries(units)) {
    if (Object.hasOwn(unitDivisors, unit)) continue;
    const allowed = `use ${Object.keys(unitDivisors).join(', ')}`;
    throw new AgentError('config_invalid', {
      where: `${where}.units.${name}`,
      what: 'unknown unit',
      got: unit,
      allowed,
    });
  }
  return { name: 'own', metrics, tags, units: units as Record<string, Unit> };
}
