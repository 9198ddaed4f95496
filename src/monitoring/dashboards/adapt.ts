import { parse } from '../promql/parse.ts';
import { selectorsOf } from '../promql/walk.ts';
import type { RuleOptions } from '../rules/options.ts';
import { rewrite } from '../rules/rewrite.ts';
import { parseable, withSpans } from './fill.ts';
import type { DashboardJson, FieldJson, LinkJson, OverrideJson, PanelJson, StepJson } from './json.ts';
import { stepChanges } from './limits.ts';

/** What an operator may have otherwise than the shipped dashboards. */
export interface DashboardOptions extends Pick<RuleOptions, 'prefix' | 'jobs' | 'thresholds' | 'runbookUrl'> {
  /** Labels and their values: no other scraped series are shown. Alerts and recorded series have none of them. */
  matchers: Readonly<Record<string, string>>;
}

const shippedRunbooks = /^runbooks\//;

/** A shipped dashboard in the names, limits and addresses of the options. */
export function adapted(shipped: DashboardJson, options: DashboardOptions): DashboardJson {
  const query = (text: string) => adaptedQuery(text, options);
  const { templating, annotations, panels = [] } = shipped;
  return {
    ...shipped,
    templating: {
      ...templating,
      list: (templating?.list ?? []).map((variable) =>
        variable.type === 'query' && variable.query
          ? { ...variable, query: query(variable.query), definition: query(variable.query) }
          : variable,
      ),
    },
    annotations: {
      ...annotations,
      list: (annotations?.list ?? []).map((of) => (of.expr ? { ...of, expr: query(of.expr) } : of)),
    },
    panels: panels.map((panel) => adaptedPanel(panel, options)),
  };
}

function adaptedPanel(panel: PanelJson, options: DashboardOptions): PanelJson {
  if (!panel.targets) return panel;
  const changes = new Map(runbooksOf(panel).flatMap((alert) => stepChanges(alert, options.thresholds)));
  const links = (of: readonly LinkJson[] = []) => of.map((link) => relinked(link, options));
  return {
    ...panel,
    links: links(panel.links),
    targets: panel.targets.map((target) => ({ ...target, expr: adaptedQuery(target.expr!, options) })),
    fieldConfig: {
      defaults: withSteps(panel.fieldConfig!.defaults, changes),
      overrides: panel.fieldConfig!.overrides.map((override) => adaptedOverride(override, changes, links)),
    },
  };
}

function adaptedOverride(
  override: OverrideJson,
  changes: ReadonlyMap<number, number>,
  links: (of: readonly LinkJson[]) => readonly LinkJson[],
): OverrideJson {
  const properties = override.properties.map(({ id, value }) => {
    if (id === 'links') return { id, value: links(value as readonly LinkJson[]) };
    if (id !== 'thresholds') return { id, value };
    return { id, value: withSteps({ thresholds: value as FieldJson['thresholds'] }, changes).thresholds };
  });
  return { ...override, properties };
}

function withSteps(field: FieldJson, changes: ReadonlyMap<number, number>): FieldJson {
  if (!field.thresholds) return field;
  const step = ({ value, color }: StepJson) => ({
    value: value === null ? null : (changes.get(value) ?? value),
    color,
  });
  return { ...field, thresholds: { ...field.thresholds, steps: field.thresholds.steps.map(step) } };
}

const runbooksOf = ({ links = [] }: PanelJson): readonly string[] =>
  links.flatMap(({ url = '' }) => /^runbooks\/(\w+)\.md$/.exec(url)?.[1] ?? []);

const relinked = (link: LinkJson, { runbookUrl }: DashboardOptions): LinkJson =>
  link.url ? { ...link, url: link.url.replace(shippedRunbooks, () => `${runbookUrl}/`) } : link;

/** A query, or a variable's `label_values(selector, label)`. */
function adaptedQuery(text: string, options: DashboardOptions): string {
  const [, selector, label] = /^label_values\((.+), (\w+)\)$/.exec(text) ?? [];
  if (selector) return `label_values(${adaptedQuery(selector, options)}, ${label})`;
  const named = rewrite(parseable(text), options);
  return withSpans(matched(named, options.matchers));
}

function matched(text: string, matchers: DashboardOptions['matchers']): string {
  const added = Object.entries(matchers)
    .map(([label, value]) => `${label}=${JSON.stringify(value)}`)
    .join(', ');
  if (!added) return text;
  return [...selectorsOf(parse(text))]
    .filter(({ name }) => !name.startsWith('ALERTS') && !name.includes(':'))
    .sort((a, b) => b.start - a.start)
    .reduce((result, { name, start, matchers: own }) => {
      const at = start + name.length;
      if (own.length === 0) return `${result.slice(0, at)}{${added}}${result.slice(at)}`;
      return `${result.slice(0, at + 1)}${added}, ${result.slice(at + 1)}`;
    }, text);
}
