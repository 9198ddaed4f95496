import type { StoreLook } from '../store.ts';
import { type Ask, answerOf, literal } from './answer.ts';

/** The version in the first column of the first row, or why there is none. */
export async function schemaOf(
  ask: Ask,
  query: string,
  database: string,
): Promise<Pick<StoreLook, 'schemaVersion' | 'schemaUnknown'>> {
  const { rows, unknown } = await answerOf(
    ask,
    query.replaceAll('{database}', () => literal(database)),
  );
  if (rows === undefined) return { schemaUnknown: unknown };
  const version = rows[0] && Object.values(rows[0])[0];
  if (version === undefined || version === null) {
    return { schemaUnknown: 'the schema’s table has no version of this database' };
  }
  return { schemaVersion: version };
}
