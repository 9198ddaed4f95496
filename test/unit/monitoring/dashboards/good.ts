import type { DashboardJson, PanelJson, TargetJson, VariableJson } from '../../../../tools/grafana.ts';

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
export const datasource = { type: 'prometheus', uid: '${datasource}' };

export const target: TargetJson = {
  refId: 'A',
  datasource,
  expr: 'sum by (cluster, svc_service) (rate(svc_persistence_errors{environment=~"$environment", cluster=~"$cluster", svc_service=~"$role", instance=~"$instance"}[$__rate_interval]))',
  legendFormat: '{{cluster}} {{svc_service}}',
};

export const panel: PanelJson = {
  id: 1,
  type: 'timeseries',
  title: 'Errors',
  description: 'Calls that failed.',
  datasource,
  gridPos: { x: 0, y: 0, w: 8, h: 8 },
  targets: [target],
  fieldConfig: { defaults: { unit: 'cps' }, overrides: [] },
};

const chosen = (name: string, query: string): VariableJson => ({
  name,
  type: 'query',
  datasource,
  query,
  multi: true,
  includeAll: true,
  allValue: '.*',
});

export const variables: readonly VariableJson[] = [
  { name: 'datasource', type: 'datasource', query: 'prometheus' },
  chosen('environment', 'label_values(svc_agent_build_info, environment)'),
  chosen('cluster', 'label_values(svc_agent_build_info{environment=~"$environment"}, cluster)'),
  chosen(
    'role',
    'label_values(svc_num_goroutines{environment=~"$environment", cluster=~"$cluster"}, svc_service)',
  ),
  chosen(
    'instance',
    'label_values(svc_agent_build_info{environment=~"$environment", cluster=~"$cluster"}, instance)',
  ),
];

/** A dashboard in which no lint finds a fault. */
export const good: DashboardJson = {
  uid: 'svc-example',
  title: 'Svc / Example',
  templating: { list: variables },
  panels: [panel],
};

export const withPanel = (change: Partial<PanelJson>): DashboardJson => ({
  ...good,
  panels: [{ ...panel, ...change }],
});
export const withTarget = (change: Partial<TargetJson>, unit = 'cps'): DashboardJson =>
  withPanel({
    targets: [{ ...target, ...change }],
    fieldConfig: { defaults: { unit }, overrides: [] },
  });
export const withVariable = (name: string, change: Partial<VariableJson>): DashboardJson => ({
  ...good,
  templating: { list: variables.map((of) => (of.name === name ? { ...of, ...change } : of)) },
});
