// The types of panels that the dashboards use, of Grafana's own components where it publishes them. States and heat maps are
// parts of Grafana itself: they are rectangles here, in the colours that its libraries give.
import { getFieldDisplayName, getFieldDisplayValues, PanelPlugin } from '@grafana/data';
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

/** A row of rectangles for each of `rows`: what is left of it, and when each begins, and its colour. */
function Cells({ rows, width, height, timeRange: { from, to } }) {
  const left = 260;
  const each = Math.min(26, height / rows.length);
  const x = (at) => left + ((at - from) / (to - from)) * (width - left);
  return (
    <svg
      role="img"
      aria-label="over time"
      width={width}
      height={height}
      fill={theme.colors.text.primary}
      fontSize={Math.min(12, each - 1)}
    >
      {rows.map(({ name, times, colors }, row) => (
        <g key={name} transform={`translate(0 ${row * each})`}>
          <text y={each * 0.7}>{name}</text>
          {times.map((at, index) => (
            <rect
              key={at}
              {...{ x: x(at), y: 1, height: Math.max(1, each - 3), fill: colors[index] }}
              width={Math.max(1, x(times[index + 1] ?? to) - x(at))}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

const States = ({ data: { series }, ...place }) => {
  const rows = series.map((frame) => {
    const [{ values: times }, field] = frame.fields;
    const name = getFieldDisplayName(field, frame, series);
    return { name, times, colors: field.values.map((value) => field.display(value).color) };
  });
  return <Cells rows={rows} {...place} />;
};

/** A bucket counts what is below it, too. */
const Heat = ({ data: { series }, ...place }) => {
  const between = series.map(({ fields: [, { values }] }, bucket) =>
    values.map((value, index) => Math.max(0, value - (series[bucket - 1]?.fields[1].values[index] ?? 0))),
  );
  const most = Math.max(...between.flat());
  const rows = series.map(({ name, fields: [{ values: times }] }, bucket) => {
    const colors = between[bucket].map((value) => `rgba(255, 120, 10, ${Math.sqrt(value / most)})`);
    return { name: `${name} s`, times, colors };
  });
  return <Cells rows={rows.reverse()} {...place} />;
};

const lineProperties = [
  ...['lineWidth', 'fillOpacity', 'showPoints', 'axisSoftMin', 'stacking', 'drawStyle', 'lineInterpolation'],
  ...['thresholdsStyle', 'spanNulls', 'pointSize', 'lineStyle', 'hideFrom', 'scaleDistribution'],
];

/** Each type of a panel: how it is drawn, and the properties of its fields besides the standard ones. */
export const panelTypes = {
  timeseries: { Drawn: Lines, properties: lineProperties, colors: 'palette-classic' },
  stat: { Drawn: Stat, properties: [] },
  table: { Drawn: Rows, properties: ['align', 'inspect', 'cellOptions', 'width', 'minWidth'] },
  'state-timeline': { Drawn: States, properties: ['lineWidth', 'fillOpacity'] },
  heatmap: { Drawn: Heat, properties: ['scaleDistribution'] },
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
