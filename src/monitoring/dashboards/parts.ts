import {
  type DashboardLink,
  DashboardLinkBuilder,
  MappingType,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Alert, DashboardName } from '../alert.ts';
import { alertsOf, pack } from '../packs.ts';
import { type AlertRef, type Look, type Panel, type StateName, states } from './model.ts';

/** The source of every query, annotation and variable. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
export const datasource = { type: 'prometheus', uid: '${datasource}' };

/** What panels depend on besides their queries. */
export interface PanelContext {
  /** The dashboard that they are on. */
  on: DashboardName;
  /** Titles of all dashboards. */
  titles: ReadonlyMap<DashboardName, string>;
  /** Thresholds by alert, where they differ from the shipped ones. */
  thresholds: Readonly<Record<string, number>>;
  /** Address of the folder `runbooks`; empty: no links to runbooks. */
  runbookUrl: string;
}

const shown = [pack('recommended'), pack('slo')].flatMap(alertsOf);

/** The alert that is meant. Throws if there is none. */
export function alertOf({ alert: name, window }: AlertRef): Alert {
  const found = shown.find(
    (alert) => alert.name === name && (window === undefined || alert.labels?.window === window),
  );
  if (!found) throw new Error(`there is no alert ${name} ${window ?? ''}`);
  return found;
}

/** The value that an alert compares with. Throws if it compares with none. */
export function limitOf(ref: AlertRef, thresholds: PanelContext['thresholds'] = {}): number {
  const { threshold: shipped, drawn } = alertOf(ref);
  const threshold = thresholds[ref.alert] ?? shipped;
  if (threshold === undefined) throw new Error(`${ref.alert} has no threshold`);
  return drawn ? drawn(threshold) : threshold;
}

const severityColours = { critical: 'red', warning: 'orange', info: 'blue' } as const;

/** A step of Grafana begins at its value, and an alert's condition beyond it. */
const aboveZero = 1e-6;

/** The alerts' thresholds as steps: green on the good side, the colour of the severity on the other. */
function steps(limits: readonly AlertRef[], context: PanelContext): Threshold[] {
  const bounds = limits
    .map((ref) => ({ ...alertOf(ref), value: limitOf(ref, context.thresholds) }))
    .sort((a, b) => a.value - b.value);
  const colours = bounds.map(({ severity }) => severityColours[severity] as string);
  const inOrder = bounds.some(({ isLow }) => isLow) ? [...colours, 'green'] : ['green', ...colours];
  return inOrder.map((color, index) => ({
    value: index === 0 ? null : bounds[index - 1]!.value || aboveZero,
    color,
  }));
}

export function thresholds({ limits = [], anyIs }: Partial<Look>, context: PanelContext) {
  const drawn: Threshold[] = anyIs
    ? [
        { value: null, color: 'green' },
        { value: aboveZero, color: anyIs },
      ]
    : steps(limits, context);
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(drawn);
}

export function mappings(state: StateName): ValueMapping[] {
  const entries = Object.entries<readonly [text: string, color: string]>(states[state]);
  const texts = entries.map(([value, [text, color]], index) => [value, { text, color, index }] as const);
  return [{ type: MappingType.ValueToText, options: Object.fromEntries(texts) }];
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of the time and of all variables
const sameView = '${__url_time_range}&${__all_variables}';

/** Links to the runbooks of a panel's alerts, and to the dashboards that these alerts name. */
export function linksOf(panel: Panel, { on, titles, runbookUrl }: PanelContext): DashboardLinkBuilder[] {
  const looks: readonly Look[] = panel.type === 'table' ? [panel, ...panel.columns] : [panel];
  const drawn = looks.flatMap(({ limits = [] }) => limits.map(({ alert }) => alert));
  const alerts = [...new Set([...drawn, ...(panel.runbooks ?? [])])].map((alert) => alertOf({ alert }));
  const others = new Set(alerts.map(({ dashboard }) => dashboard).filter((name) => name !== on));
  return [
    ...(runbookUrl ? alerts : []).map(({ name }) =>
      link(`Runbook ${name}`, `${runbookUrl}/${name}.md`).targetBlank(true),
    ),
    ...[...others].map((name) => link(`Dashboard ${titles.get(name)}`, `/d/svc-${name}?${sameView}`)),
  ];
}

export function link(title: string, url: string): DashboardLinkBuilder {
  const builder = new DashboardLinkBuilder(title).url(url);
  // The SDK's default would hide it in a menu.
  delete (builder.build() as Partial<DashboardLink>).placement;
  return builder;
}
