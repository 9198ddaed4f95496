import { times } from './chart.ts';
import { appearanceOf, type Canvas, nameOf, unitOf } from './drawing.ts';
import { escaped, formatted } from './format.ts';

/** A bar per series, coloured by its state, as SVG. */
export function timeline({ panel, shown, width, height, from, to }: Canvas): string {
  const rows = shown
    .flatMap(({ target, series }) => series.map((of) => ({ target, of, name: nameOf(target, of) })))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const left = Math.min(270, width * 0.45);
  const x = (seconds: number) => left + ((seconds - from) / (to - from)) * (width - left - 8);
  const each = Math.min(26, (height - 18) / rows.length);
  const bars = rows.map(({ target, of, name }, index) => {
    const step = of.values.length > 1 ? of.values[1]![0] - of.values[0]![0] : 60;
    const top = index * each;
    const cells = of.values.map(([seconds, value]) => {
      const end = Math.min(to, seconds + step);
      return `<rect x="${x(seconds)}" y="${top + 2}" width="${Math.max(1, x(end) - x(seconds) + 0.5)}" height="${Math.max(2, each - 4)}" fill="${appearanceOf(panel, target, value).colour}"/>`;
    });
    const size = Math.min(11, Math.max(7, each - 1));
    return `<text x="${left - 6}" y="${top + each / 2 + 3}" text-anchor="end" style="font-size:${size}px">${escaped(short(name))}</text>${cells.join('')}`;
  });
  return `<svg width="${width}" height="${height}" shape-rendering="crispEdges">${bars.join('')}${times(from, to, x, height)}</svg>`;
}

const short = (name: string): string => (name.length > 42 ? `${name.slice(0, 41)}…` : name);

/** A tile per series with its last value. */
export function stat({ panel, shown, width, height, to }: Canvas): string {
  const values = shown.flatMap(({ target, series }) => series.map((of) => ({ target, of })));
  const size = Math.min(38, width / values.length / 3);
  const tiles = values.map(({ target, of }) => {
    const value = of.values.at(-1)![1];
    const { text, colour } = appearanceOf(panel, target, value);
    return `<div class="tile" style="background:${colour}"><span>${escaped(nameOf(target, of))}</span><b style="font-size:${size}px">${escaped(text ?? formatted(value, unitOf(panel, target), to))}</b></div>`;
  });
  return `<div class="tiles" style="height:${height}px">${tiles.join('')}</div>`;
}

const boundOf = ({ metric }: { metric: Record<string, string> }): number =>
  metric.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(metric.le);

/** How many observations fell between two bounds at each step, as SVG. */
export function heatmap({ shown, width, height, from, to }: Canvas): string {
  const buckets = [...shown[0]!.series].sort((a, b) => boundOf(a) - boundOf(b));
  const left = 58;
  const x = (seconds: number) => left + ((seconds - from) / (to - from)) * (width - left - 8);
  const each = (height - 20) / buckets.length;
  const between = buckets.map(({ metric, values }, index) => ({
    le: metric.le!,
    values: values.map(
      ([seconds, value], at) => [seconds, value - (buckets[index - 1]?.values[at]?.[1] ?? 0)] as const,
    ),
  }));
  const most = Math.max(...between.flatMap(({ values }) => values.map(([, value]) => value)));
  const cells = between.flatMap(({ le, values }, index) => {
    const top = height - 20 - (index + 1) * each;
    const label = `<text x="${left - 5}" y="${top + each / 2 + 4}" text-anchor="end">${le === '+Inf' ? '∞' : formatted(Number(le), 's', to)}</text>`;
    const step = (values[1]?.[0] ?? to) - (values[0]?.[0] ?? from);
    const drawn = values.map(([seconds, value]) => {
      const heat = Math.sqrt(Math.max(0, value) / most);
      return `<rect x="${x(seconds)}" y="${top + 1}" width="${x(from + step) - left + 0.6}" height="${each - 2}" fill="rgba(255,${Math.round(170 - 120 * heat)},10,${heat.toFixed(2)})"/>`;
    });
    return [label, ...drawn];
  });
  return `<svg width="${width}" height="${height}" shape-rendering="crispEdges">${cells.join('')}${times(from, to, x, height)}</svg>`;
}
