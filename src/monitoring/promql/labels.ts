import type { Binary, Call, Expr, Selector } from './ast.ts';
import { setOperators } from './ast.ts';

/**
 * Which labels a result can have. `scalar` has none and matches anything; `fixed` are the only ones there can
 * be; `open` is whatever the series have, less those taken away.
 */
export type LabelSet =
  | { type: 'scalar' }
  | { type: 'fixed'; labels: ReadonlySet<string> }
  | { type: 'open'; without: ReadonlySet<string> };

const fixed = (labels: Iterable<string>): LabelSet => ({ type: 'fixed', labels: new Set(labels) });
const open = (without: Iterable<string> = []): LabelSet => ({ type: 'open', without: new Set(without) });

/** Whether a result can carry the label. */
export function canCarry(set: LabelSet, label: string): boolean {
  if (set.type === 'scalar') return false;
  return set.type === 'fixed' ? set.labels.has(label) : !set.without.has(label);
}

/** The labels that a result can have, by the rules of PromQL alone. */
export function resultLabels(expr: Expr): LabelSet {
  switch (expr.type) {
    case 'number':
    case 'string':
      return { type: 'scalar' };
    case 'selector':
      return open();
    case 'subquery':
    case 'negation':
      return resultLabels(expr.expr);
    case 'call':
      return callLabels(expr);
    case 'aggregate': {
      const { grouping, op } = expr;
      if (op === 'topk' || op === 'bottomk') return resultLabels(expr.expr);
      if (!grouping) return fixed([]);
      return grouping.without
        ? less(resultLabels(expr.expr), grouping.labels)
        : kept(expr.expr, grouping.labels);
    }
    case 'binary':
      return binaryLabels(expr);
  }
}

function kept(expr: Expr, labels: readonly string[]): LabelSet {
  const inner = resultLabels(expr);
  return fixed(labels.filter((label) => canCarry(inner, label)));
}

function less(set: LabelSet, labels: readonly string[]): LabelSet {
  if (set.type === 'scalar') return set;
  return set.type === 'open'
    ? open([...set.without, ...labels])
    : fixed([...set.labels].filter((label) => !labels.includes(label)));
}

function callLabels({ name, args }: Call): LabelSet {
  if (name === 'time' || name === 'scalar') return { type: 'scalar' };
  if (name === 'vector') return fixed([]);
  const [first] = args;
  if (name.startsWith('absent')) return absentLabels(first);
  const inner = resultLabels((name === 'histogram_quantile' ? args[1] : first)!);
  if (name === 'histogram_quantile') return less(inner, ['le']);
  if (name !== 'label_replace' && name !== 'label_join') return inner;
  const target = args[1]!.type === 'string' ? args[1]!.value : '';
  return inner.type === 'fixed' ? fixed([...inner.labels, target]) : inner;
}

/** `absent` knows only what its selector says of equality. */
function absentLabels(expr: Expr | undefined): LabelSet {
  if (expr?.type !== 'selector') return fixed([]);
  return fixed((expr as Selector).matchers.filter(({ op }) => op === '=').map(({ label }) => label));
}

function binaryLabels({ op, left, right, matching }: Binary): LabelSet {
  const [a, b] = [resultLabels(left), resultLabels(right)];
  if (op === 'or') return either(a, b);
  if (setOperators.has(op) || b.type === 'scalar') return a;
  if (a.type === 'scalar') return b;
  if (matching?.group) {
    const [many, one] = matching.group === 'left' ? [a, b] : [b, a];
    const added = matching.include.filter((label) => canCarry(one, label));
    return many.type === 'fixed' ? fixed([...many.labels, ...added]) : many;
  }
  if (!matching) return a.type === 'fixed' ? a : b.type === 'fixed' ? b : open([...a.without, ...b.without]);
  return matching.on
    ? fixed(matching.labels.filter((label) => canCarry(a, label)))
    : less(a, matching.labels);
}

function either(a: LabelSet, b: LabelSet): LabelSet {
  if (a.type === 'fixed' && b.type === 'fixed') return fixed([...a.labels, ...b.labels]);
  if (a.type !== 'open' || b.type !== 'open') return open();
  return open([...a.without].filter((label) => b.without.has(label)));
}
