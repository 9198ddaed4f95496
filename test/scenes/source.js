// A data source for Grafana's scenes that queries a Prometheus directly, and shapes its answers like Grafana's own source.
import { DataSourceApi, FieldType, LoadingState, toDataFrame } from '@grafana/data';
import { sceneGraph } from '@grafana/scenes';

const scrapeSeconds = 15;
const shortestStepSeconds = 15;

const escapedRegex = (value) => value.replace(/[\\^$*+?.()|[\]{}]/g, '\\\\$&');

/** The chosen values as a regular expression within quotes of PromQL. */
function inPromql(value, { multi }) {
  if (!Array.isArray(value)) return typeof value === 'string' && multi ? escapedRegex(value) : value;
  const escaped = value.map(escapedRegex);
  return escaped.length === 1 ? escaped[0] : `(${escaped.join('|')})`;
}

const named = (format, labels) =>
  format?.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => labels[label] ?? '') || undefined;

const pointsOf = ({ value, values }) => values ?? [value];
const timesOf = (points) => ({
  name: 'Time',
  type: FieldType.time,
  values: points.map(([seconds]) => seconds * 1000),
});
const numbersOf = (points) => points.map(([, value]) => Number(value));

/** Converts an answer to one frame per series, named by its legend. */
const asLines = ({ refId, legendFormat }, result) =>
  result.map((series) => {
    const points = pointsOf(series);
    const name = named(legendFormat, series.metric);
    const config = { displayNameFromDS: name };
    const values = {
      name: 'Value',
      type: FieldType.number,
      values: numbersOf(points),
      labels: series.metric,
      config,
    };
    return toDataFrame({ refId, name, fields: [timesOf(points), values] });
  });

/** Converts an answer to one frame for all series, with one column per label. */
function asTable({ refId }, result, isAlone) {
  const labels = [...new Set(result.flatMap(({ metric }) => Object.keys(metric)))].sort();
  const rows = result.flatMap((series) =>
    pointsOf(series).map((point) => ({ metric: series.metric, point })),
  );
  const points = rows.map(({ point }) => point);
  return [
    toDataFrame({
      refId,
      fields: [
        timesOf(points),
        ...labels.map((name) => ({
          ...{ name, type: FieldType.string, values: rows.map(({ metric }) => metric[name] ?? '') },
        })),
        { name: isAlone ? 'Value' : `Value #${refId}`, type: FieldType.number, values: numbersOf(points) },
      ],
    }),
  ];
}

/** Converts an answer to one frame per bucket, from the smallest limit to the largest. */
const asHeatmap = ({ refId }, result) =>
  result
    .toSorted(
      (a, b) =>
        Number(a.metric.le.replace('+Inf', 'Infinity')) - Number(b.metric.le.replace('+Inf', 'Infinity')),
    )
    .map(({ metric: { le }, values }) =>
      toDataFrame({
        refId,
        name: le,
        fields: [
          timesOf(values),
          { name: le, type: FieldType.number, values: numbersOf(values), labels: { le } },
        ],
      }),
    );

const shapes = { table: asTable, heatmap: asHeatmap };

export class PrometheusSource extends DataSourceApi {
  #address;
  #range;
  #fault;

  /** Calls `fault` with what is wrong with a query. */
  constructor({ address, from, to }, fault) {
    const meta = { id: 'prometheus', name: 'Prometheus', info: { logos: {} } };
    super({ uid: 'prometheus', type: 'prometheus', id: 1, name: 'Prometheus', meta, jsonData: {} });
    this.meta = meta;
    this.#address = address;
    this.#range = { start: from, end: to };
    this.#fault = fault;
  }

  async query({ targets, intervalMs = 0, scopedVars }) {
    const answers = targets.map((target) =>
      this.#answer(target, intervalMs, scopedVars, targets.length === 1),
    );
    return { data: (await Promise.all(answers)).flat(), state: LoadingState.Done };
  }

  async #answer(target, intervalMs, scopedVars, isAlone) {
    const stepSeconds = Math.max(Math.round(intervalMs / 1000), shortestStepSeconds);
    const { start, end } = this.#range;
    const variables = {
      ...scopedVars,
      __interval: { value: `${stepSeconds}s` },
      __rate_interval: { value: `${Math.max(stepSeconds + scrapeSeconds, 4 * scrapeSeconds)}s` },
      __range: { value: `${end - start}s` },
    };
    const query = this.#interpolated(target.expr, variables);
    const { result } = target.instant
      ? await this.#ask('query', { query, time: end })
      : await this.#ask('query_range', { query, start, end, step: stepSeconds });
    return (shapes[target.format] ?? asLines)(target, result, isAlone);
  }

  /** The values of a variable. */
  async metricFindQuery(asked, { scopedVars }) {
    const text = this.#interpolated(typeof asked === 'string' ? asked : asked.query, scopedVars);
    const [, selector, label] = /^label_values\((?:(.+), )?(\w+)\)$/.exec(text) ?? [];
    if (label === undefined) {
      this.#fault(`a variable asks ${text}`);
      return [];
    }
    const values = await this.#ask(`label/${label}/values`, {
      ...(selector ? { 'match[]': selector } : {}),
      ...this.#range,
    });
    return values.map((value) => ({ text: value }));
  }

  #interpolated(text, scopedVars) {
    const made = sceneGraph.interpolate(scopedVars.__sceneObject.value.valueOf(), text, scopedVars, inPromql);
    if (/\$\w|\$\{/.test(made)) this.#fault(`a variable is left in ${made}`);
    return made;
  }

  async #ask(path, parameters) {
    const response = await fetch(`http://${this.#address}/api/v1/${path}?${new URLSearchParams(parameters)}`);
    const { status, data, error } = await response.json();
    if (status === 'success') return data;
    this.#fault(`${error} in ${parameters.query}`);
    return { result: [] };
  }
}
