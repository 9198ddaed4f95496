import { agentMetrics } from '../../core/agent-metrics.ts';
import type { Unit } from '../../core/catalog.ts';
import { catalog } from '../../core/catalog.ts';
import { fieldProperty } from '../dashboards/json.ts';
import type { Binary, Call, Expr } from '../promql/ast.ts';
import { comparisons, setOperators } from '../promql/ast.ts';
import { selectorsOf } from '../promql/walk.ts';
import type { DashboardLint } from './dashboard-rule.ts';

/** What a result is measured in; `moment` is milliseconds since the epoch, `number` a constant. */
type Measure = Unit | `${Unit}/s` | 'share' | 'moment' | 'number';

/** Grafana's units by what they can show. */
const shown: Readonly<Partial<Record<Measure, readonly string[]>>> = {
  none: ['short', 'none'],
  seconds: ['s', 'dtdurations'],
  milliseconds: ['ms', 'dtdurationms'],
  bytes: ['bytes', 'decbytes'],
  share: ['percentunit'],
  moment: ['dateTimeFromNow', 'dateTimeAsIso'],
  'none/s': ['cps', 'reqps', 'ops'],
  'bytes/s': ['Bps', 'binBps'],
  'milliseconds/s': ['suffix: ms/s'],
};

const metricUnits = new Map([...catalog, ...agentMetrics].map(({ name, unit }) => [name, unit as Unit]));

/** The unit that belongs to an expression, or undefined where that cannot be said. */
export function measureOf(expr: Expr): Measure | undefined {
  switch (expr.type) {
    case 'number':
      return 'number';
    case 'string':
      return undefined;
    case 'selector':
      return seriesUnit(expr.name);
    case 'subquery':
    case 'negation':
      return measureOf(expr.expr);
    case 'aggregate':
      return ['count', 'group', 'count_values'].includes(expr.op) ? 'none' : measureOf(expr.expr);
    case 'call':
      return ofCall(expr);
    case 'binary':
      return ofBinary(expr);
  }
}

function seriesUnit(name: string): Measure | undefined {
  const whole = metricUnits.get(name);
  if (whole) return whole;
  if (/:ratio_rate/.test(name)) return 'share';
  if (/_(?:bucket|count)$/.test(name) && metricUnits.has(name.replace(/_\w+?$/, ''))) return 'none';
  const family = metricUnits.get(name.replace(/_(?:bucket|sum|count)$/, ''));
  // A timer is in seconds, whatever its name says (CONTRACT, Kinds in the catalog).
  if (family) return name.endsWith('_sum') ? 'seconds' : 'none';
  if (name === 'ALERTS_FOR_STATE') return 'timestamp';
  const [, base] = /_(seconds|bytes)(?:_total)?$/.exec(name) ?? [];
  return (base as Unit | undefined) ?? (/^(?:up|ALERTS)$/.test(name) ? 'none' : undefined);
}

function ofCall({ name, args }: Call): Measure | undefined {
  if (name === 'time' || name === 'timestamp') return 'timestamp';
  if (name === 'resets' || name === 'changes' || name.startsWith('count_over')) return 'none';
  if (name === 'histogram_quantile') {
    const [bucket] = selectorsOf(args[1]!);
    return metricUnits.get(bucket?.name.replace(/_bucket$/, '') ?? '');
  }
  const inner = args[0] && measureOf(args[0]);
  if (!['rate', 'irate', 'deriv'].includes(name)) return inner;
  return inner === 'seconds' ? 'share' : inner && (`${inner}/s` as Measure);
}

function ofBinary({ op, left, right }: Binary): Measure | undefined {
  const [a, b] = [measureOf(left), measureOf(right)];
  if (comparisons.has(op) || setOperators.has(op)) return a ?? b;
  if (op === '-' && a === 'timestamp' && b === 'timestamp') return 'seconds';
  if (op === '*' && (a === 'number' || b === 'number')) return scaled(left, right, a === 'number' ? b : a);
  if (op === '/') return quotient(a, b);
  return a === 'number' ? b : a;
}

function scaled(left: Expr, right: Expr, measure: Measure | undefined): Measure | undefined {
  const factor = left.type === 'number' ? left.value : right.type === 'number' ? right.value : 1;
  if (factor !== 1000) return measure;
  if (measure === 'timestamp') return 'moment';
  // Seconds in each second, counted in milliseconds.
  return measure === 'share' ? 'milliseconds/s' : measure === 'seconds' ? 'milliseconds' : measure;
}

function quotient(a: Measure | undefined, b: Measure | undefined): Measure | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (a === b) return 'share';
  if (b === 'number') return a;
  return `${a}/s` === b ? 'seconds' : undefined;
}

/** The unit that is shown against the unit that the metrics have. */
export const targetUnit: DashboardLint = {
  name: 'target-unit',
  target({ panel, target, expr }) {
    const measure = measureOf(expr);
    // The values of a heatmap are counts; its unit is that of the axis.
    if (measure === undefined || target.format === 'heatmap') return [];
    const unit = fieldProperty(panel, target, 'unit');
    const allowed = shown[measure] ?? [];
    return allowed.includes(String(unit)) ? [] : [`shows ${measure} as ${unit}`];
  },
};
