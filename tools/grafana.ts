/** The parts of a dashboard in Grafana's classic schema that are read here; all other parts are ignored. */
export interface DashboardJson {
  uid?: string;
  title?: string;
  templating?: { list: readonly VariableJson[] };
  annotations?: { list: readonly AnnotationJson[] };
  panels?: readonly PanelJson[];
}

interface DataSourceJson {
  type?: string;
  uid?: string;
}

export interface VariableJson {
  name: string;
  type: string;
  query?: string;
  datasource?: DataSourceJson;
  multi?: boolean;
  includeAll?: boolean;
  allValue?: string;
}

interface AnnotationJson {
  name: string;
  expr?: string;
  datasource?: DataSourceJson;
}

interface LinkJson {
  title?: string;
  type?: string;
  url?: string;
}

export interface StepJson {
  value: number | null;
  color: string;
}

interface FieldJson {
  unit?: string;
  mappings?: readonly unknown[];
  thresholds?: { steps: readonly StepJson[] };
  custom?: { minWidth?: number };
}

interface OverrideJson {
  matcher: { id: string; options?: unknown };
  properties: readonly { id: string; value?: unknown }[];
}

export interface PanelJson {
  id?: number;
  type: string;
  title?: string;
  description?: string;
  datasource?: DataSourceJson;
  gridPos?: { x: number; y: number; w: number; h: number };
  links?: readonly LinkJson[];
  targets?: readonly TargetJson[];
  fieldConfig?: { defaults: FieldJson; overrides: readonly OverrideJson[] };
  options?: Readonly<Record<string, unknown>>;
  transformations?: readonly { id: string; options: unknown }[];
}

export interface TargetJson {
  refId?: string;
  expr?: string;
  legendFormat?: string;
  instant?: boolean;
  format?: string;
  datasource?: DataSourceJson;
}

/** The name of a query's values in a table. */
function columnName({ transformations = [] }: PanelJson, { refId }: TargetJson): string | undefined {
  const organize = transformations.find(({ id }) => id === 'organize')?.options;
  const names = (organize as { renameByName?: Record<string, string> } | undefined)?.renameByName ?? {};
  return names[`Value #${refId}`] ?? names.Value;
}

/** A property of a query's values: from its column if the column has the property, otherwise from the panel. */
export function fieldProperty(
  panel: PanelJson,
  target: TargetJson,
  id: 'unit' | 'mappings' | 'thresholds',
): unknown {
  const { defaults, overrides } = panel.fieldConfig ?? { defaults: {}, overrides: [] };
  const name = panel.type === 'table' ? columnName(panel, target) : undefined;
  const own = overrides.find(({ matcher }) => matcher.id === 'byName' && matcher.options === name);
  return own?.properties.find((property) => property.id === id)?.value ?? defaults[id];
}

/** The values that Grafana puts into a query before it sends the query. */
export interface Filling {
  rateInterval: string;
  range: string;
  interval: string;
  /** Values of variables by name, as regular expressions. */
  values: Readonly<Record<string, string>>;
}

/** A query as Grafana would send it. A variable without a value becomes `.*`, like the choice All. */
export function fill(expr: string, { rateInterval, range, interval, values }: Filling): string {
  return expr
    .replaceAll('$__rate_interval', rateInterval)
    .replaceAll('$__range', range)
    .replaceAll('$__interval', interval)
    .replace(/\$(\w+)|\$\{(\w+)(?::\w+)?\}/g, (_, bare, braced) => values[bare ?? braced] ?? '.*');
}

/** An expression in which Grafana's spans are PromQL durations. Variables inside of strings parse as they are. */
export const parseable = (expr: string): string =>
  expr.replace(/\$__(?:rate_interval|range|interval)\b/g, '1m');
