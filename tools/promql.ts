import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';
import { parseDuration } from '../src/core/text-formats.ts';

/**
 * PromQL as a tree, for the checks of rules and dashboards. The grammar is Prometheus' own
 * (`@prometheus-io/lezer-promql`); this file keeps of its tree what the checks need. Types are not checked:
 * `promtool check rules` does that.
 */

/** Position in the text: first character, and one past the last. */
interface Span {
  start: number;
  end: number;
}

interface NumberLiteral extends Span {
  type: 'number';
  value: number;
}

interface StringLiteral extends Span {
  type: 'string';
  value: string;
}

interface Matcher {
  label: string;
  op: '=' | '!=' | '=~' | '!~';
  value: string;
}

/** An instant selector, or with `rangeMs` a range selector. */
export interface Selector extends Span {
  type: 'selector';
  /** The metric; empty if the selector consists of matchers alone. */
  name: string;
  matchers: readonly Matcher[];
  rangeMs?: number;
}

interface Subquery extends Span {
  type: 'subquery';
  expr: Expr;
  rangeMs: number;
  stepMs?: number;
}

export interface Call extends Span {
  type: 'call';
  name: string;
  args: readonly Expr[];
}

/** The labels that an aggregation keeps (`by`) or removes (`without`). */
interface Grouping {
  without: boolean;
  labels: readonly string[];
}

export interface Aggregate extends Span {
  type: 'aggregate';
  op: string;
  grouping?: Grouping;
  expr: Expr;
}

/** `on`, `ignoring`, `group_left` and `group_right` of a binary operation. */
interface Matching {
  on: boolean;
  labels: readonly string[];
  group?: 'left' | 'right';
  include: readonly string[];
}

export interface Binary extends Span {
  type: 'binary';
  op: string;
  /** Position of the operator. */
  opStart: number;
  bool: boolean;
  matching?: Matching;
  left: Expr;
  right: Expr;
}

interface Negation extends Span {
  type: 'negation';
  expr: Expr;
}

/** An expression without its parentheses; the span of what stood in parentheses includes them. */
export type Expr = NumberLiteral | StringLiteral | Selector | Subquery | Call | Aggregate | Binary | Negation;

export const setOperators: ReadonlySet<string> = new Set(['and', 'or', 'unless']);
export const comparisons: ReadonlySet<string> = new Set(['==', '!=', '>', '<', '>=', '<=']);
/** Functions that read the increases of a counter. */
export const counterFunctions: ReadonlySet<string> = new Set(['rate', 'irate', 'increase', 'resets']);

/** Parses one expression. Throws with the position of the first fault. */
export function parse(text: string): Expr {
  const top = parser.parse(text).topNode;
  top.cursor().iterate(({ type, from }) => {
    if (type.isError)
      throw new Error(`not PromQL at character ${from}, got "${text.slice(from, from + 20)}"`);
  });
  const [whole] = childrenOf(top);
  if (!whole) throw new Error('not PromQL: the expression is empty');
  return convert(whole, text);
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

function convert(node: SyntaxNode, text: string): Expr {
  const span = { start: node.from, end: node.to };
  const children = childrenOf(node);
  const [first] = children;
  const source = text.slice(node.from, node.to);
  switch (node.name) {
    case 'NumberDurationLiteral':
      return { type: 'number', value: numberOf(source), ...span };
    case 'StringLiteral':
      return { type: 'string', value: unquoted(source), ...span };
    case 'ParenExpr':
    case 'OffsetExpr':
    case 'StepInvariantExpr':
      return { ...convert(first!, text), ...span };
    case 'UnaryExpr': {
      const expr = convert(children.at(-1)!, text);
      return source.startsWith('-') ? { type: 'negation', expr, ...span } : { ...expr, ...span };
    }
    case 'VectorSelector': {
      const matchers = node.getChild('LabelMatchers');
      return {
        type: 'selector',
        name: first?.name === 'Identifier' ? text.slice(first.from, first.to) : '',
        matchers: matchers ? childrenOf(matchers).map((of) => matcher(of, text)) : [],
        ...span,
      };
    }
    case 'MatrixSelector':
      return { ...(convert(first!, text) as Selector), rangeMs: durationMs(children[1]!, text), ...span };
    case 'SubqueryExpr': {
      const [expr, range, step] = children;
      const stepMs = step && durationMs(step, text);
      return {
        type: 'subquery',
        expr: convert(expr!, text),
        rangeMs: durationMs(range!, text),
        stepMs,
        ...span,
      };
    }
    case 'FunctionCall':
      return {
        type: 'call',
        name: text.slice(first!.from, first!.to),
        args: argumentsOf(node, text),
        ...span,
      };
    case 'AggregateExpr':
      return aggregate(node, text);
    case 'BinaryExpr':
      return binary(node, text);
    default:
      throw new Error(`PromQL that no check knows: ${node.name} in ${text}`);
  }
}

function aggregate(node: SyntaxNode, text: string): Expr {
  const op = node.firstChild!;
  const modifier = node.getChild('AggregateModifier');
  const expr = argumentsOf(node, text).at(-1);
  if (!expr) throw new Error(`not PromQL: ${text.slice(node.from, node.to)} aggregates nothing`);
  return {
    type: 'aggregate',
    op: text.slice(op.from, op.to),
    grouping: modifier
      ? { without: modifier.getChild('Without') !== null, labels: labelsIn(modifier, text) }
      : undefined,
    expr,
    start: node.from,
    end: node.to,
  };
}

function binary(node: SyntaxNode, text: string): Binary {
  const children = childrenOf(node);
  const [left, op] = children;
  const clause = node.getChild('MatchingModifierClause');
  return {
    type: 'binary',
    op: text.slice(op!.from, op!.to).toLowerCase(),
    opStart: op!.from,
    bool: node.getChild('BoolModifier') !== null,
    matching: clause ? matchingOf(clause, text) : undefined,
    left: convert(left!, text),
    right: convert(children.at(-1)!, text),
    start: node.from,
    end: node.to,
  };
}

function matchingOf(clause: SyntaxNode, text: string): Matching {
  const [labels, include] = clause.getChildren('GroupingLabels');
  const isLeft = clause.getChild('GroupLeft') !== null;
  const group = isLeft ? 'left' : clause.getChild('GroupRight') ? 'right' : undefined;
  return {
    on: clause.getChild('On') !== null,
    labels: labels ? namesIn(labels, text) : [],
    group,
    include: include ? namesIn(include, text) : [],
  };
}

const namesIn = (node: SyntaxNode, text: string): string[] =>
  node.getChildren('LabelName').map(({ from, to }) => text.slice(from, to));

const labelsIn = (modifier: SyntaxNode, text: string): string[] =>
  namesIn(modifier.getChild('GroupingLabels')!, text);

function argumentsOf(node: SyntaxNode, text: string): Expr[] {
  const body = node.getChild('FunctionCallBody');
  return body ? childrenOf(body).map((of) => convert(of, text)) : [];
}

function matcher(node: SyntaxNode, text: string): Matcher {
  const [label, op, value] = childrenOf(node).map(({ from, to }) => text.slice(from, to));
  return { label: label!, op: op as Matcher['op'], value: unquoted(value!) };
}

const durationMs = ({ from, to }: SyntaxNode, text: string): number => parseDuration(text.slice(from, to));

function numberOf(source: string): number {
  if (/^[+-]?inf$/i.test(source)) return source.startsWith('-') ? -Infinity : Infinity;
  return Number(source);
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

function unquoted(text: string): string {
  const inner = text.slice(1, -1);
  if (text.startsWith('`')) return inner;
  return inner.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter);
}

/** The operands of an expression, in the order of the text. */
function partsOf(expr: Expr): readonly Expr[] {
  switch (expr.type) {
    case 'binary':
      return [expr.left, expr.right];
    case 'call':
      return expr.args;
    case 'aggregate':
    case 'subquery':
    case 'negation':
      return [expr.expr];
    default:
      return [];
  }
}

/** Visits an expression and all its operands; `around` is what encloses the visited one, nearest last. */
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

/**
 * The labels that a result can have. `scalar` has none and matches anything; `fixed` lists all that are
 * possible; `open` is whatever the series have, less `without`.
 */
type LabelSet =
  | { type: 'scalar' }
  | { type: 'fixed'; labels: ReadonlySet<string> }
  | { type: 'open'; without: ReadonlySet<string> };

const fixed = (labels: Iterable<string>): LabelSet => ({ type: 'fixed', labels: new Set(labels) });
const open = (without: Iterable<string> = []): LabelSet => ({ type: 'open', without: new Set(without) });

/** Whether a result can have the label. */
export function canHave(set: LabelSet, label: string): boolean {
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
      const inner = resultLabels(expr.expr);
      if (op === 'topk' || op === 'bottomk') return inner;
      if (!grouping) return fixed([]);
      if (grouping.without) return less(inner, grouping.labels);
      return fixed(grouping.labels.filter((label) => canHave(inner, label)));
    }
    case 'binary':
      return binaryLabels(expr);
  }
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
  if (name.startsWith('absent')) {
    // `absent` takes over what its selector says by equality.
    const matchers = first?.type === 'selector' ? first.matchers : [];
    return fixed(matchers.filter(({ op }) => op === '=').map(({ label }) => label));
  }
  const inner = resultLabels((name === 'histogram_quantile' ? args[1] : first)!);
  if (name === 'histogram_quantile') return less(inner, ['le']);
  if (name !== 'label_replace' && name !== 'label_join') return inner;
  const target = args[1]!.type === 'string' ? args[1]!.value : '';
  return inner.type === 'fixed' ? fixed([...inner.labels, target]) : inner;
}

function binaryLabels({ op, left, right, matching }: Binary): LabelSet {
  const [a, b] = [resultLabels(left), resultLabels(right)];
  if (op === 'or') return either(a, b);
  if (setOperators.has(op) || b.type === 'scalar') return a;
  if (a.type === 'scalar') return b;
  if (matching?.group) {
    const [many, one] = matching.group === 'left' ? [a, b] : [b, a];
    const added = matching.include.filter((label) => canHave(one, label));
    return many.type === 'fixed' ? fixed([...many.labels, ...added]) : many;
  }
  if (!matching) return a.type === 'fixed' ? a : b.type === 'fixed' ? b : open([...a.without, ...b.without]);
  return matching.on ? fixed(matching.labels.filter((label) => canHave(a, label))) : less(a, matching.labels);
}

function either(a: LabelSet, b: LabelSet): LabelSet {
  if (a.type === 'fixed' && b.type === 'fixed') return fixed([...a.labels, ...b.labels]);
  if (a.type !== 'open' || b.type !== 'open') return open();
  return open([...a.without].filter((label) => b.without.has(label)));
}
