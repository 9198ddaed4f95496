import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';
import { parseDuration } from '../src/core/text-formats.ts';

/**
 * Parses PromQL into a tree, for the checks of rules and dashboards. The grammar is Prometheus' own
 * (`@prometheus-io/lezer-promql`); this file reduces its tree to what the checks need. Types are not checked: `promtool check
 * rules` does that.
 */

/** A range of the text: the positions of its first character and of the character after its last. */
interface Span {
  start: number;
  end: number;
}

/** An instant selector, or a range selector if `rangeMs` is set. */
export interface Selector extends Span {
  type: 'selector';
  /** The metric; empty if the selector has only matchers. */
  name: string;
  matchers: readonly { label: string; op: '=' | '!=' | '=~' | '!~'; value: string }[];
  rangeMs?: number;
}

export interface Call extends Span {
  type: 'call';
  name: string;
  args: readonly Expr[];
}

export interface Aggregate extends Span {
  type: 'aggregate';
  op: string;
  /** The labels that the aggregation preserves (`by`) or removes (`without`). */
  grouping?: { without: boolean; labels: readonly string[] };
  expr: Expr;
}

export interface Binary extends Span {
  type: 'binary';
  op: string;
  /** Position of the operator. */
  opStart: number;
  bool: boolean;
  /** `on`, `ignoring`, `group_left` and `group_right`. */
  matching?: {
    on: boolean;
    labels: readonly string[];
    group?: 'left' | 'right';
    include: readonly string[];
  };
  left: Expr;
  right: Expr;
}

/** An expression without its parentheses; the span of an expression in parentheses includes the parentheses. */
export type Expr =
  | (Span & { type: 'number'; value: number })
  | (Span & { type: 'string'; value: string })
  | (Span & { type: 'subquery'; expr: Expr; rangeMs: number })
  | (Span & { type: 'negation'; expr: Expr })
  | Selector
  | Call
  | Aggregate
  | Binary;

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
  return createConverter(text)(whole);
}

function childrenOf(node: SyntaxNode | null): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node?.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

type Unplaced<T> = T extends unknown ? Omit<T, keyof Span> : never;
type Convert = (node: SyntaxNode, children: readonly SyntaxNode[]) => Unplaced<Expr>;

function createConverter(text: string): (node: SyntaxNode) => Expr {
  const source = ({ from, to }: SyntaxNode) => text.slice(from, to);
  const durationMs = (node: SyntaxNode) => parseDuration(source(node));
  const namesIn = (node: SyntaxNode | null | undefined) => node?.getChildren('LabelName').map(source) ?? [];
  const argumentsOf = (node: SyntaxNode) => childrenOf(node.getChild('FunctionCallBody')).map(convert);
  const matcher = (node: SyntaxNode): Selector['matchers'][number] => {
    const [label, op, value] = childrenOf(node).map(source);
    return { label: label!, op: op as '=', value: unquoted(value!) };
  };
  const aggregate = (node: SyntaxNode): Unplaced<Aggregate> => {
    const modifier = node.getChild('AggregateModifier');
    const without = modifier?.getChild('Without') !== null;
    const expr = argumentsOf(node).at(-1);
    if (!expr) throw new Error(`not PromQL: ${source(node)} aggregates nothing`);
    const grouping = modifier ? { without, labels: namesIn(modifier.getChild('GroupingLabels')) } : undefined;
    return { type: 'aggregate', op: source(node.firstChild!), grouping, expr };
  };
  const matchingIn = (clause: SyntaxNode): Binary['matching'] => {
    const [labels, include] = clause.getChildren('GroupingLabels');
    const group = clause.getChild('GroupLeft') ? 'left' : clause.getChild('GroupRight') ? 'right' : undefined;
    return { on: clause.getChild('On') !== null, labels: namesIn(labels), group, include: namesIn(include) };
  };
  const binary: Convert = (node, [left, op, ...rest]) => {
    const clause = node.getChild('MatchingModifierClause');
    return {
      type: 'binary',
      op: source(op!).toLowerCase(),
      opStart: op!.from,
      bool: node.getChild('BoolModifier') !== null,
      matching: clause ? matchingIn(clause) : undefined,
      left: convert(left!),
      right: convert(rest.at(-1)!),
    };
  };
  const inner: Convert = (_, [first]) => convert(first!);
  const byNode: Readonly<Record<string, Convert>> = {
    NumberDurationLiteral: (node) => ({ type: 'number', value: numberOf(source(node)) }),
    StringLiteral: (node) => ({ type: 'string', value: unquoted(source(node)) }),
    ...{ ParenExpr: inner, OffsetExpr: inner, StepInvariantExpr: inner },
    UnaryExpr(node, children) {
      const expr = convert(children.at(-1)!);
      return source(node).startsWith('-') ? { type: 'negation', expr } : expr;
    },
    VectorSelector: (node, [first]) => ({
      type: 'selector',
      name: first?.name === 'Identifier' ? source(first) : '',
      matchers: childrenOf(node.getChild('LabelMatchers')).map(matcher),
    }),
    MatrixSelector: (_, [of, range]) => ({ ...(convert(of!) as Selector), rangeMs: durationMs(range!) }),
    SubqueryExpr: (_, [of, range]) => ({ type: 'subquery', expr: convert(of!), rangeMs: durationMs(range!) }),
    FunctionCall: (node, [name]) => ({ type: 'call', name: source(name!), args: argumentsOf(node) }),
    ...{ AggregateExpr: aggregate, BinaryExpr: binary },
  };
  function convert(node: SyntaxNode): Expr {
    const found = byNode[node.name];
    if (!found) throw new Error(`PromQL that no check knows: ${node.name} in ${text}`);
    return { ...found(node, childrenOf(node)), start: node.from, end: node.to } as Expr;
  }
  return convert;
}

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

/**
 * Visits an expression and all its operands; `around` lists the expressions that enclose the visited expression, nearest last.
 */
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
 * The labels that a result can have. `scalar` has none and matches anything; `fixed` lists all possible labels; `open` stands for
 * any labels of the series, except `without`.
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

/** The labels that a result can have, according to the rules of PromQL alone. */
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
    // `absent` has the labels that its selector matches by equality.
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
