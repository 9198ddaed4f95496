import type { Binary, Expr, Selector } from '../promql/ast.ts';
import { comparisons } from '../promql/ast.ts';
import { walk } from '../promql/walk.ts';
import { calls } from './nodes.ts';

/** Whether an expression can be false: a comparison, `absent`, or a set operator that takes series away. */
export function hasCondition(expr: Expr): boolean {
  let found = false;
  walk(expr, (node) => {
    if (node.type === 'binary' && isCondition(node)) found = true;
    if (calls(node, (name) => name.startsWith('absent'))) found = true;
  });
  return found;
}

const isCondition = ({ op, bool }: Binary): boolean => (comparisons.has(op) && !bool) || op === 'unless';

/** Selectors of an expression that are looked for by their absence. */
export function absences(expr: Expr): readonly Selector[] {
  const found: Selector[] = [];
  walk(expr, (node, around) => {
    if (node.type === 'selector' && calls(around.at(-1), (name) => name.startsWith('absent')))
      found.push(node);
  });
  return found;
}
