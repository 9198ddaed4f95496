import type { DashboardJson, PanelJson } from '../../tools/grafana.ts';
import { chart } from './chart.ts';
import type { Canvas, Shown } from './drawing.ts';
import { escaped } from './format.ts';
import { rows } from './rows.ts';
import { heatmap, stat, timeline } from './states.ts';

export const pageWidth = 1440;
const margin = 8;
const cell = { width: (pageWidth - margin) / 24, height: 34 };
const titleHeight = 26;

const drawers: Readonly<Record<string, (canvas: Canvas) => string>> = {
  timeseries: chart,
  stat,
  'state-timeline': timeline,
  heatmap,
  table: rows,
};

const style = `
  body { margin: 0; width: ${pageWidth}px; background: #111217; color: #d8d9da; font: 12px sans-serif; position: relative }
  header { padding: 10px 12px; height: 24px; font-size: 16px; display: flex; justify-content: space-between }
  header em { font-size: 12px; color: #9fa7b3 }
  .panel, .line { position: absolute; box-sizing: border-box; overflow: hidden }
  .panel { background: #181b1f; border: 1px solid #2c3235; border-radius: 3px; padding: 0 6px }
  .line { font-size: 14px; font-weight: 600; padding: 10px 4px }
  h3 { font-size: 12.5px; font-weight: 600; margin: 5px 0; height: ${titleHeight - 10}px; white-space: nowrap }
  svg { display: block; flex: none } svg text { fill: #9fa7b3; font: 10.5px sans-serif }
  .legend { font-size: 10.5px; padding-left: 4px } .row { display: flex; height: 15px; gap: 5px; align-items: center }
  .row i { width: 12px; height: 4px; flex: none } .row b { margin-left: auto; font-weight: 400; white-space: nowrap }
  .row span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
  .tiles { display: flex; gap: 4px } .tile { flex: 1; display: flex; flex-direction: column; justify-content: center; align-items: center; color: #fff; border-radius: 2px; min-width: 0 }
  table { width: 100%; border-collapse: collapse; font-size: 11.5px } th { text-align: left; color: #6e9fff; font-weight: 600 }
  th, td { padding: 3px 6px; border-bottom: 1px solid #2c3235; height: 15px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 240px }
`;

const headerHeight = 44;

/** A dashboard as one page of HTML, drawn from the answers to its queries; `origin` says of which data. */
export function page(
  dashboard: DashboardJson,
  answers: ReadonlyMap<PanelJson, readonly Shown[]>,
  { origin, ...time }: Pick<Canvas, 'from' | 'to'> & { origin: string },
): { html: string; height: number } {
  const panels = dashboard.panels ?? [];
  const height =
    Math.max(...panels.map(({ gridPos }) => gridPos!.y + gridPos!.h)) * cell.height + headerHeight + margin;
  const drawn = panels.map((panel) => framed(panel, answers.get(panel) ?? [], time));
  const note = `Preview of ${origin}, drawn from the panels’ own queries. Not a picture of Grafana.`;
  const header = `<header><span>${escaped(dashboard.title!)}</span><em>${note}</em></header>`;
  const html = `<!doctype html><meta charset="utf-8"><style>${style}</style><body style="height:${height}px">${header}${drawn.join('')}</body>`;
  return { html, height };
}

function framed(panel: PanelJson, shown: readonly Shown[], time: Pick<Canvas, 'from' | 'to'>): string {
  const { x, y, w, h } = panel.gridPos!;
  const [width, height] = [w * cell.width - margin, h * cell.height - margin];
  const place = `left:${x * cell.width + margin}px;top:${y * cell.height + headerHeight}px;width:${width}px;height:${height}px`;
  if (panel.type === 'row') return `<div class="line" style="${place}">${escaped(panel.title!)}</div>`;
  const inner = { width: width - 14, height: height - titleHeight - 4 };
  const isEmpty = shown.every(({ series }) => series.length === 0);
  const content = isEmpty ? 'No data' : drawers[panel.type]!({ panel, shown, ...inner, ...time });
  return `<div class="panel" style="${place}"><h3>${escaped(panel.title!)}</h3>${content}</div>`;
}
