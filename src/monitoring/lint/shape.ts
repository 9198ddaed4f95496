import type { Aggregate } from '../promql/ast.ts';
import { resultLabels } from '../promql/labels.ts';
import { selectorsOf } from '../promql/walk.ts';
import { eachNode, expressionLint, picking } from './nodes.ts';
import type { Lint } from './rule.ts';

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

const regexp = expressionLint('regexp', (expr) =>
  selectorsOf(expr).flatMap(({ matchers }) =>
    matchers.flatMap(({ label, op, value }) => {
      if (op !== '=~' && op !== '!~') return [];
      if (/^\^|\$$/.test(value)) return [`${label} ${op} "${value}" is anchored already`];
      return /[.*+?|()[\]{}\\^$]/.test(value)
        ? []
        : [`${label} ${op} "${value}" needs no regular expression`];
    }),
  ),
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
      ? `${node.op} changes its series from look to look`
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

/** What is wrong with an expression whatever its series are. */
export const shapeLints: readonly Lint[] = [range, division, regexp, bucketBound, fragile, matching];
