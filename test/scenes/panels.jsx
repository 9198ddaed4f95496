// The types of panels that the dashboards use, of Grafana's own components where it publishes them. States and heat maps are
// parts of Grafana itself: their last values are written out, as its libraries format them.
import {
  formattedValueToString,
  getFieldDisplayName,
  getFieldDisplayValues,
  PanelPlugin,
} from '@grafana/data';
import { sceneUtils } from '@grafana/scenes';
import { BigValue, Table, TimeSeries } from '@grafana/ui';
import { useEffect } from 'react';
import { theme } from './grafana.js';

const none = () => null;

function Lines({ data, width, height, options, timeRange }) {
  const given = { frames: data.series, structureRev: data.structureRev, timeRange, timeZone: 'utc' };
  return (
    <TimeSeries {...given} width={width} height={height} legend={options.legend} options={options}>
      {none}
    </TimeSeries>
  );
}

function Stat({ data, width, height, options, fieldConfig, replaceVariables }) {
  const { reduceOptions, colorMode } = options;
  const of = { fieldConfig, reduceOptions, replaceVariables, theme, data: data.series, timeZone: 'utc' };
  const values = getFieldDisplayValues(of);
  const size = { width: width / values.length, height };
  const style = { theme, colorMode, graphMode: 'none', justifyMode: 'auto', textMode: 'auto' };
  return (
    <div style={{ display: 'flex' }}>
      {values.map(({ display }) => (
        <BigValue key={display.title} value={display} {...size} {...style} count={values.length} />
      ))}
    </div>
  );
}

const Rows = ({ data, width, height, options }) => (
  <Table data={data.series[0]} width={width} height={height} initialSortBy={options.sortBy} />
);

const LastValues = ({ data }) =>
  data.series.map((frame) => {
    const field = frame.fields.at(-1);
    const { color, ...value } = field.display(field.values.at(-1));
    const name = getFieldDisplayName(field, frame, data.series);
    return (
      <div key={name}>
        <b style={{ background: color, padding: '0 6px' }}>{formattedValueToString(value)}</b> {name}
      </div>
    );
  });

const lineProperties = [
  ...['lineWidth', 'fillOpacity', 'showPoints', 'axisSoftMin', 'stacking', 'drawStyle', 'lineInterpolation'],
  ...['thresholdsStyle', 'spanNulls', 'pointSize', 'lineStyle', 'hideFrom', 'scaleDistribution'],
];

/** Each type of a panel: how it is drawn, and the properties of its fields besides the standard ones. */
export const panelTypes = {
  timeseries: { Drawn: Lines, properties: lineProperties, colors: 'palette-classic' },
  stat: { Drawn: Stat, properties: [] },
  table: { Drawn: Rows, properties: ['align', 'inspect', 'cellOptions', 'width', 'minWidth'] },
  'state-timeline': { Drawn: LastValues, properties: ['lineWidth', 'fillOpacity'] },
  heatmap: { Drawn: LastValues, properties: ['scaleDistribution'] },
};

/** Registers the types; `onDrawn` gets the title of each panel that is drawn, and whether it has data. */
export function registerPanels(onDrawn) {
  for (const [pluginId, { Drawn, properties, colors = 'thresholds' }] of Object.entries(panelTypes)) {
    const Panel = (props) => {
      const isEmpty = props.data.series.every(({ length }) => length === 0);
      useEffect(() => onDrawn(props.title, isEmpty));
      return (
        <div data-panel={props.title} data-type={pluginId} style={{ width: '100%', height: '100%' }}>
          {isEmpty ? 'No data' : <Drawn {...props} />}
        </div>
      );
    };
    const plugin = new PanelPlugin(Panel);
    // biome-ignore lint/correctness/useHookAtTopLevel: a method of Grafana's plug-in, no hook
    plugin.useFieldConfig({
      standardOptions: { color: { defaultValue: { mode: colors } } },
      useCustomConfig: (builder) => {
        for (const path of properties)
          builder.addCustomEditor({
            ...{ id: path, path, name: path, editor: none, override: none, process: (value) => value },
            shouldApply: () => true,
          });
      },
    });
    plugin.meta = {};
    sceneUtils.registerRuntimePanelPlugin({ pluginId, plugin });
  }
}
