import { parseDuration } from '../../core/text-formats.ts';
import {
  type Binary,
  comparisons,
  type Expr,
  type Grouping,
  type Matcher,
  type Matching,
  type Selector,
} from './ast.ts';
import { aggregators, functions } from './functions.ts';
import { notPromql, type Token, tokensOf } from './tokens.ts';

const precedence: Readonly<Record<string, number>> = {
  or: 1,
  and: 2,
  unless: 2,
  ...Object.fromEntries([...comparisons].map((op) => [op, 3])),
  '+': 4,
  '-': 4,
  '*': 5,
  '/': 5,
  '%': 5,
  atan2: 5,
  '^': 6,
};
const unaryPrecedence = 6;

/**
 * Parses one PromQL expression (Prometheus 2.42; of `@` only `start()` and `end()`, and no native histograms). Types are not checked:
 * `promtool check rules` does that. Throws with the place of the first fault.
 */
export function parse(text: string): Expr {
  const tokens = tokensOf(text);
  let index = 0;
  const peek = (): Token => tokens[index]!;
  const take = (): Token => tokens[index++]!;
  const fail = (what: string): never => {
    throw notPromql(text, peek().start, what);
  };
  const is = (word: string): boolean => peek().text === word && peek().type !== 'string';
  const skip = (word: string): boolean => is(word) && take() !== undefined;
  const expect = (word: string): Token => (is(word) ? take() : fail(`expected ${word}`));
  const lastEnd = (): number => tokens[index - 1]!.end;

  function expression(floor: number): Expr {
    let left = unary();
    for (;;) {
      const op = peek();
      const power = op.type === 'string' ? undefined : precedence[op.text];
      if (power === undefined || power < floor) return left;
      take();
      const bool = skip('bool');
      const matching = vectorMatching();
      const right = expression(op.text === '^' ? power : power + 1);
      const place = { start: left.start, end: right.end, opStart: op.start };
      left = { type: 'binary', op: op.text, bool, matching, left, right, ...place } satisfies Binary;
    }
  }

  function vectorMatching(): Matching | undefined {
    if (!is('on') && !is('ignoring')) return undefined;
    const on = take().text === 'on';
    const labels = names();
    if (!is('group_left') && !is('group_right')) return { on, labels, include: [] };
    const group = take().text === 'group_left' ? 'left' : 'right';
    return { on, labels, group, include: is('(') ? names() : [] };
  }

  function unary(): Expr {
    const { start } = peek();
    if (skip('+')) return unary();
    if (!skip('-')) return postfix(primary());
    const expr = expression(unaryPrecedence);
    return { type: 'negation', expr, start, end: expr.end };
  }

  /** Range, subquery, offset and `@` behind an expression. */
  function postfix(expr: Expr): Expr {
    let result = expr;
    for (;;) {
      if (skip('[')) result = ranged(result);
      else if (skip('offset')) {
        skip('-');
        durationMs();
        result = { ...result, end: lastEnd() };
      } else if (skip('@')) {
        if (!skip('start') && !skip('end')) fail('expected start or end');
        expect('(');
        result = { ...result, end: expect(')').end };
      } else return result;
    }
  }

  function ranged(expr: Expr): Expr {
    const rangeMs = durationMs();
    if (!skip(':')) {
      expect(']');
      if (expr.type !== 'selector' || text[expr.start] === '(') fail('a range needs a selector');
      return { ...(expr as Selector), rangeMs, end: lastEnd() };
    }
    const stepMs = is(']') ? undefined : durationMs();
    expect(']');
    return { type: 'subquery', expr, rangeMs, stepMs, start: expr.start, end: lastEnd() };
  }

  function durationMs(): number {
    return peek().type === 'duration' ? parseDuration(take().text) : fail('expected a duration');
  }

  function primary(): Expr {
    const token = peek();
    if (skip('(')) {
      const inner = expression(0);
      expect(')');
      return { ...inner, start: token.start, end: lastEnd() };
    }
    if (is('{')) return selector(token.start, '');
    take();
    const place = { start: token.start, end: token.end };
    if (token.type === 'number') return { type: 'number', value: Number(token.text), ...place };
    if (token.type === 'string') return { type: 'string', value: unquoted(token.text), ...place };
    if (token.type === 'name') return named(token);
    index--;
    return fail('expected an expression');
  }

  function named(token: Token): Expr {
    const word = token.text;
    if (/^(?:inf|nan)$/i.test(word)) {
      const value = /^inf$/i.test(word) ? Number.POSITIVE_INFINITY : Number.NaN;
      return { type: 'number', value, start: token.start, end: token.end };
    }
    if (aggregators.has(word) && (is('(') || is('by') || is('without'))) return aggregate(token);
    if (!is('(')) return selector(token.start, word);
    if (!functions.has(word)) fail(`unknown function ${word}`);
    return { type: 'call', name: word, args: args(), start: token.start, end: lastEnd() };
  }

  function aggregate({ text: op, start }: Token): Expr {
    const before = grouping();
    const given = args();
    const after = before ?? grouping();
    const expr = given.at(-1) ?? fail(`${op} needs an expression`);
    const param = given.length > 1 ? given[0] : undefined;
    return { type: 'aggregate', op, grouping: after, param, expr, start, end: lastEnd() };
  }

  function grouping(): Grouping | undefined {
    if (!is('by') && !is('without')) return undefined;
    return { without: take().text === 'without', labels: names() };
  }

  function args(): Expr[] {
    return list('(', ')', () => expression(0));
  }

  function names(): string[] {
    return list('(', ')', () => (peek().type === 'name' ? take().text : fail('expected a label')));
  }

  function list<T>(open: string, close: string, item: () => T): T[] {
    expect(open);
    const items: T[] = [];
    while (!is(close)) {
      items.push(item());
      if (!skip(',')) break;
    }
    expect(close);
    return items;
  }

  function selector(start: number, name: string): Selector {
    const matchers = is('{') ? list('{', '}', matcher) : [];
    return { type: 'selector', name, matchers, start, end: lastEnd() };
  }

  function matcher(): Matcher {
    const label = peek().type === 'name' ? take().text : fail('expected a label');
    if (!['=', '!=', '=~', '!~'].includes(peek().text)) fail('expected a matcher');
    const op = take().text as Matcher['op'];
    const value = peek().type === 'string' ? take() : fail('expected a quoted value');
    return { label, op, value: unquoted(value.text), start: value.start, end: value.end };
  }

  const whole = expression(0);
  if (peek().type !== 'end') fail('expected the end');
  return whole;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

function unquoted(text: string): string {
  const inner = text.slice(1, -1);
  return text.startsWith('`')
    ? inner
    : inner.replace(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter);
}
