import { describe, expect, test } from 'vitest';
import { canHave, type Expr, parse, resultLabels } from '../../../tools/promql.ts';

/** The tree in fully bracketed form. */
function bracketed(expr: Expr): string {
  switch (expr.type) {
    case 'number':
      return String(expr.value);
    case 'string':
      return JSON.stringify(expr.value);
    case 'selector':
      return `${expr.name}{${expr.matchers.map(({ label, op, value }) => label + op + value).join()}}${expr.rangeMs ?? ''}`;
    case 'subquery':
      return `${bracketed(expr.expr)}[${expr.rangeMs}]`;
    case 'call':
      return `${expr.name}(${expr.args.map(bracketed).join()})`;
    case 'aggregate': {
      const { grouping } = expr;
      const by = grouping ? `${grouping.without ? 'without' : 'by'}<${grouping.labels.join()}>` : '';
      return `${expr.op} ${by}(${bracketed(expr.expr)})`;
    }
    case 'negation':
      return `(-${bracketed(expr.expr)})`;
    case 'binary': {
      const { matching } = expr;
      const on = matching
        ? `${matching.on ? 'on' : 'ignoring'}<${matching.labels.join()}>${matching.group ?? ''}`
        : '';
      return `(${bracketed(expr.left)} ${expr.op}${expr.bool ? ' bool' : ''}${on} ${bracketed(expr.right)})`;
    }
  }
}

describe('parse', () => {
  test.each([
    ['1 + 2 * 3', '(1 + (2 * 3))'],
    ['2 ^ 3 ^ 2', '(2 ^ (3 ^ 2))'],
    ['-a ^ 2', '(-(a{} ^ 2))'],
    ['1 - 2 - 3', '((1 - 2) - 3)'],
    ['a > 1 and b or c unless d', '(((a{} > 1) and b{}) or (c{} unless d{}))'],
    ['a == bool 1e3', '(a{} == bool 1000)'],
    ['a{x="1", y!~\'b|c\',}[5m] offset -1h', 'a{x=1,y!~b|c}300000'],
    ['sum by (x, y) (rate(a[1m30s]))', 'sum by<x,y>(rate(a{}90000))'],
    ['sum(a) without (x)', 'sum without<x>(a{})'],
    ['quantile(0.9, a)', 'quantile (a{})'],
    ['deriv(sum by (x) (a)[10m:1m])', 'deriv(sum by<x>(a{})[600000])'],
    ['max_over_time(a[1h:])', 'max_over_time(a{}[3600000])'],
    ['a * on (x) group_left () b', '(a{} *on<x>left b{})'],
    ['a / ignoring (x) group_right (y) b', '(a{} /ignoring<x>right b{})'],
    ['{__name__="a"} # comment', '{__name__=a}'],
    ['sum + by', '(sum{} + by{})'],
    ['cluster:a:rate5m > +Inf', '(cluster:a:rate5m{} > Infinity)'],
    ['label_replace(a, "x", "$1", "y", "(.*)\\\\d")', 'label_replace(a{},"x","$1","y","(.*)\\\\d")'],
  ])('%s', (text, tree) => {
    expect(bracketed(parse(text))).toBe(tree);
  });

  test.each(['', 'a b', 'sum by (x', 'a{x=1}', 'rate(a[5x])', 'nosuch(a)', 'a ? b', '1 +', 'sum()'])(
    'refuses %j',
    (text) => expect(() => parse(text)).toThrow(/not PromQL/),
  );

  test('knows where everything stands', () => {
    const text = 'sum by (x) (a{y="1"}[5m]) > (2)';
    const tree = parse(text);
    if (tree.type !== 'binary') throw new Error('a comparison');
    const cut = ({ start, end }: { start: number; end: number }) => text.slice(start, end);
    expect([cut(tree.left), cut(tree.right), text[tree.opStart]]).toEqual([
      'sum by (x) (a{y="1"}[5m])',
      '(2)',
      '>',
    ]);
  });
});

describe('the labels of a result', () => {
  test.each([
    ['a', 'x', true],
    ['1', 'x', false],
    ['sum(a)', 'x', false],
    ['sum by (x) (a)', 'x', true],
    ['sum by (x) (sum by (y) (a))', 'x', false],
    ['max without (x) (a)', 'x', false],
    ['max without (x) (a)', 'y', true],
    ['time() - max by (x) (a)', 'x', true],
    ['histogram_quantile(0.9, sum by (x, le) (a))', 'le', false],
    ['a * on (x) b', 'y', false],
    ['a * on (x) group_left (z) sum by (x, z) (b)', 'z', true],
    ['sum by (x) (a) * on (x) group_left () b', 'y', false],
    ['sum by (x) (a) or sum by (y) (b)', 'y', true],
    ['a unless on (x) b', 'y', true],
    ['absent(a{x="1", y=~"b.*"})', 'x', true],
    ['absent(a{x="1", y=~"b.*"})', 'y', false],
    ['label_replace(sum by (x) (a), "z", "1", "", "")', 'z', true],
  ])('%s: %s %s', (text, label, carried) => expect(canHave(resultLabels(parse(text)), label)).toBe(carried));
});
