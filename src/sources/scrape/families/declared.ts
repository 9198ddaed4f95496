import { type ExposedType, readComment } from '../exposition/comment.ts';
import type { LineTable } from '../exposition/line-table.ts';
import type { Page } from '../exposition/page-reader.ts';

/** What the comments of a page say; of two that contradict each other the first counts. */
export interface Declared {
  types: ReadonlyMap<string, ExposedType>;
  helps: ReadonlyMap<string, string>;
}

export function declaredBy(table: LineTable, page: Page): Declared {
  const types = new Map<string, ExposedType>();
  const helps = new Map<string, string>();
  for (let n = 0; n < page.count; n++) {
    const id = page.order[n]!;
    if (table.comment[id] === 0) continue;
    const at = table.keyAt[id]!;
    const comment = readComment(table.arena, at, at + table.keyLength[id]!);
    if (comment === 'invalid' || comment === undefined || comment.about === 'end') continue;
    if (comment.about === 'help') {
      if (!helps.has(comment.name)) helps.set(comment.name, comment.help);
    } else if (!types.has(comment.name)) types.set(comment.name, comment.type);
  }
  return { types, helps };
}

/** Names whose type is not what it was. */
export function changedTypes(before: Declared, now: Declared): Set<string> {
  const changed = new Set<string>();
  for (const [name, type] of now.types) if (before.types.get(name) !== type) changed.add(name);
  for (const name of before.types.keys()) if (!now.types.has(name)) changed.add(name);
  return changed;
}
