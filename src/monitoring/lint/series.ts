import type { Aggregate, Expr } from '../promql/ast.ts';
import { comparisons, setOperators } from '../promql/ast.ts';
import { functions } from '../promql/functions.ts';
import { canCarry, resultLabels } from '../promql/labels.ts';
import { selectorsOf, walk } from '../promql/walk.ts';
import { calls, eachNode, expressionLint, picking } from './nodes.ts';
import type { Lint } from './rule.ts';
import { typeOf } from './types.ts';

const counterUse = expressionLint('counter', (expr) =>
  eachNode((node, around) => {
    if (node.type !== 'selector' || typeOf(node.name)?.movement !== 'counter') return undefined;
    const isRead = around.some((outer) => outer.type === 'call' && functions.get(outer.name) === 'counter');
    const isAsked = isOnlyAsked(node, around);
    return isRead || isAsked ? undefined : `${node.name} is a counter and is read without rate or increase`;
  })(expr),
);

/** Whether it only matters that the series is there, or what it was at its birth. */
function isOnlyAsked(node: Expr, around: readonly Expr[]): boolean {
  if (around.some((outer) => calls(outer, (name) => name === 'min_over_time' || name.startsWith('absent'))))
    return true;
  const path = [...around, node];
  const asked = path.findIndex((part, index) => index > 0 && isRightOf(path[index - 1]!, part));
  const isCompared = (part: Expr) => part.type === 'binary' && comparisons.has(part.op);
  return asked >= 0 && !path.slice(asked).some(isCompared);
}

const isRightOf = (outer: Expr, part: Expr): boolean =>
  outer.type === 'binary' && setOperators.has(outer.op) && outer.op !== 'or' && outer.right === part;

const gaugeUse = expressionLint('gauge', (expr) =>
  eachNode((node, around) => {
    if (node.type !== 'selector' || typeOf(node.name)?.movement !== 'gauge') return undefined;
    const call = around.at(-1);
    if (call?.type !== 'call' || functions.get(call.name) !== 'counter') return undefined;
    return `${node.name} is a gauge and ${call.name} takes each of its falls for a restart`;
  })(expr),
);

const known = expressionLint('known-metric', (expr, recorded) =>
  selectorsOf(expr)
    .filter(({ name }) => !typeOf(name) && !recorded.has(name) && name !== 'ALERTS')
    .map(({ name }) => `nothing exports ${name || 'a series without a name'}`),
);

const knownLabels = expressionLint('known-label', (expr) =>
  selectorsOf(expr).flatMap(({ name, matchers }) => {
    const labels = typeOf(name)?.labels;
    const strange = matchers.filter(({ label }) => labels && !labels.includes(label));
    return strange.map(({ label }) => `${name} has no label ${label}`);
  }),
);

/** Labels that some selector below can bring along. */
function broughtAlong(node: Expr): ReadonlySet<string> | undefined {
  const types = selectorsOf(node).map(({ name }) => typeOf(name));
  if (types.some((type) => !type)) return undefined;
  const made = new Set<string>();
  walk(node, (part) => {
    if (part.type === 'call' && part.name === 'label_replace' && part.args[1]?.type === 'string')
      made.add(part.args[1].value);
  });
  return new Set([...types.flatMap((type) => type!.labels), ...made]);
}

const grouping = expressionLint('grouping', (expr) =>
  eachNode((node) => {
    if (node.type !== 'aggregate' || picking.has(node.op)) return undefined;
    if (!node.grouping) return `${node.op} without by takes every label away, cluster included`;
    const labels = broughtAlong(node.expr);
    const strange = node.grouping.labels.find((label) => labels && !labels.has(label));
    return strange && `${node.op} groups by ${strange}, which its series do not have`;
  })(expr),
);

const quantile = expressionLint('quantile', (expr) =>
  eachNode((node) => {
    if (node.type !== 'call' || node.name !== 'histogram_quantile') return undefined;
    const buckets = node.args[1]!;
    if (!canCarry(resultLabels(buckets), 'le')) return 'histogram_quantile of series without le';
    const strange = selectorsOf(buckets).find(({ name }) => !name.endsWith('_bucket'));
    return strange && `histogram_quantile of ${strange.name}, which has no buckets`;
  })(expr),
);

/** Aggregations after which it makes no difference how many agents reported the same. */
const merging: ReadonlySet<string> = new Set(['max', 'min', 'group']);

const replicated = expressionLint('replicated', (expr) =>
  eachNode((node, around) => {
    if (node.type !== 'selector' || !typeOf(node.name)?.isReplicated) return undefined;
    const nearest = [...around].reverse().find((outer) => outer.type === 'aggregate') as
      | Aggregate
      | undefined;
    if (nearest && merging.has(nearest.op)) return undefined;
    const how = nearest ? `is first aggregated by ${nearest.op}` : 'is not aggregated';
    return `${node.name} may come from several agents and ${how}; use max`;
  })(expr),
);

/** What the catalogs know of a series, against what a rule does with it. */
export const seriesLints: readonly Lint[] = [
  ...[counterUse, gaugeUse, known, knownLabels, grouping, quantile, replicated],
];
