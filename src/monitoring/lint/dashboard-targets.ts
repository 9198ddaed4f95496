import type { TargetJson } from '../dashboards/json.ts';
import { isOpenTo } from '../dashboards/scope.ts';
import type { Selector } from '../promql/ast.ts';
import { canCarry, resultLabels } from '../promql/labels.ts';
import { selectorsOf } from '../promql/walk.ts';
import { type DashboardLint, type TargetSubject, unless } from './dashboard-rule.ts';
import { targetUnit } from './dashboard-units.ts';
import { seriesLints } from './series.ts';
import { shapeLints } from './shape.ts';

const isLoki = ({ datasource }: TargetJson): boolean => datasource?.type === 'loki';

/** As far as can be said without a parser: a selector with a matcher, quotes and brackets in pairs. */
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

/** Each selector whose series have the label is narrowed by the variable. */
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

/** What a rule is judged by, for a query: it has a name and an expression as a recorded series has. */
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
        .filter((label) => !canCarry(labels, label))
        .map((label) => `the legend names ${label}, which is gone`),
      ...lost.map((label) => `the legend does not tell series apart by ${label}`),
    ];
  },
};

/** Clusters are never added up; over a distribution they may be. */
const perCluster: DashboardLint = {
  name: 'target-per-cluster',
  target: ({ target, expr }) =>
    target.format === 'heatmap' ? [] : unless(canCarry(resultLabels(expr), 'cluster'), 'adds clusters up'),
};

/** A table's columns and a legend's words are the labels of the result. */
const openLabels: DashboardLint = {
  name: 'target-open-labels',
  target: ({ expr }) => unless(resultLabels(expr).type !== 'open', 'its labels are not named: aggregate'),
};

const unbounded = ['operation', 'domain', 'tasklist', 'workflow_type', 'activity_type', 'logger', 'family'];

/** As many lines as there are values of a label that nobody bounds, or other ones at each step. */
const bounded: DashboardLint = {
  name: 'target-bounded',
  target({ panel, target: { expr: text = '' }, expr }) {
    if (panel.type !== 'timeseries' || resultLabels(expr).type === 'open') return [];
    const label = unbounded.find((name) => canCarry(resultLabels(expr), name));
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
    regexp: 'target-regexp',
    'bucket-bound': 'target-bucket-bound',
    matching: 'target-matching',
  }),
  ...[legend, perCluster, openLabels, bounded, targetUnit],
];
