import { agentMetrics } from '../../src/core/agent-metrics.ts';
import { catalog, type Unit } from '../../src/core/catalog.ts';
import { isNarrowedBy } from '../../src/monitoring/dashboards/queries.ts';
import { type DashboardJson, fieldProperty, type PanelJson, type TargetJson } from '../grafana.ts';
import {
  type Binary,
  type Call,
  canHave,
  comparisons,
  type Expr,
  resultLabels,
  type Selector,
  selectorsOf,
  setOperators,
} from '../promql.ts';
import { seriesLints, shapeLints } from './expressions.ts';

export interface DashboardFinding {
  lint: string;
  /** The title of the panel or the name of the variable; empty for the dashboard itself. */
  place: string;
  fault: string;
}

/** One query of a panel, with the context that a lint may need. */
interface TargetSubject {
  dashboard: DashboardJson;
  panel: PanelJson;
  target: TargetJson;
  /** The expression, in which Grafana's spans are replaced by PromQL durations. */
  expr: Expr;
  /** Names of series that are not in the catalogs. */
  recorded: ReadonlySet<string>;
}

type Faults = readonly string[];

/**
 * A lint, with a function for each thing that it checks. Each function returns the faults; an empty list if there is no fault.
 */
export interface DashboardLint {
  name: string;
  dashboard?(of: DashboardJson): Faults;
  target?(subject: TargetSubject): Faults;
  /** Checks a query in any language, before it is parsed. */
  text?(target: TargetJson): Faults;
}

/** Whether a variable of the label must narrow a selector. */
export const isOpenTo = ({ name, matchers }: Selector, label: string): boolean =>
  name !== '' && isNarrowedBy(`${name}{${matchers.map((of) => `${of.label}${of.op}""`).join(',')}}`, label);

/** A list with the fault if `isWell` is false, else an empty list. */
export const unless = (isWell: boolean, fault: string): Faults => (isWell ? [] : [fault]);

/** The unit of a result; `moment` is milliseconds since the epoch, `number` a constant. */
type Measure = Unit | `${Unit}/s` | 'share' | 'moment' | 'number';

/** The units of Grafana that can show each measure. */
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

/** The unit of an expression; undefined if it cannot be determined. */
function measureOf(expr: Expr): Measure | undefined {
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
  // A timer is in seconds, whatever its name says (docs/reference/metrics.md, The catalog).
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
  // The result is seconds in each second, counted in milliseconds.
  return measure === 'share' ? 'milliseconds/s' : measure === 'seconds' ? 'milliseconds' : measure;
}

function quotient(a: Measure | undefined, b: Measure | undefined): Measure | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (a === b) return 'share';
  if (b === 'number') return a;
  return `${a}/s` === b ? 'seconds' : undefined;
}

/** A panel has the unit of its metrics. */
const targetUnit: DashboardLint = {
  name: 'target-unit',
  target({ panel, target, expr }) {
    const measure = measureOf(expr);
    // The values of a heatmap are counts; its unit is the unit of the axis.
    if (measure === undefined || target.format === 'heatmap') return [];
    const unit = fieldProperty(panel, target, 'unit');
    const allowed = shown[measure] ?? [];
    return allowed.includes(String(unit)) ? [] : [`shows ${measure} as ${unit}`];
  },
};

export const isLoki = ({ datasource }: TargetJson): boolean => datasource?.type === 'loki';

/** A query of logs has a selector with a matcher, and quotes and brackets in pairs; more cannot be checked without a parser. */
const logql: DashboardLint = {
  name: 'target-logql',
  text(target) {
    if (!isLoki(target)) return [];
    const bare = (target.expr ?? '').replace(/"(?:[^"\\]|\\.)*"|`[^`]*`/g, '""');
    const open: string[] = [];
    for (const sign of bare.replace(/[^(){}[\]"`]/g, '').replace(/""/g, ''))
      if ('({['.includes(sign)) open.push(sign);
      else if (open.pop() !== { ')': '(', '}': '{', ']': '[' }[sign]) return [`${sign} closes nothing`];
    return [
      ...unless(open.length === 0, `${open.at(-1)} is not closed`),
      ...unless(/\{\s*\w+\s*(?:=|!=|=~|!~)\s*""/.test(bare), 'selects no stream by a label'),
    ];
  },
};

const logqlAuto: DashboardLint = {
  name: 'target-logql-auto',
  text: (target) =>
    isLoki(target)
      ? [...(target.expr ?? '').matchAll(/\[([^\]]+)\]/g)]
          .filter(([, span]) => span !== '$__auto')
          .map(([span]) => `${span} instead of [$__auto]`)
      : [],
};

const spans: DashboardLint = {
  name: 'target-rate-interval',
  text: (target) => {
    if (isLoki(target)) return [];
    const expr = target.expr ?? '';
    const fixed = [...expr.matchAll(/\[(?!\$__(?:rate_interval|range)(?:\]|:\]))[^\]]*\]/g)].map(
      ([span]) => span,
    );
    const wide = /\b(?:i?rate|deriv)\([^()[\]]*\[(?!\$__rate_interval\]|\$__range\] @ end\(\))/.test(expr);
    return [
      ...fixed.map((span) => `${span} instead of [$__rate_interval]`),
      ...unless(!wide || fixed.length > 0, 'a rate over another span than $__rate_interval'),
    ];
  },
};

/** The variable narrows each selector whose series have the label. */
const narrowed = (lint: string, label: string, variable: string): DashboardLint => ({
  name: lint,
  target: ({ expr }) =>
    selectorsOf(expr)
      .filter((selector) => isOpenTo(selector, label) && !isChosen(selector, label, variable))
      .map(({ name }) => `${name} without ${label}=~"$${variable}"`),
});

const isChosen = ({ matchers }: Selector, label: string, variable: string): boolean =>
  matchers.some(
    (matcher) => matcher.label === label && matcher.op === '=~' && matcher.value === `$${variable}`,
  );

/** Applies lints of rules to a query, which has a name and an expression, like a recorded series. */
const ofRules = (names: Readonly<Record<string, string>>): readonly DashboardLint[] =>
  [...seriesLints, ...shapeLints].flatMap(({ name, faults }) => {
    const lint = names[name];
    if (!lint) return [];
    const target = ({ panel, target: { expr: text = '' }, expr, recorded }: TargetSubject) =>
      faults({ rule: { record: panel.title ?? '', expr: text }, expr, pack: 'recording', recorded });
    return [{ name: lint, target }];
  });

const legend: DashboardLint = {
  name: 'target-legend',
  target({ target, expr }) {
    if (target.format === 'heatmap' || target.format === 'table') return [];
    const labels = resultLabels(expr);
    const used = [...(target.legendFormat ?? '').matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
    const lost = labels.type === 'fixed' ? [...labels.labels].filter((label) => !used.includes(label)) : [];
    return [
      ...used
        .filter((label) => !canHave(labels, label))
        .map((label) => `the legend names ${label}, which is gone`),
      ...lost.map((label) => `the legend does not tell series apart by ${label}`),
    ];
  },
};

/** Clusters are never added up, except over a distribution. */
const perCluster: DashboardLint = {
  name: 'target-per-cluster',
  target: ({ target, expr }) =>
    target.format === 'heatmap' ? [] : unless(canHave(resultLabels(expr), 'cluster'), 'adds clusters up'),
};

/** Columns of a table and the legend use only labels that the result has. */
const openLabels: DashboardLint = {
  name: 'target-open-labels',
  target: ({ expr }) => unless(resultLabels(expr).type !== 'open', 'its labels are not named: aggregate'),
};

const unbounded = ['operation', 'domain', 'tasklist', 'workflow_type', 'activity_type', 'logger', 'family'];

/** A panel does not show a line for each value of an unbounded label, or another selection of lines at each step. */
const bounded: DashboardLint = {
  name: 'target-bounded',
  target({ panel, target: { expr: text = '' }, expr }) {
    if (panel.type !== 'timeseries' || resultLabels(expr).type === 'open') return [];
    const label = unbounded.find((name) => canHave(resultLabels(expr), name));
    const isChosen = /\band topk\(\d+, .*@ end\(\)/.test(text);
    const isFlickering = /\b(?:topk|bottomk)\(/.test(text) && !isChosen;
    return [
      ...unless(
        label === undefined || isChosen,
        `a line for each ${label}: take the greatest of the whole range`,
      ),
      ...unless(!isFlickering, 'other series at each step: choose them by the whole range, @ end()'),
    ];
  },
};

export const targetLints: readonly DashboardLint[] = [
  ...[logql, logqlAuto, spans],
  narrowed('target-environment', 'environment', 'environment'),
  narrowed('target-cluster', 'cluster', 'cluster'),
  narrowed('target-job', 'svc_service', 'role'),
  narrowed('target-instance', 'instance', 'instance'),
  ...ofRules({
    counter: 'target-counter-agg',
    gauge: 'target-gauge',
    'known-metric': 'target-known-metric',
    'known-label': 'target-known-label',
    grouping: 'target-grouping',
    quantile: 'target-quantile',
    replicated: 'target-replicated',
    'bucket-bound': 'target-bucket-bound',
    matching: 'target-matching',
  }),
  ...[legend, perCluster, openLabels, bounded, targetUnit],
];
