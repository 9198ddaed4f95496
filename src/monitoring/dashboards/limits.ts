import type { Expr } from '../promql/ast.ts';
import { comparisons } from '../promql/ast.ts';
import { parse } from '../promql/parse.ts';
import { partsOf } from '../promql/walk.ts';
import type { Alert, Severity } from '../rules/alert.ts';
import { alertsOf, pack } from '../rules/packs.ts';

/** An alert by its name; of several of that name, the one of this window. */
export interface AlertRef {
  alert: string;
  window?: string;
}

/** What a number is compared with: the alert fires while `value op limit`. */
export interface Limit {
  op: string;
  value: number;
  severity: Severity;
}

const isMeant = ({ window }: AlertRef, { labels }: Alert) =>
  window === undefined || labels?.window === window;

/** The alert that is meant. Throws if there is none. */
export function alertOf(ref: AlertRef): Alert {
  const found = [pack('recommended'), pack('slo')]
    .flatMap(alertsOf)
    .find((alert) => alert.name === ref.alert && isMeant(ref, alert));
  if (!found) throw new Error(`there is no alert ${ref.alert} ${ref.window ?? ''}`);
  return found;
}

/** The limit in an alert's own expression, with another threshold if one is given. */
export function limitOf(ref: AlertRef, threshold = alertOf(ref).threshold): Limit {
  const { expr, severity } = alertOf(ref);
  const found = comparisonIn(parse(expr.replaceAll('$threshold', String(threshold))));
  if (!found) throw new Error(`${ref.alert} compares with nothing constant`);
  return { ...found, severity };
}

/** What is above 0, since a step of Grafana's begins at its value, and an alert's condition beyond it. */
export const aboveZero = 1e-6;

/** Where Grafana begins to colour what an alert's condition holds for. */
export const boundOf = ({ op, value }: Pick<Limit, 'op' | 'value'>): number =>
  op === '>' && value === 0 ? aboveZero : value;

/** How an alert's bounds change with the thresholds of an operator: from what is shipped to what is asked for. */
export function stepChanges(
  name: string,
  thresholds: Readonly<Record<string, number>>,
): readonly (readonly [from: number, to: number])[] {
  const asked = thresholds[name];
  if (asked === undefined) return [];
  return [pack('recommended'), pack('slo')]
    .flatMap(alertsOf)
    .filter((alert) => alert.name === name)
    .map(({ labels }) => ({ alert: name, window: labels?.window }))
    .map((ref) => [boundOf(limitOf(ref)), boundOf(limitOf(ref, asked))] as const);
}

/** The first comparison with a constant, the outermost first. */
function comparisonIn(expr: Expr): { op: string; value: number } | undefined {
  if (expr.type === 'binary' && comparisons.has(expr.op)) {
    const value = constant(expr.right);
    if (value !== undefined) return { op: expr.op, value };
  }
  for (const part of partsOf(expr)) {
    const found = comparisonIn(part);
    if (found) return found;
  }
  return undefined;
}

const arithmetic: Readonly<Record<string, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};

function constant(expr: Expr): number | undefined {
  if (expr.type === 'number') return expr.value;
  if (expr.type !== 'binary') return undefined;
  const [left, right] = [constant(expr.left), constant(expr.right)];
  if (left === undefined || right === undefined) return undefined;
  const result = arithmetic[expr.op]?.(left, right);
  // 14.4 * (1 - 0.999) is to be 0.0144.
  return result === undefined ? undefined : Number(result.toPrecision(12));
}
