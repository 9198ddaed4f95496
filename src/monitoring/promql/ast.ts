/** Where a node stands in its text: first character, and one past the last. */
interface Placed {
  start: number;
  end: number;
}

export interface NumberLiteral extends Placed {
  type: 'number';
  value: number;
}

export interface StringLiteral extends Placed {
  type: 'string';
  value: string;
}

/** One matcher of a selector; `start` and `end` are those of the quoted value. */
export interface Matcher extends Placed {
  label: string;
  op: '=' | '!=' | '=~' | '!~';
  value: string;
}

/** Samples of series by name and labels: the last ones, or with `rangeMs` those of a span. */
export interface Selector extends Placed {
  type: 'selector';
  /** Empty where only matchers select. */
  name: string;
  matchers: readonly Matcher[];
  rangeMs?: number;
}

export interface Subquery extends Placed {
  type: 'subquery';
  expr: Expr;
  rangeMs: number;
  stepMs?: number;
}

export interface Call extends Placed {
  type: 'call';
  name: string;
  args: readonly Expr[];
}

/** Which labels an aggregation keeps (`by`) or takes away (`without`). */
export interface Grouping {
  without: boolean;
  labels: readonly string[];
}

export interface Aggregate extends Placed {
  type: 'aggregate';
  op: string;
  grouping?: Grouping;
  param?: Expr;
  expr: Expr;
}

/** `on`, `ignoring`, `group_left`, `group_right` of a binary operation. */
export interface Matching {
  on: boolean;
  labels: readonly string[];
  group?: 'left' | 'right';
  include: readonly string[];
}

export interface Binary extends Placed {
  type: 'binary';
  op: string;
  /** Where the operator itself stands. */
  opStart: number;
  bool: boolean;
  matching?: Matching;
  left: Expr;
  right: Expr;
}

export interface Negation extends Placed {
  type: 'negation';
  expr: Expr;
}

/** One expression of PromQL, parentheses dropped. */
export type Expr = NumberLiteral | StringLiteral | Selector | Subquery | Call | Aggregate | Binary | Negation;

export const setOperators: ReadonlySet<string> = new Set(['and', 'or', 'unless']);
export const comparisons: ReadonlySet<string> = new Set(['==', '!=', '>', '<', '>=', '<=']);
