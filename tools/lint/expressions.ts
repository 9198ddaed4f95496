import type { PackName } from '../../src/monitoring/alert.ts';
import { typeOf } from '../../src/monitoring/dashboards/queries.ts';
import type { RenderedRule } from '../../src/monitoring/packs.ts';
import {
  type Aggregate,
  canHave,
  comparisons,
  counterFunctions,
  type Expr,
  resultLabels,
  selectorsOf,
  setOperators,
  walk,
} from '../promql.ts';

/** One rule, with the context that a lint may need. */
export interface Subject {
  rule: RenderedRule;
  expr: Expr;
  pack: PackName;
  /** The names that recording rules define. */
  recorded: ReadonlySet<string>;
}

/** A lint: its name, and a function that returns the faults that it finds. */
export interface Lint {
  name: string;
  faults(subject: Subject): readonly string[];
}

export interface Finding {
  lint: string;
  /** The name of the alert or recorded series. */
  rule: string;
  fault: string;
}

/** Every fault that `check` finds at a node; `around` lists the nodes that enclose it, nearest last. */
const eachNode =
  (check: (node: Expr, around: readonly Expr[]) => string | undefined) =>
  (expr: Expr): string[] => {
    const faults: string[] = [];
    walk(expr, (node, around) => {
      const fault = check(node, around);
      if (fault) faults.push(fault);
    });
    return faults;
  };

/** A lint that uses only the expression and the recorded names. */
const expressionLint = (
  name: string,
  check: (expr: Expr, recorded: ReadonlySet<string>) => readonly string[],
): Lint => ({
  name,
  faults: ({ expr, recorded }) => check(expr, recorded),
});

/** Whether a node is a call of one of these functions. */
export const calls = (node: Expr | undefined, wanted: (name: string) => boolean): boolean =>
  node?.type === 'call' && wanted(node.name);

/** Aggregations that preserve the labels of the series that they select. */
const picking: ReadonlySet<string> = new Set(['topk', 'bottomk']);

const counterUse = expressionLint('counter', (expr) =>
  eachNode((node, around) => {
    if (node.type !== 'selector' || typeOf(node.name)?.movement !== 'counter') return undefined;
    const isRead = around.some((outer) => outer.type === 'call' && counterFunctions.has(outer.name));
    const isAsked = isOnlyAsked(node, around) || isAboveMinimum(node, around);
    return isRead || isAsked ? undefined : `${node.name} is a counter and is read without rate or increase`;
  })(expr),
);

/** Whether only the presence of the series matters, or its first value. */
function isOnlyAsked(node: Expr, around: readonly Expr[]): boolean {
  if (around.some((outer) => calls(outer, (name) => name === 'min_over_time' || name.startsWith('absent'))))
    return true;
  const path = [...around, node];
  const asked = path.findIndex((part, index) => index > 0 && isRightOf(path[index - 1]!, part));
  const isCompared = (part: Expr) => part.type === 'binary' && comparisons.has(part.op);
  return asked >= 0 && !path.slice(asked).some(isCompared);
}

/** Whether the minimum of the series in a window is subtracted from it, which results in an increase in whole numbers. */
function isAboveMinimum(node: Expr, around: readonly Expr[]): boolean {
  const outer = around.at(-1);
  if (outer?.type !== 'binary' || outer.op !== '-' || outer.left !== node) return false;
  const { right } = outer;
  return (
    calls(right, (name) => name === 'min_over_time') &&
    selectorsOf(right)[0]?.name === selectorsOf(node)[0]?.name
  );
}

const isRightOf = (outer: Expr, part: Expr): boolean =>
  outer.type === 'binary' && setOperators.has(outer.op) && outer.op !== 'or' && outer.right === part;

const gaugeUse = expressionLint('gauge', (expr) =>
  eachNode((node, around) => {
    if (node.type !== 'selector' || typeOf(node.name)?.movement !== 'gauge') return undefined;
    const call = around.at(-1);
    if (call?.type !== 'call' || !counterFunctions.has(call.name)) return undefined;
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

/** Labels that some selector below may add to the result. */
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
    if (!canHave(resultLabels(buckets), 'le')) return 'histogram_quantile of series without le';
    const strange = selectorsOf(buckets).find(({ name }) => !name.endsWith('_bucket'));
    return strange && `histogram_quantile of ${strange.name}, which has no buckets`;
  })(expr),
);

/** Aggregations after which it makes no difference how many agents reported the same series. */
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

/** Lints that compare what the catalogs know about a series with what a rule does with it. */
export const seriesLints: readonly Lint[] = [
  ...[counterUse, gaugeUse, known, knownLabels, grouping, quantile, replicated],
];

const scrapeIntervalMs = 60_000;
const longestRangeMs = 3 * 86_400_000;

const range = expressionLint('range', (expr) =>
  eachNode((node) => {
    if (node.type !== 'selector' || node.rangeMs === undefined) return undefined;
    if (node.rangeMs < 2 * scrapeIntervalMs) return `${node.name} over less than two scrapes`;
    return node.rangeMs > longestRangeMs ? `${node.name} over more than three days` : undefined;
  })(expr),
);

const division = expressionLint('division', (expr) =>
  eachNode((node, around) => {
    if (node.type !== 'binary' || node.op !== '/' || resultLabels(node.right).type === 'scalar')
      return undefined;
    const inside = around.find((outer) => outer.type === 'aggregate');
    return inside && `a division inside ${(inside as Aggregate).op}: 0/0 of one series makes it all NaN`;
  })(expr),
);

const bucketBound = expressionLint('bucket-bound', (expr) =>
  selectorsOf(expr).flatMap(({ matchers }) =>
    matchers
      .filter(({ label, op, value }) => label === 'le' && (op === '=' || op === '!=') && /^\d+$/.test(value))
      .map(({ value }) => `le="${value}" is "${value}.0" in newer servers; match both`),
  ),
);

const fragile = expressionLint('fragile', (expr) =>
  eachNode((node) =>
    node.type === 'aggregate' && picking.has(node.op)
      ? `${node.op} changes its series from look to check`
      : undefined,
  )(expr),
);

const matching = expressionLint('matching', (expr) =>
  eachNode((node) => {
    if (node.type !== 'binary' || node.matching || node.op === 'or') return undefined;
    const [left, right] = [resultLabels(node.left), resultLabels(node.right)];
    if (left.type !== 'fixed' || right.type !== 'fixed') return undefined;
    const differ = [...left.labels, ...right.labels].find(
      (label) => !left.labels.has(label) || !right.labels.has(label),
    );
    return differ && `${node.op} matches series of which one side has no ${differ}`;
  })(expr),
);

/** Lints for faults of an expression that do not depend on its series. */
export const shapeLints: readonly Lint[] = [range, division, bucketBound, fragile, matching];
