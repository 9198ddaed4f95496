// Draws a dashboard of the classic schema as a scene of Grafana's own libraries. The query string names the dashboard, the
// Prometheus, and the range in seconds since the epoch. `window.seen` is what the test reads.
import {
  fieldMatchers,
  getFieldDisplayName,
  getValueFormats,
  standardFieldConfigEditorRegistry,
  standardTransformersRegistry,
} from '@grafana/data';
import { LocationServiceProvider, locationService } from '@grafana/runtime';
import {
  DataSourceVariable,
  EmbeddedScene,
  QueryVariable,
  SceneDataTransformer,
  SceneGridItem,
  SceneGridLayout,
  SceneGridRow,
  SceneQueryRunner,
  SceneTimeRange,
  SceneVariableSet,
  sceneGraph,
  VariableValueSelectors,
  VizPanel,
} from '@grafana/scenes';
import { ThemeContext } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router-dom';
import { CompatRouter } from 'react-router-dom-v5-compat';
import { startGrafana, theme } from './grafana.js';
import { panelTypes, registerPanels } from './panels.jsx';
import { PrometheusSource } from './source.js';

const parameters = new URLSearchParams(location.search);
const range = { from: Number(parameters.get('from')), to: Number(parameters.get('to')) };
const seen = { drawn: {}, faults: [] };
const fault = (text) => seen.faults.push(text);

startGrafana(
  new PrometheusSource({ address: parameters.get('prometheus'), ...range }, fault),
  Object.keys(panelTypes),
);
registerPanels((title, isEmpty) => {
  seen.drawn[title] = !isEmpty;
});

const variable = ({ type, name, label, query, datasource, multi, current, ...rest }) =>
  type === 'datasource'
    ? new DataSourceVariable({ name, label, pluginId: query })
    : new QueryVariable({
        ...{ name, label, query, datasource, isMulti: multi, value: current.value, text: current.text },
        ...{ includeAll: rest.includeAll, allValue: rest.allValue, refresh: rest.refresh, sort: rest.sort },
      });

const panel = ({ gridPos, type, title, description, options, fieldConfig, datasource, ...rest }) =>
  new SceneGridItem({
    ...{ x: gridPos.x, y: gridPos.y, width: gridPos.w, height: gridPos.h },
    body: new VizPanel({
      ...{ pluginId: type, title, description, options, fieldConfig },
      $data: new SceneDataTransformer({
        transformations: rest.transformations ?? [],
        $data: new SceneQueryRunner({ datasource, queries: rest.targets }),
      }),
    }),
  });

/** The panels, those below a title in a row of their own. */
function laidOut(panels) {
  const isTitle = ({ type }) => type === 'row';
  const first = panels.findIndex(isTitle);
  if (first < 0) return panels.map(panel);
  const [{ title, gridPos }, ...rest] = panels.slice(first);
  const next = rest.findIndex(isTitle);
  const end = next < 0 ? rest.length : next;
  const row = new SceneGridRow({ title, y: gridPos.y, children: rest.slice(0, end).map(panel) });
  return [...panels.slice(0, first).map(panel), row, ...laidOut(rest.slice(end))];
}

const knownUnits = new Set(getValueFormats().flatMap(({ submenu }) => submenu.map(({ value }) => value)));
const isKnownUnit = (unit) =>
  knownUnits.has(unit) || /^(suffix|prefix|time|si|count|currency|bool):/.test(unit);

/** Names that Grafana's registries do not know. */
function checkNames({ type, title, transformations = [], fieldConfig: { defaults, overrides } }) {
  const properties = overrides.flatMap((override) => override.properties);
  const units = [defaults.unit, ...properties.filter(({ id }) => id === 'unit').map(({ value }) => value)];
  const own = [
    ...Object.keys(defaults.custom ?? {}).map((name) => `custom.${name}`),
    ...properties.map(({ id }) => id),
  ];
  const isProperty = (id) =>
    id.startsWith('custom.')
      ? panelTypes[type].properties.includes(id.slice('custom.'.length))
      : standardFieldConfigEditorRegistry.getIfExists(id) !== undefined;
  const unknown = [
    ...units.filter((unit) => unit !== undefined && !isKnownUnit(unit)),
    ...own.filter((id) => !isProperty(id)),
    ...transformations.map(({ id }) => id).filter((id) => !standardTransformersRegistry.getIfExists(id)),
    ...overrides.map(({ matcher }) => matcher.id).filter((id) => !fieldMatchers.getIfExists(id)),
  ];
  for (const name of unknown) fault(`${title}: Grafana does not know ${name}`);
}

/** Overrides that match no field of the answer. */
function checkOverrides(vizPanel) {
  const { title, fieldConfig } = vizPanel.state;
  const series = sceneGraph.getData(vizPanel).state.data?.series ?? [];
  const names = new Set(
    series.flatMap((frame) => frame.fields.map((field) => getFieldDisplayName(field, frame, series))),
  );
  for (const { matcher } of fieldConfig.overrides)
    if (matcher.id === 'byName' && !names.has(matcher.options))
      fault(`${title}: no field ${matcher.options} among ${[...names].join(', ')}`);
}

const dashboard = await (await fetch(parameters.get('dashboard'))).json();
const shown = dashboard.panels.filter(({ type }) => type !== 'row');
shown.forEach(checkNames);
const scene = new EmbeddedScene({
  $timeRange: new SceneTimeRange({
    from: new Date(range.from * 1000).toISOString(),
    to: new Date(range.to * 1000).toISOString(),
    timeZone: 'utc',
  }),
  $variables: new SceneVariableSet({ variables: dashboard.templating.list.map(variable) }),
  controls: [new VariableValueSelectors({})],
  body: new SceneGridLayout({ isLazy: false, children: laidOut(dashboard.panels) }),
});
document.body.style.background = theme.colors.background.canvas;
document.body.style.color = theme.colors.text.primary;
createRoot(document.querySelector('main')).render(
  <LocationServiceProvider service={locationService}>
    <BrowserRouter>
      <CompatRouter>
        <ThemeContext.Provider value={theme}>
          <scene.Component model={scene} />
        </ThemeContext.Provider>
      </CompatRouter>
    </BrowserRouter>
  </LocationServiceProvider>,
);
window.checkOverrides = () =>
  sceneGraph.findAllObjects(scene, (object) => object instanceof VizPanel).forEach(checkOverrides);
window.seen = seen;
