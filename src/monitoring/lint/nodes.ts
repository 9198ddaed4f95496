import type { Expr } from '../promql/ast.ts';
import { walk } from '../promql/walk.ts';
import type { Lint } from './rule.ts';

/** Every fault that `judge` finds at a node; `around` is what surrounds it, nearest last. */
export const eachNode =
  (judge: (node: Expr, around: readonly Expr[]) => string | undefined) =>
  (expr: Expr): string[] => {
    const faults: string[] = [];
    walk(expr, (node, around) => {
      const fault = judge(node, around);
      if (fault) faults.push(fault);
    });
    return faults;
  };

/** A lint that looks at the expression only, and at the names that are recorded. */
export const expressionLint = (
  name: string,
  judge: (expr: Expr, recorded: ReadonlySet<string>) => readonly string[],
): Lint => ({
  name,
  faults: ({ expr, recorded }) => judge(expr, recorded),
});

/** Whether a node is a call of one of these functions. */
export const calls = (node: Expr | undefined, wanted: (name: string) => boolean): boolean =>
  node?.type === 'call' && wanted(node.name);

/** Aggregations that keep the labels of what they pick. */
export const picking: ReadonlySet<string> = new Set(['topk', 'bottomk']);
