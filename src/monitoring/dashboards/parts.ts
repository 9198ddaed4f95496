import {
  type DashboardLink,
  DashboardLinkBuilder,
  MappingType,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dashboard as DashboardName } from '../rules/alert.ts';
import { allDashboards } from './all.ts';
import { aboveZero, alertOf, boundOf, type Limit, limitOf } from './limits.ts';
import { type Look, type Panel, type StateName, states } from './model.ts';

/** What every query, annotation and variable reads from. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
export const datasource = { type: 'prometheus', uid: '${datasource}' };

const severityColours = { critical: 'red', warning: 'orange', info: 'blue' } as const;

/** The alerts' limits as steps: green on the good side, the colour of the severity on the other. */
export function steps(limits: readonly Limit[]): Threshold[] {
  const bounds = [...limits].sort((a, b) => a.value - b.value);
  const colours = bounds.map(({ severity }) => severityColours[severity] as string);
  const isLow = limits.some(({ op }) => op.startsWith('<'));
  const inOrder = isLow ? [...colours, 'green'] : ['green', ...colours];
  return inOrder.map((color, index) => ({ value: index === 0 ? null : boundOf(bounds[index - 1]!), color }));
}

const anySteps = (color: string): Threshold[] => [
  { value: null, color: 'green' },
  { value: aboveZero, color },
];

export function thresholds({ limits = [], anyIs }: Partial<Look>): ThresholdsConfigBuilder {
  const drawn = anyIs ? anySteps(anyIs) : steps(limits.map((ref) => limitOf(ref)));
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(drawn);
}

export function mappings(state: StateName): ValueMapping[] {
  const entries = Object.entries<readonly [text: string, color: string]>(states[state]);
  const shown = entries.map(([value, [text, color]], index) => [value, { text, color, index }] as const);
  return [{ type: MappingType.ValueToText, options: Object.fromEntries(shown) }];
}

/** Alerts that a panel speaks of, each once. */
function alertsIn(panel: Panel): string[] {
  const looks: readonly Look[] = panel.type === 'table' ? [panel, ...panel.columns] : [panel];
  const drawn = looks.flatMap(({ limits = [] }) => limits.map(({ alert }) => alert));
  return [...new Set([...drawn, ...(panel.runbooks ?? [])])];
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of the time and of all choices
const chosenNow = '${__url_time_range}&${__all_variables}';

/** Where the runbooks are; `svc-agent dashboards --runbook-url` puts another place there. */
export const runbookFolder = 'runbooks';

/** To the runbooks of a panel's alerts, and to the dashboards that these alerts name. */
export function linksOf(panel: Panel, of: DashboardName): DashboardLinkBuilder[] {
  const alerts = alertsIn(panel);
  const others = new Set(alerts.map((alert) => alertOf({ alert }).dashboard).filter((name) => name !== of));
  return [
    ...alerts.map((alert) => link(`Runbook ${alert}`, `${runbookFolder}/${alert}.md`).targetBlank(true)),
    ...[...others].map((name) => link(`Dashboard ${titleOf(name)}`, `/d/svc-${name}?${chosenNow}`)),
  ];
}

const titleOf = (wanted: DashboardName): string => allDashboards.find(({ name }) => name === wanted)!.title;

export function link(title: string, url: string): DashboardLinkBuilder {
  const builder = new DashboardLinkBuilder(title).url(url);
  // The SDK's default would hide it in a menu.
  delete (builder.build() as Partial<DashboardLink>).placement;
  return builder;
}
