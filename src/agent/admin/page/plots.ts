import uPlot from 'uplot';
import type { Plotted } from './data.ts';
import { type Child, h } from './dom.ts';
import { moment } from './format.ts';

export interface PlotLine {
  /** Name in the history. */
  series: string;
  label: string;
  /** The custom property of the style sheet that contains the colour. */
  colour: string;
}

interface PlotSpec {
  id: string;
  title: string;
  lines: readonly PlotLine[];
  text(value: number): string;
  /** Steps of the axis, if powers of ten are not suitable. */
  steps?: readonly number[];
  /** The least upper end of the axis, so that noise does not fill the plot. */
  least: number;
}

/** Powers of two, for bytes. */
export const binarySteps = Array.from({ length: 50 }, (_, i) => 2 ** i);

const height = 132;
const style = () => getComputedStyle(document.documentElement);
const colour = (name: string): string => style().getPropertyValue(name).trim();

interface Mounted {
  plot: uPlot;
  /** The specification of the plot, as text; another specification makes a new plot. */
  key: string;
}
const mounted = new Map<Element, Mounted>();
const wanted = new Map<string, PlotSpec>();

/** The newest values, without those that are not known. */
const knownOf = (values: Float32Array | undefined, shown: number): number[] =>
  Array.from(values?.subarray(-shown) ?? []).filter((value) => !Number.isNaN(value));

/**
 * The place of a plot, which `drawPlots` fills; nothing while the plot has no value. Its label contains the newest and the
 * highest value of each line as text.
 */
export function plot(spec: PlotSpec, { series }: Plotted, shown: number): Child {
  if (spec.lines.every(({ series: name }) => knownOf(series.get(name), shown).length === 0)) return undefined;
  wanted.set(spec.id, spec);
  const words = spec.lines.map(({ series: name, label }) => {
    const values = knownOf(series.get(name), shown);
    if (values.length === 0) return `${label}: no value`;
    const highest = values.reduce((most, value) => Math.max(most, value), 0);
    return `${label}: now ${spec.text(values.at(-1)!)}, at most ${spec.text(highest)}`;
  });
  const legend = spec.lines.map(({ label, colour: name, series: of }) => {
    const now = series.get(of)?.at(-1);
    return h(
      'li',
      {},
      h('span', { class: `swatch ${name.slice(2)}`, 'aria-hidden': 'true' }),
      `${label} `,
      h('span', { class: 'number' }, now === undefined || Number.isNaN(now) ? '–' : spec.text(now)),
    );
  });
  return h(
    'figure',
    { class: 'plot', key: spec.id },
    h('figcaption', {}, h('span', {}, spec.title), h('ul', { class: 'legend' }, legend)),
    h('div', {
      class: 'canvas',
      role: 'img',
      'aria-label': `${spec.title}. ${words.join('; ')}.`,
      'data-plot': spec.id,
      keep: true,
    }),
  );
}

/** The data of the whole window, including times without values, so that all plots and strips have one scale. */
function dataOf({ lines }: PlotSpec, { atMs, stepMs, series }: Plotted, shown: number): uPlot.AlignedData {
  const times = Array.from({ length: shown }, (_, i) => (atMs - (shown - 1 - i) * stepMs) / 1e3);
  const columns = lines.map(({ series: name }) => {
    const values = series.get(name) ?? [];
    return Array.from({ length: shown }, (_, i) => {
      const value = values[values.length - shown + i] ?? Number.NaN;
      return Number.isNaN(value) ? null : value;
    });
  });
  return [times, ...columns];
}

function create(place: HTMLElement, spec: PlotSpec, data: uPlot.AlignedData): uPlot {
  const axis = {
    stroke: colour('--muted'),
    font: '11px system-ui, sans-serif',
    ticks: { show: false },
    gap: 4,
  };
  const grid = { stroke: colour('--grid'), width: 1 };
  return new uPlot(
    {
      width: place.clientWidth,
      height,
      legend: { show: false },
      cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
      // Half of a time label fits behind the last line of the grid.
      padding: [8, 18, 0, 0],
      scales: { y: { range: (_, __, max) => [0, Math.max(spec.least, (max ?? 0) * 1.15)] } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 22,
          space: 70,
          values: (_, splits) => splits.map((at) => moment(at * 1e3, Date.now()).replace(/:\d\d$/, '')),
        },
        {
          ...axis,
          grid,
          size: 62,
          space: 34,
          ...(spec.steps && { incrs: [...spec.steps] }),
          values: (_, splits) => splits.map((value) => (value === 0 ? '0' : spec.text(value))),
        },
      ],
      series: [
        {},
        ...spec.lines.map(({ label, colour: name }) => ({
          label,
          stroke: colour(name),
          width: 1.6,
          points: { show: false },
          fill: spec.lines.length === 1 ? `${colour(name)}22` : undefined,
        })),
      ],
      hooks: { setCursor: [(self) => showCursor(self, spec)] },
    },
    data,
    place,
  );
}

/** Shows the values under the pointer, beside it. */
function showCursor(self: uPlot, { lines, text }: PlotSpec): void {
  const at = self.cursor.idx;
  const over = self.over;
  let tip = over.querySelector<HTMLElement>('.tip');
  if (at === null || at === undefined || (self.cursor.left ?? -1) < 0) {
    tip?.remove();
    return;
  }
  if (!tip) {
    tip = h('div', { class: 'tip' });
    over.append(tip);
  }
  const time = moment((self.data[0][at] ?? 0) * 1e3, Date.now());
  const values = lines.map(({ label }, i) => {
    const value = self.data[i + 1]?.[at];
    return h('div', {}, `${label} ${value === null || value === undefined ? '–' : text(value)}`);
  });
  tip.replaceChildren(h('b', {}, time), ...values);
  const left = self.cursor.left ?? 0;
  tip.classList.toggle('left', left > over.clientWidth / 2);
  tip.style.left = `${left}px`;
}

/** Updates every plot of the page, creates new ones and removes missing ones. */
export function drawPlots(plotted: Plotted, shown: number): void {
  for (const [place, { plot: old }] of mounted) {
    if (place.isConnected) continue;
    old.destroy();
    mounted.delete(place);
  }
  for (const place of document.querySelectorAll<HTMLElement>('[data-plot]')) {
    const spec = wanted.get(place.dataset.plot!);
    if (!spec || place.clientWidth === 0) continue;
    const data = dataOf(spec, plotted, shown);
    const key = JSON.stringify([spec.lines, place.clientWidth, colour('--surface')]);
    const known = mounted.get(place);
    if (known?.key === key) known.plot.setData(data);
    else {
      known?.plot.destroy();
      mounted.set(place, { plot: create(place, spec, data), key });
    }
  }
  for (const id of wanted.keys())
    if (!document.querySelector(`[data-plot="${CSS.escape(id)}"]`)) wanted.delete(id);
}

const columns = 288;

/** A strip of availability over the window. It shows the worst value of each column as stretches of equal values. */
export function strip(name: string, label: string, { series, length }: Plotted, shown: number): HTMLElement {
  const values = series.get(name);
  const cells = Array.from({ length: columns }, (_, column) => {
    let worst: number | undefined;
    const from = length - shown + Math.floor((column * shown) / columns);
    const to = length - shown + Math.max(1, Math.floor(((column + 1) * shown) / columns));
    for (let at = Math.max(0, from); at < to; at++) {
      const value = values?.[at];
      if (value !== undefined && !Number.isNaN(value)) worst = Math.min(worst ?? 1, value);
    }
    return worst;
  });
  const runs: { from: number; to: number; value: number | undefined }[] = [];
  for (const [at, value] of cells.entries()) {
    const last = runs.at(-1);
    if (last && last.value === value) last.to = at + 1;
    else runs.push({ from: at, to: at + 1, value });
  }
  const share = availability(name, { series, length }, shown);
  return h(
    'svg',
    {
      class: 'strip',
      viewBox: `0 0 ${columns} 10`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `${label}: ${share === undefined ? 'no value yet' : `up ${(share * 100).toFixed(1)} % of the time shown`}`,
    },
    runs.map(({ from, to, value }) =>
      h('rect', {
        x: from,
        y: 0,
        width: to - from,
        height: 10,
        class: value === undefined ? 'none' : value >= 1 ? 'up' : 'down',
      }),
    ),
  );
}

/** The share of samples at which the target was up; undefined if there are none. */
export function availability(
  name: string,
  { series }: Pick<Plotted, 'series' | 'length'>,
  shown: number,
): number | undefined {
  const values = knownOf(series.get(name), shown);
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}

export interface Mark {
  atMs: number;
  kind: string;
  text: string;
}

/** Marks on a line from `shown` steps ago until now. */
export function timeLine(
  label: string,
  marks: readonly Mark[],
  { atMs, stepMs }: Plotted,
  shown: number,
): HTMLElement {
  const fromMs = atMs - shown * stepMs;
  const seen = marks.filter((mark) => mark.atMs >= fromMs);
  const x = (ms: number) => Math.min(columns - 1, ((ms - fromMs) / (shown * stepMs)) * columns);
  // After a failover of a datacenter, thousands of marks are in one place.
  const places = new Map<string, Mark[]>();
  for (const mark of seen) {
    const place = `${mark.kind} ${x(mark.atMs).toFixed(0)}`;
    const there = places.get(place);
    if (there) there.push(mark);
    else places.set(place, [mark]);
  }
  return h(
    'svg',
    {
      class: 'strip marks',
      viewBox: `0 0 ${columns} 10`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': `${label}: ${seen.length} in the time shown`,
    },
    h('rect', { x: 0, y: 4.6, width: columns, height: 0.8, class: 'none' }),
    [...places.values()].map(([mark, ...others]) =>
      h(
        'rect',
        { x: x(mark!.atMs).toFixed(2), y: 0, width: 1, height: 10, class: mark!.kind },
        h('title', {}, others.length > 0 ? `${mark!.text}, and ${others.length} more` : mark!.text),
      ),
    ),
  );
}
