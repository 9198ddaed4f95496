import { type Canvas, colours, nameOf, palette, stepsOf, unitOf } from './drawing.ts';
import { escaped, formatted } from './format.ts';

interface Line {
  name: string;
  colour: string;
  values: readonly (readonly [seconds: number, value: number])[];
}

const left = 58;
const axisHeight = 16;
const rowHeight = 15;

/** Lines over time with their axes, limits and legend, as SVG and HTML. */
export function chart(canvas: Canvas): string {
  const { panel, shown, width, height } = canvas;
  const lines = shown.flatMap(({ target, series }) =>
    series.map((of) => ({ name: nameOf(target, of), values: of.values })),
  );
  const coloured = lines.map((line, index) => ({ ...line, colour: palette[index % palette.length]! }));
  const isWide = width > 600;
  const legendWidth = isWide ? Math.min(330, width * 0.4) : width;
  const legendRows = Math.min(isWide ? 99 : 4, coloured.length);
  const plotHeight = height - (isWide ? 0 : legendRows * rowHeight + 4);
  const plot = plotted(
    { ...canvas, width: isWide ? width - legendWidth : width, height: plotHeight },
    coloured,
  );
  const fitting = isWide ? Math.floor(height / rowHeight) : 4;
  const unit = unitOf(panel, shown[0]!.target);
  return `<div style="display:flex;flex-direction:${isWide ? 'row' : 'column'}">${plot}${legend(coloured, fitting, legendWidth, unit, canvas.to)}</div>`;
}

function legend(lines: readonly Line[], fitting: number, width: number, unit: string, now: number): string {
  const more = lines.length > fitting ? lines.length - fitting + 1 : 0;
  const rows = lines.slice(0, more ? fitting - 1 : fitting).map(({ name, colour, values }) => {
    const last = formatted(values.at(-1)![1], unit, now);
    return `<div class="row"><i style="background:${colour}"></i><span>${escaped(name)}</span><b>${last}</b></div>`;
  });
  if (more) rows.push(`<div class="row"><span>and ${more} more</span></div>`);
  return `<div class="legend" style="width:${width - 8}px">${rows.join('')}</div>`;
}

/** Sums from below, where lines are stacked. */
function stacked(lines: readonly Line[]): Line[] {
  const sums = new Map<number, number>();
  return lines.map((line) => ({
    ...line,
    values: line.values.map(([seconds, value]) => {
      const sum = (sums.get(seconds) ?? 0) + value;
      sums.set(seconds, sum);
      return [seconds, sum] as const;
    }),
  }));
}

function plotted({ panel, shown, width, height, from, to }: Canvas, given: readonly Line[]): string {
  const { custom } = (panel.fieldConfig?.defaults ?? {}) as { custom?: { stacking?: { mode: string } } };
  const isStacked = custom?.stacking?.mode === 'normal';
  const lines = isStacked ? stacked(given) : given;
  const values = lines.flatMap((line) => line.values.map(([, value]) => value));
  const bounds = stepsOf(panel, shown[0]!.target).filter(({ value }) => value !== null);
  const highest = Math.max(...values, 0);
  const top = niceAbove(Math.max(highest, ...bounds.map(({ value }) => (value! < highest * 4 ? value! : 0))));
  const bottom = Math.min(...values, 0);
  const x = (seconds: number) => left + ((seconds - from) / (to - from)) * (width - left - 8);
  const y = (value: number) => 6 + (1 - (value - bottom) / (top - bottom)) * (height - axisHeight - 10);
  const unit = unitOf(panel, shown[0]!.target);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => bottom + part * (top - bottom));
  const grid = ticks.map(
    (tick) =>
      `<line x1="${left}" x2="${width - 8}" y1="${y(tick)}" y2="${y(tick)}" stroke="#2c3235"/>` +
      `<text x="${left - 5}" y="${y(tick) + 4}" text-anchor="end">${escaped(formatted(tick, unit, to))}</text>`,
  );
  const limits = bounds
    .filter(({ value }) => value! <= top)
    .map(({ value, color }) => {
      const colour = colours[color === 'green' ? 'orange' : color];
      return `<line x1="${left}" x2="${width - 8}" y1="${y(value!)}" y2="${y(value!)}" stroke="${colour}" stroke-dasharray="6 4" stroke-width="1.5"/>`;
    });
  const path = ({ values: of }: Line) =>
    of
      .map(([seconds, value], index) => `${index ? 'L' : 'M'}${x(seconds).toFixed(1)} ${y(value).toFixed(1)}`)
      .join('');
  const area = (line: Line) =>
    `<path d="${path(line)}L${x(line.values.at(-1)![0])} ${y(bottom)}L${x(line.values[0]![0])} ${y(bottom)}Z" fill="${line.colour}" opacity="0.5"/>`;
  const drawn = [...lines]
    .reverse()
    .map(
      (line) =>
        `${isStacked ? area(line) : ''}<path d="${path(line)}" fill="none" stroke="${line.colour}" stroke-width="1.4"/>`,
    );
  return `<svg width="${width}" height="${height}">${grid.join('')}${times(from, to, x, height)}${drawn.join('')}${limits.join('')}</svg>`;
}

/** The hours and minutes below a plot. */
export function times(from: number, to: number, x: (seconds: number) => number, height: number): string {
  return [0.05, 0.35, 0.65, 0.95]
    .map((part) => from + part * (to - from))
    .map((seconds) => {
      const text = new Date(seconds * 1000).toISOString().slice(11, 16);
      return `<text x="${x(seconds)}" y="${height - 3}" text-anchor="middle">${text}</text>`;
    })
    .join('');
}

function niceAbove(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value)!;
}
