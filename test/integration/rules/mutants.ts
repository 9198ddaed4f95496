import { type Aggregate, comparisons, type Expr, parse, walk } from '../../../tools/promql.ts';

/** A rule's expression with one thing wrong in it. */
export interface Mutant {
  what: string;
  expr: string;
}

const flipped: Readonly<Record<string, string>> = {
  '==': '!=',
  '!=': '==',
  '>': '<',
  '<': '>',
  '>=': '<=',
  '<=': '>=',
};
const inclusive: Readonly<Record<string, string>> = { '>': '>=', '<': '<=' };

/**
 * The mutants of an expression: what goes wrong when rules are edited, in comparisons, the threshold, aggregations and guards.
 */
export function mutantsOf(text: string, threshold: number | undefined): Mutant[] {
  const mutants: Mutant[] = [];
  const add = (what: string, start: number, end: number, by: string) =>
    mutants.push({ what: `${what} at ${start}`, expr: text.slice(0, start) + by + text.slice(end) });
  const source = ({ start, end }: Expr) => text.slice(start, end);
  walk(parse(text), (expr) => {
    if (expr.type === 'aggregate') add(`no ${expr.op}`, expr.start, expr.end, `(${source(expr.expr)})`);
    if (expr.type === 'aggregate' && expr.op === 'max' && !isOfOne(expr))
      add('min for max', expr.start, expr.start + 3, 'min');
    if (expr.type !== 'binary') return;
    const { op, opStart, left, right, start, end } = expr;
    if (comparisons.has(op)) {
      add(`${flipped[op]} for ${op}`, opStart, opStart + op.length, flipped[op]!);
      if (right.type === 'number' && (op === '==' || right.value === threshold)) {
        if (op in inclusive) add(`${inclusive[op]} for ${op}`, opStart, opStart + 1, inclusive[op]!);
        for (const value of others(right.value, op))
          add(`${value} for ${right.value}`, right.start, right.end, value);
      }
    }
    if (op === 'and' || op === 'unless')
      mutants.push({
        what: `no ${op} at ${opStart}`,
        expr: text.slice(0, start) + source(left) + text.slice(end),
      });
  });
  return mutants;
}

/** Whether the groups of an aggregation are single series, whose maximum is their minimum. */
const isOfOne = ({ grouping }: Aggregate) => grouping?.labels.includes('instance') && !grouping.without;

/** Thresholds other than this one; for a state the other state. */
function others(value: number, op: string): string[] {
  if (op === '==') return [String(1 - value)];
  return value === 0 ? ['-1', '1e12'] : [String(value * 3), String(value / 3)];
}
