import type { Expr, Selector } from './ast.ts';

/** The parts of an expression, in the order of the text. */
export function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.type) {
    case 'binary':
      return [expr.left, expr.right];
    case 'call':
      return expr.args;
    case 'aggregate':
      return expr.param ? [expr.param, expr.expr] : [expr.expr];
    case 'subquery':
    case 'negation':
      return [expr.expr];
    default:
      return [];
  }
}

/** Visits an expression and all its parts; `around` is what surrounds the visited one, nearest last. */
export function walk(
  expr: Expr,
  visit: (expr: Expr, around: readonly Expr[]) => void,
  around: readonly Expr[] = [],
): void {
  visit(expr, around);
  for (const part of partsOf(expr)) walk(part, visit, [...around, expr]);
}

/** Every selector, in the order of the text. */
export function selectorsOf(expr: Expr): readonly Selector[] {
  const found: Selector[] = [];
  walk(expr, (part) => {
    if (part.type === 'selector') found.push(part);
  });
  return found;
}
