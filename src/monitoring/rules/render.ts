import { type Expr, setOperators } from '../promql/ast.ts';
import { canCarry, resultLabels } from '../promql/labels.ts';
import { parse } from '../promql/parse.ts';
import type { Alert, Pack, Recording } from './alert.ts';
import type { RuleOptions } from './options.ts';
import { rewrite } from './rewrite.ts';

/** One rule as Prometheus reads it. */
export interface RenderedAlert {
  alert: string;
  expr: string;
  for?: string;
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<'summary' | 'description' | 'runbook_url' | 'dashboard_url', string>>;
}
export type RenderedRule = RenderedAlert | Recording;

/** A rule file as Prometheus reads it; also the `spec` of a PrometheusRule. */
export interface RuleFile {
  groups: readonly { name: string; rules: readonly RenderedRule[] }[];
}

/** A pack in the names, thresholds and times of the options. */
export function renderPack(pack: Pack, options: RuleOptions): RuleFile {
  return {
    groups: pack.groups.map(({ name, records = [], alerts = [] }) => ({
      name,
      rules: [
        ...records.map(({ record, expr }) => ({ record, expr: inLines(rewrite(expr, options)) })),
        ...alerts.map((alert) => renderAlert(alert, pack, options)),
      ],
    })),
  };
}

function renderAlert(alert: Alert, pack: Pack, options: RuleOptions): RenderedAlert {
  const threshold = options.thresholds[alert.name] ?? alert.threshold;
  const filled = (text: string) => text.replaceAll('$threshold', String(threshold));
  const expr = rewrite(filled(alert.expr), options);
  const holdFor = options.fors[alert.name] ?? alert.for;
  return {
    alert: alert.name,
    expr: inLines(expr),
    ...(holdFor ? { for: holdFor } : {}),
    labels: { severity: alert.severity, pack: pack.name, ...alert.labels, ...options.labels },
    annotations: {
      summary: alert.summary,
      description: filled(alert.description),
      runbook_url: `${options.runbookUrl}/${alert.name}.md`,
      dashboard_url: dashboardUrl(alert, parse(expr), options),
    },
  };
}

function dashboardUrl({ dashboard }: Alert, expr: Expr, { dashboardUrl: base }: RuleOptions): string {
  const cluster = canCarry(resultLabels(expr), 'cluster') ? '?var-cluster={{ $labels.cluster }}' : '';
  return `${base}/d/svc-${dashboard}${cluster}`;
}

/** The expression with a line for each operand of its outermost `and`, `or`, `unless`. */
function inLines(text: string): string {
  const breaks: number[] = [];
  const visit = (expr: Expr): void => {
    if (expr.type !== 'binary' || !setOperators.has(expr.op)) return;
    breaks.push(expr.opStart);
    if (text[expr.left.start] !== '(') visit(expr.left);
    if (text[expr.right.start] !== '(') visit(expr.right);
  };
  visit(parse(text));
  return breaks
    .sort((a, b) => b - a)
    .reduce((lines, at) => `${lines.slice(0, at).trimEnd()}\n${lines.slice(at)}`, text);
}
