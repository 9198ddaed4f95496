// What Grafana does when it starts, as far as its scenes need it: registries of fields and transformations, and services.
import {
  booleanOverrideProcessor,
  createTheme,
  dataLinksOverrideProcessor,
  EventBusSrv,
  identityOverrideProcessor,
  LoadingState,
  numberOverrideProcessor,
  standardEditorsRegistry,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  stringOverrideProcessor,
  thresholdsOverrideProcessor,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';
import {
  config,
  setAppEvents,
  setDataSourceSrv,
  setPluginImportUtils,
  setRunRequest,
  setTemplateSrv,
} from '@grafana/runtime';
import { from, map } from 'rxjs';

export const theme = createTheme({ colors: { mode: 'dark' } });

const standardProperties = {
  displayName: stringOverrideProcessor,
  description: stringOverrideProcessor,
  unit: unitOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  decimals: numberOverrideProcessor,
  noValue: stringOverrideProcessor,
  color: identityOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  links: dataLinksOverrideProcessor,
  filterable: booleanOverrideProcessor,
};

const none = () => null;

/** Starts what scenes need. Each data source is `source`, and these types of panels are known. */
export function startGrafana(source, panelTypes) {
  config.theme2 = theme;
  config.panels = Object.fromEntries(
    panelTypes.map((id) => [id, { id, name: id, info: { logos: {} }, skipDataQuery: false }]),
  );
  standardEditorsRegistry.setInit(() => []);
  standardFieldConfigEditorRegistry.setInit(() =>
    Object.entries(standardProperties).map(([id, process]) => ({
      ...{ id, path: id, name: id, process, editor: none, override: none, settings: {}, category: [] },
      shouldApply: () => true,
    })),
  );
  const transformers = new Map(Object.values(standardTransformers).map((of) => [of.id, of]));
  standardTransformersRegistry.setInit(() =>
    [...transformers.values()].map((transformation) => ({
      ...{ id: transformation.id, name: transformation.name, transformation, editor: none },
    })),
  );
  const { uid, name, type, meta } = source;
  const settings = { uid, name, type, meta, id: 1, jsonData: {}, readOnly: false, isDefault: true };
  setDataSourceSrv({
    get: async () => source,
    getInstanceSettings: () => settings,
    getList: () => [settings],
    reload: () => {},
  });
  setRunRequest((asked, request) =>
    from(asked.query(request)).pipe(
      map(({ data }) => ({ state: LoadingState.Done, series: data, timeRange: request.range, request })),
    ),
  );
  setTemplateSrv({
    getVariables: () => [],
    replace: (text) => text ?? '',
    containsTemplate: () => false,
    updateTimeRange: () => {},
  });
  setAppEvents(new EventBusSrv());
  setPluginImportUtils({
    importPanelPlugin: (id) => Promise.reject(new Error(`no panel of the type ${id}`)),
    getPanelPluginFromCache: () => undefined,
  });
}
